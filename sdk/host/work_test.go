package host_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// await waits for a condition.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(coretest.Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// family has another model for the subagent whose task is "look".
type family struct {
	model.Provider
	child model.Provider
}

// Stream implements [model.Provider].
func (f family) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	if strings.Contains(req.Messages[0].Parts.Text(), "look") {
		return f.child.Stream(ctx, req)
	}
	return f.Provider.Stream(ctx, req)
}

// TestWork follows and ends a command in the background, steers a subagent, and gives
// a session that waits for it a message.
func TestWork(t *testing.T) {
	dir := t.TempDir()
	reached := make(chan struct{})
	release := make(chan struct{})
	waiting, woken := make(chan struct{}, 9), make(chan string, 1)
	var read string
	p := family{
		Provider: coretest.Model(
			coretest.CallTools(
				model.ToolCall{ID: "1", Name: "shell", Args: `{"command":"echo started; sleep 100","background":true}`},
				model.ToolCall{ID: "2", Name: "spawn_agent", Args: `{"task":"look","background":true}`},
			),
			coretest.Say("Waiting."),
			coretest.Turn{Text: "Hello.", Hook: func(r *model.Request) { woken <- r.Messages[len(r.Messages)-1].Parts.Text() }},
			coretest.Say("Done."),
		),
		child: coretest.Model(
			coretest.Turn{Hook: func(*model.Request) { close(reached) }, Block: release, Calls: coretest.CallTools(model.ToolCall{ID: "3", Name: "list_dir", Args: `{}`}).Calls},
			coretest.Turn{Text: "Looked.", Hook: func(r *model.Request) { read = r.Messages[len(r.Messages)-1].Parts.Text() }},
		),
	}
	h := host.New("", func(ctx context.Context, _ host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: dir, Policy: coretest.AllowAll})
		if err != nil {
			return host.Opened{}, err
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: p, Asker: asker})
		return host.Opened{Session: s, Close: a.Close, Waiting: func() { waiting <- struct{}{} }}, err
	})
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	in := core.TextInput("begin")
	run, err := s.Do(t.Context(), host.Command{Type: "input", Own: &in})
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	list := s.Now().Work
	if len(list) != 2 || list[0].Kind != "command" || !list[0].Running || list[1].Kind != "agent" || !list[1].Running {
		t.Fatalf("the work is %+v", list)
	}
	await(t, "the command prints nothing", func() bool {
		out, err := s.WorkOutput(list[0].ID)
		return err == nil && strings.Contains(out, "started")
	})
	steer := core.TextInput("look closer")
	if _, err := s.Do(t.Context(), host.Command{Type: "input", Work: list[1].ID, Own: &steer}); err != nil {
		t.Error(err)
	}
	var refused *host.Error
	if _, err := s.Do(t.Context(), host.Command{Type: "input", Work: list[0].ID, Own: &steer}); !errors.As(err, &refused) {
		t.Errorf("a message to a command: %v", err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "end", Work: "nothing"}); !errors.As(err, &refused) || refused.Code != host.CodeUnknown {
		t.Errorf("an end of nothing: %v", err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "end", Work: list[0].ID}); err != nil {
		t.Error(err)
	}
	await(t, "the command goes on", func() bool { return !s.Work()[0].Running })
	<-waiting // for the subagent
	hello := core.TextInput("hello")
	if _, err := s.Do(t.Context(), host.Command{Type: "input", When: "keep", Own: &hello}); err != nil {
		t.Error(err)
	}
	if got := <-woken; got != "hello" {
		t.Errorf("a session that waits for an agent read %q", got)
	}
	close(release)
	for e, err := range s.Events(t.Context(), 0) {
		if b, ok := e.Body.(event.Result); err != nil || ok && b.Run == run {
			break
		}
	}
	if read != "look closer" {
		t.Errorf("the subagent read %q", read)
	}
}
