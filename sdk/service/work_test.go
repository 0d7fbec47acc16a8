package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

const tenant = "acme"

// job is what a worker process does.
type job struct {
	URL, Dir, Effects string
	Work              string // the directory of workspaces; empty = none
	Places            int
	Lease             time.Duration
}

func workProcess(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	nc, err := nats.Connect(j.URL, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx := untilParentEnds()
	db, err := open(ctx, nc, j.Dir, j.Lease)
	if err != nil {
		return err
	}
	var root *workspace.Root
	if j.Work != "" {
		if root, err = workspace.Open(workspace.Options{Dir: j.Work}); err != nil {
			return err
		}
	}
	w, err := service.NewWorker(service.WorkerOptions{
		Engine: db, Places: j.Places, Workspaces: root, Open: opener(j.Dir, j.Effects), Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	w.Run(ctx)
	return nil
}

// open opens the engine, as soon as the server is ready.
func open(ctx context.Context, nc *nats.Conn, dir string, lease time.Duration) (*jetstream.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		once, cancel := context.WithTimeout(ctx, 10*time.Second)
		db, err := jetstream.Open(once, nc, jetstream.Options{Lease: lease, TempDir: dir})
		cancel()
		if err == nil || ctx.Err() != nil {
			return db, err
		}
	}
}

// opener opens sessions with the tool effect and a model that calls it as often as the
// input says. The session's spec is the verdict on each call.
func opener(dir, effects string) service.Opener {
	return func(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
		var verdict core.Verdict
		if err := json.Unmarshal(s.Spec, &verdict); err != nil {
			return host.Opened{}, err
		}
		a, err := agent.Open(ctx, agent.Options{Dir: dir, Policy: coretest.FixedPolicy(verdict), Tools: []core.Tool{effectTool(effects, s.Dir)}, NoBuiltins: true})
		if err != nil {
			return host.Opened{}, err
		}
		base.Provider, base.Limits = byConversation{}, core.Limits{NoLoopDetection: true}
		session, err := a.NewSession(ctx, base)
		return host.Opened{Session: session, Close: a.Close}, err
	}
}

// effectTool changes something outside the session: a line in a file, and in the workspace:
// a file named like the call. It hangs while the file with the suffix .hang is there.
func effectTool(file, dir string) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "effect", Description: "changes something", Scopes: []core.Scope{core.ScopeWrite}},
		func(context.Context, *core.Call, struct{}) ([]core.Access, error) {
			return []core.Access{{Scope: core.ScopeWrite, Resource: file}}, nil
		},
		func(ctx context.Context, c *core.Call, _ struct{}) (core.Result, error) {
			if dir != "" {
				if err := os.WriteFile(filepath.Join(dir, c.ID), []byte(c.ID), 0o600); err != nil {
					return core.Result{}, err
				}
			}
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return core.Result{}, err
			}
			defer f.Close()
			_, err = fmt.Fprintf(f, "%s %s\n", c.Session.ID, c.ID)
			if _, hangs := os.Stat(file + ".hang"); hangs == nil {
				<-ctx.Done()
			}
			return core.TextResult("done"), err
		})
}

// byConversation is a model that depends on nothing but the conversation: for each
// input, as many calls as it says, then a text.
type byConversation struct{}

var callUsage = model.Usage{Input: 10, Output: 1}

func (byConversation) Info() model.ProviderInfo {
	return model.ProviderInfo{Name: "test", Model: "test"}
}

func (byConversation) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		rounds, done, all := 0, 0, 0
		for _, m := range req.Messages {
			switch text := model.Parts(m.Parts).Text(); {
			case m.Role == model.RoleUser && strings.HasPrefix(text, "rounds="):
				_, _ = fmt.Sscanf(text, "rounds=%d", &rounds)
				done = 0
			case m.Role == model.RoleAssistant:
				done++
				all++
			}
		}
		answer := []model.Delta{{Kind: model.DeltaText, Text: "All "}, {Kind: model.DeltaText, Text: "done."}, {Kind: model.DeltaDone, Stop: model.StopEnd, Usage: callUsage}}
		if done < rounds {
			answer = []model.Delta{
				{Kind: model.DeltaToolStart, ID: fmt.Sprintf("c%d", all), Name: "effect"},
				{Kind: model.DeltaToolArgs, Text: "{}"},
				{Kind: model.DeltaToolEnd},
				{Kind: model.DeltaDone, Stop: model.StopToolCalls, Usage: callUsage},
			}
		}
		for _, d := range answer {
			if !yield(d, ctx.Err()) {
				return
			}
		}
	}
}

// create creates a session whose calls get the verdict.
func create(t testing.TB, e service.Engine, id string, v core.Verdict) {
	t.Helper()
	spec, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Create(t.Context(), service.Session{Tenant: tenant, ID: id, Spec: spec, State: service.StateQueued}); err != nil {
		t.Fatal(err)
	}
}

func send(t testing.TB, e service.Engine, id string, c service.Command) {
	t.Helper()
	if err := e.Send(t.Context(), tenant, id, c); err != nil {
		t.Fatal(err)
	}
}

func rounds(id string, n int) service.Command {
	return service.Command{ID: id, Command: host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: fmt.Sprintf("rounds=%d", n)}}}}
}

// until polls until a session is as wanted.
func until(t testing.TB, e service.Engine, id string, want func(service.Session) bool) service.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last string
	for {
		s, err := e.Get(ctx, tenant, id)
		if err == nil && want(s) {
			return s
		}
		if ctx.Err() == nil {
			last = fmt.Sprintf("%+v, %v", s, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("session %s: %s", id, last)
		case <-tick.C:
		}
	}
}

func in(state service.State) func(service.Session) bool {
	return func(s service.Session) bool { return s.State == state }
}

// results reads a session's log up to the result of a command.
func results(t testing.TB, e service.Engine, id, command string) (log []event.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r, err := range e.Watch(ctx, tenant, id, 0) {
		if err != nil {
			t.Fatalf("session %s: %v behind %d events", id, err, len(log))
		}
		if r.Cursor == 0 {
			continue
		}
		log = append(log, r.Event)
		if b, ok := r.Event.Body.(event.Result); ok && b.Run == command {
			return log
		}
	}
	return log
}

// whole reads a session's log as a worker that takes it over.
func whole(t *testing.T, e service.Engine, id string) (log []event.Event) {
	t.Helper()
	j, err := e.Journal(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range j.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, e)
	}
	return log
}

// bodies returns the events of a type.
func bodies[B event.Body](log []event.Event) []B { return coretest.Bodies[B](log) }
