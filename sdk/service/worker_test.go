package service_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
)

// engine is one on a server in this process, which keeps its files in dir.
func engine(t testing.TB) (db *jetstream.DB, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := jetstream.Serve(jetstream.ServeOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	db, err = open(t.Context(), nc, t.TempDir(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return db, dir
}

// runWorker runs a worker until the test ends, or stop is called, which waits for it.
func runWorker(t testing.TB, e service.Engine, o service.Opener, places int) (stop func()) {
	t.Helper()
	w, err := service.NewWorker(service.WorkerOptions{Engine: e, Open: o, Places: places})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// with opens sessions with a model.
func with(dir string, p model.Provider) service.Opener {
	return func(ctx context.Context, _ service.Session, base agent.SessionOptions) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: dir, Policy: coretest.AllowAll})
		if err != nil {
			return host.Opened{}, err
		}
		base.Provider = p
		s, err := a.NewSession(ctx, base)
		return host.Opened{Session: s, Close: a.Close}, err
	}
}

func last(log []event.Event) event.Result { return log[len(log)-1].Body.(event.Result) }

// TestCancel: a cancel ends what was sent before it, running or not, and nothing else.
func TestCancel(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	asked := make(chan struct{})
	p := coretest.Model(coretest.Turn{Text: "never", Block: make(chan struct{}), Hook: func(*model.Request) { close(asked) }}, coretest.Say("third"))
	send(t, db, "s", rounds("first", 0))
	send(t, db, "s", rounds("second", 0))
	runWorker(t, db, with(t.TempDir(), p), 4)
	<-asked
	send(t, db, "s", service.Command{ID: "stop", Command: host.Command{Type: "cancel", Reason: "enough"}})
	send(t, db, "s", rounds("third", 0))
	log := results(t, db, "s", "third")
	got := map[string]string{}
	for _, r := range bodies[event.Result](log) {
		got[r.Run] = r.Outcome
	}
	if got["first"] != "cancelled" || got["second"] != "cancelled" || got["third"] != "done" || len(got) != 3 {
		t.Errorf("results %v", got)
	}
	if why := bodies[event.Cancelled](log); len(why) == 0 || why[0].Reason != "enough" {
		t.Errorf("cancelled: %+v", why)
	}
}

// TestShutdown: a worker that ends leaves its sessions to others at once, who finish
// the input.
func TestShutdown(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	asked := make(chan struct{})
	stop := runWorker(t, db, with(t.TempDir(), coretest.Model(coretest.Turn{Block: make(chan struct{}), Hook: func(*model.Request) { close(asked) }})), 4)
	send(t, db, "s", rounds("in", 0))
	<-asked
	stop()
	runWorker(t, db, with(t.TempDir(), coretest.Model(coretest.Say("Done."))), 4)
	log := results(t, db, "s", "in")
	if users := bodies[event.User](log); len(users) != 1 || last(log).Text != "Done." {
		t.Errorf("%d inputs, result %+v", len(users), last(log))
	}
}

// TestFailed: what a session or the machine refuses has a result, or is tried again.
func TestFailed(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	var opened atomic.Int64
	working := with(t.TempDir(), coretest.Model(coretest.Turn{Err: &model.Error{Code: model.CodeAuthentication, Message: "wrong key"}}, coretest.Say("Better.")))
	runWorker(t, db, func(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
		if opened.Add(1) == 1 {
			return host.Opened{}, &fs.PathError{Op: "open", Path: "/work", Err: fs.ErrNotExist}
		}
		return working(ctx, s, base)
	}, 4)
	send(t, db, "s", rounds("in", 0))
	if s := until(t, db, "s", func(s service.Session) bool { return s.Error != "" }); s.State != service.StateQueued && s.State != service.StateFailed {
		t.Errorf("the session is %s: %s", s.State, s.Error)
	}
	if r := last(results(t, db, "s", "in")); r.Outcome != "error" || r.Error == nil || r.Error.Code != string(model.CodeAuthentication) {
		t.Errorf("result %+v", r)
	}
	until(t, db, "s", in(service.StateFailed))
	send(t, db, "s", service.Command{ID: "odd", Command: host.Command{Type: "answer", Question: "none", Choice: core.ChoiceOnce}})
	if r := last(results(t, db, "s", "odd")); r.Outcome != "error" {
		t.Errorf("an answer to no question: %+v", r)
	}
	send(t, db, "s", rounds("again", 0))
	if r := last(results(t, db, "s", "again")); r.Text != "Better." {
		t.Errorf("another input: %+v", r)
	}
	if s := until(t, db, "s", in(service.State(core.StateIdle))); s.Error != "" {
		t.Errorf("the session is idle with error %s", s.Error)
	}
	if got := bodies[event.Result](whole(t, db, "s")); len(got) != 3 {
		t.Errorf("%d results", len(got))
	}
}

// TestDeadline: a question that nobody answers is denied, and the session continues.
func TestDeadline(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Ask)
	send(t, db, "s", rounds("in", 1))
	w, err := service.NewWorker(service.WorkerOptions{Engine: db, Open: opener(t.TempDir(), filepath.Join(t.TempDir(), "effects")), AnswerWithin: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	defer running.Wait()
	defer cancel()
	var denied event.Answer
	for r, err := range db.Watch(ctx, tenant, "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := r.Event.Body.(event.Answer); ok {
			denied = b
		}
		if b, ok := r.Event.Body.(event.Result); ok && b.Outcome == string(core.StopDone) {
			break
		}
	}
	if denied.Choice != string(core.ChoiceDeny) || !strings.HasPrefix(denied.Reason, "Nobody answered in time") {
		t.Errorf("the answer is %+v", denied)
	}
	if s := until(t, db, "s", in(service.State(core.StateIdle))); len(s.Questions) > 0 || !s.Deadline.IsZero() {
		t.Errorf("the session still has questions %v until %v", s.Questions, s.Deadline)
	}
}

// TestDeleted: a session that is deleted while it runs is gone, with its subagents.
func TestDeleted(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	asked := make(chan struct{})
	p := coretest.Model(
		coretest.CallTools(model.ToolCall{ID: "1", Name: "spawn_agent", Args: `{"task":"think"}`}),
		coretest.Turn{Block: make(chan struct{}), Hook: func(*model.Request) { close(asked) }},
	)
	send(t, db, "none", rounds("in", 0))
	send(t, db, "s", rounds("in", 0))
	runWorker(t, db, with(t.TempDir(), p), 4)
	<-asked
	var child string
	for r, err := range db.Watch(t.Context(), tenant, "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := r.Event.Body.(event.SubagentStart); ok {
			child = "s/" + b.Child
			break
		}
	}
	if len(whole(t, db, child)) == 0 {
		t.Errorf("the subagent %s has no log", child)
	}
	if err := db.Delete(t.Context(), tenant, "s"); err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(t.Context(), tenant, "none"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Get(t.Context(), tenant, "s"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the deleted session: %v", err)
	}
	for _, id := range []string{"s", child} {
		if log := whole(t, db, id); len(log) != 0 {
			t.Errorf("%s has %d events", id, len(log))
		}
	}
}

// TestDeltas: who watches sees an answer while it is made.
func TestDeltas(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	begin, end := make(chan struct{}), make(chan struct{})
	send(t, db, "s", rounds("in", 0))
	runWorker(t, db, with(t.TempDir(), coretest.Model(coretest.Turn{Hook: func(*model.Request) { <-begin }, Text: "So far", Block: end})), 4)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r, err := range db.Watch(ctx, tenant, "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := r.Event.Body.(type) {
		case event.LLMStart:
			close(begin)
		case event.MessageDelta:
			if b.Text != "So far" || r.Cursor != 0 {
				t.Errorf("delta %q with cursor %d", b.Text, r.Cursor)
			}
			close(end)
		case event.Message:
			return
		}
	}
}

// TestCheck refuses what a session of a service cannot do.
func TestCheck(t *testing.T) {
	for _, c := range []host.Command{
		{}, {Type: "rewind"}, {Type: "close"}, {Type: "input"}, {Type: "input", When: "steer", Content: rounds("", 0).Content}, {Type: "cancel", Work: "w"},
	} {
		var e *host.Error
		if err := (service.Command{ID: "c", Command: c}).Check(); !errors.As(err, &e) || e.Code != host.CodeInvalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := rounds("c", 1).Check(); err != nil {
		t.Error(err)
	}
}
