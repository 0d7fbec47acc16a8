package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Context is passed to the functions of tools, context sources and commands. It is
// a [context.Context] that is done when the host cancels the call or exits, and it
// talks to the user while the function runs:
//
//	func(ctx *sdk.Context, in Args) (string, error) {
//		ok, err := ctx.Confirm("Delete "+in.Name+"?", "This cannot be undone.")
//		if err != nil || !ok {
//			return "not deleted", err
//		}
//		ctx.Progress(0, 0, "deleting")
//		...
//	}
//
// Its methods are safe for concurrent use until the function returns. Pass it to
// whatever takes a context, so that cancelling works.
type Context struct {
	context.Context
	conversation *conversation
	session      *toolproto.SessionInfo
}

// Workspace returns the working directory of the session.
func (c *Context) Workspace() string { return c.session.GetWorkspace() }

// SessionID returns the ID of the session.
func (c *Context) SessionID() string { return c.session.GetId() }

// Progress shows the user the progress of the call. A total of 0 means unknown.
func (c *Context) Progress(done, total float64, message string) {
	p := &toolproto.Progress{Done: done, Total: total, Message: valid(message)}
	_ = c.conversation.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Progress{Progress: p}})
}

// Write shows text immediately, as live output. It becomes the beginning of the
// result's text, so the tool must not return it again. It implements [io.Writer].
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

// Logf writes a line to the plugin's log, which "agent plugins logs" shows.
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

// Confirm asks the user a yes-or-no question and waits for the answer. If the user
// gives a reason for no, or the agent is not interactive, the error says so; return
// it for the model. The call's timeout does not run meanwhile.
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
			return // if the host is gone, the context of the stream ends
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
			return false, Errorf(Permission, "denied: %s", a.Reason)
		}
		return a.Yes, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
