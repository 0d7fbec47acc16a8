package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Context is the context of one piece of work: a call of a tool, a request for
// context, a command. It is done when the host cancels the work or goes away.
// Its methods can be called from several goroutines, until the work is done.
type Context struct {
	context.Context
	conversation *conversation
	session      *toolproto.SessionInfo
}

// Workspace is the directory that the agent works in.
func (c *Context) Workspace() string { return c.session.GetWorkspace() }

// SessionID names the session that the work is for.
func (c *Context) SessionID() string { return c.session.GetId() }

// Progress tells the person how far the work has come. A total of 0 means that
// nobody knows.
func (c *Context) Progress(done, total float64, message string) {
	p := &toolproto.Progress{Done: done, Total: total, Message: valid(message)}
	_ = c.conversation.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Progress{Progress: p}})
}

// Write shows text at once. It is the beginning of the result's text: a tool
// that writes does not return the same again. It implements [io.Writer].
func (c *Context) Write(text []byte) (int, error) {
	written := 0
	for len(text) > 0 {
		n := min(len(text), maxFrame)
		o := &toolproto.Output{Data: text[:n]}
		if err := c.conversation.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Output{Output: o}}); err != nil {
			return written, err
		}
		text, written = text[n:], written+n
	}
	return written, nil
}

// Logf writes a line into the plugin's log, which "agent plugins logs" shows.
func (c *Context) Logf(level slog.Level, format string, args ...any) {
	l := &toolproto.Log{Message: valid(fmt.Sprintf(format, args...))}
	switch {
	case level < slog.LevelInfo:
		l.Level = toolproto.Log_DEBUG
	case level >= slog.LevelError:
		l.Level = toolproto.Log_ERROR
	case level >= slog.LevelWarn:
		l.Level = toolproto.Log_WARN
	}
	_ = c.conversation.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Log{Log: l}})
}

// Confirm puts a yes-or-no question to the person and waits for the answer. A
// no may come with a reason in the error, which is for the model; so does an
// agent that nobody sits at. The call's time-out stands still meanwhile.
func (c *Context) Confirm(title, detail string) (bool, error) {
	return c.conversation.confirm(c, valid(title), valid(detail))
}

// conversation is one stream with the host.
type conversation struct {
	stream  toolproto.Plugin_SessionServer
	sending sync.Mutex
	parts   sync.Mutex

	mu      sync.Mutex
	asked   int
	answers map[string]chan *toolproto.ConfirmAnswer
}

func (c *conversation) send(f *toolproto.PluginFrame) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.stream.Send(f)
}

// receive takes the host's frames after the first one until the stream ends.
func (c *conversation) receive(cancel context.CancelFunc) {
	for {
		f, err := c.stream.Recv()
		if err != nil {
			return // the host has no more to say; that it is gone is the stream's context's matter
		}
		switch f := f.Frame.(type) {
		case *toolproto.HostFrame_Confirm:
			c.mu.Lock()
			if ch := c.answers[f.Confirm.Id]; ch != nil {
				delete(c.answers, f.Confirm.Id)
				ch <- f.Confirm
			}
			c.mu.Unlock()
		case *toolproto.HostFrame_Cancel:
			cancel()
		}
	}
}

func (c *conversation) confirm(ctx context.Context, title, detail string) (bool, error) {
	answer := make(chan *toolproto.ConfirmAnswer, 1)
	c.mu.Lock()
	c.asked++
	id := fmt.Sprint(c.asked)
	c.answers[id] = answer
	c.mu.Unlock()
	q := &toolproto.Confirm{Id: id, Title: title, Detail: detail}
	if err := c.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Confirm{Confirm: q}}); err != nil {
		return false, err
	}
	select {
	case a := <-answer:
		if !a.Yes && a.Reason != "" {
			return false, Errorf(Permission, "the answer is no: %s", a.Reason)
		}
		return a.Yes, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
