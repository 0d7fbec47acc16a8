package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Context is passed to the functions of tools, context sources, commands and hooks. It is
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

// DataDir returns the directory in which the plugin may keep files, which survives
// updates of the plugin. It is empty if the agent has no home.
func (c *Context) DataDir() string { return os.Getenv("PLUGIN_DATA_DIR") }

// Settings decodes the user's values of the settings that plugin.json describes, with
// defaults, into a struct. They are those at the time of the call.
func (c *Context) Settings(into any) error {
	if err := c.conversation.needs(toolproto.FeatureSettings, "have settings for plugins"); err != nil {
		return err
	}
	values := c.session.GetSettings()
	if len(values) == 0 {
		return nil
	}
	if err := json.Unmarshal(values, into); err != nil {
		return Errorf(Config, "the plugin's settings: %v", err)
	}
	return nil
}

// Confirm asks the user a yes-or-no question and waits for the answer. If the user
// gives a reason for no, or the agent is not interactive, the error says so; return
// it for the model. The call's timeout does not run meanwhile.
func (c *Context) Confirm(title, detail string) (bool, error) {
	f, err := c.conversation.ask(c, func(id string) *toolproto.PluginFrame {
		q := &toolproto.Confirm{Id: id, Title: valid(title), Detail: valid(detail)}
		return &toolproto.PluginFrame{Frame: &toolproto.PluginFrame_Confirm{Confirm: q}}
	})
	if err != nil {
		return false, err
	}
	a := f.GetConfirm()
	if !a.GetYes() && a.GetReason() != "" {
		return false, Errorf(Permission, "denied: %s", a.Reason)
	}
	return a.GetYes(), nil
}

// conversation is one stream with the host.
type conversation struct {
	stream  toolproto.Plugin_SessionServer
	host    []string // features of the host
	sending sync.Mutex
	parts   sync.Mutex

	mu      sync.Mutex
	asked   int
	answers map[string]chan *toolproto.HostFrame
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
		switch body := f.Frame.(type) {
		case *toolproto.HostFrame_Confirm:
			c.answered(body.Confirm.Id, f)
		case *toolproto.HostFrame_Answer:
			c.answered(body.Answer.Id, f)
		case *toolproto.HostFrame_Sampled:
			c.answered(body.Sampled.Id, f)
		case *toolproto.HostFrame_Cancel:
			cancel()
		}
	}
}

// answered passes an answer to whoever asked.
func (c *conversation) answered(id string, f *toolproto.HostFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.answers[id]; ch != nil {
		delete(c.answers, id)
		ch <- f
	}
}

// ask sends what the host answers, with an ID, and waits for the answer.
func (c *conversation) ask(ctx context.Context, question func(id string) *toolproto.PluginFrame) (*toolproto.HostFrame, error) {
	answer := make(chan *toolproto.HostFrame, 1)
	c.mu.Lock()
	c.asked++
	id := fmt.Sprint(c.asked)
	c.answers[id] = answer
	c.mu.Unlock()
	if err := c.send(question(id)); err != nil {
		return nil, err
	}
	select {
	case f := <-answer:
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// needs returns an error if the host does not have a feature, which it would ignore.
func (c *conversation) needs(feature, what string) error {
	if slices.Contains(c.host, feature) {
		return nil
	}
	return Errorf(Config, "this version of agent does not %s: update agent", what)
}
