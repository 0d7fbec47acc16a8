package service_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// tiring is an engine whose leases say how often their sessions were tried.
type tiring struct {
	service.Engine
	tries atomic.Int64
}

func (e *tiring) Take(ctx context.Context) (service.Lease, error) {
	l, err := e.Engine.Take(ctx)
	return tried{l, int(e.tries.Load())}, err
}

type tried struct {
	service.Lease
	tries int
}

func (l tried) Tries() int { return l.tries }

// failing opens sessions as next does, unless it is broken.
type failing struct {
	broken atomic.Bool
	next   service.Opener
}

func (f *failing) open(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
	if f.broken.Load() {
		return host.Opened{}, errors.New("no such repository")
	}
	return f.next(ctx, s, base)
}

// TestGiveUp: an input of a session that cannot be opened has a result that says why,
// after some tries, and another input continues the session.
func TestGiveUp(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	e := &tiring{Engine: db}
	e.tries.Store(100)
	f := &failing{next: with(t.TempDir(), coretest.Model(coretest.Say("Better.")))}
	f.broken.Store(true)
	send(t, db, "s", rounds("in", 0))
	runWorker(t, e, f.open, 4)
	if r := last(results(t, db, "s", "in")); r.Outcome != "error" || r.Error == nil || !strings.Contains(r.Error.Message, "no such repository") {
		t.Errorf("result %+v", r)
	}
	if s := until(t, db, "s", in(service.StateFailed)); !strings.Contains(s.Error, "no such repository") {
		t.Errorf("the session failed with %q", s.Error)
	}
	f.broken.Store(false)
	send(t, db, "s", rounds("again", 0))
	if r := last(results(t, db, "s", "again")); r.Text != "Better." {
		t.Errorf("another input: %+v", r)
	}
	until(t, db, "s", in(service.State(core.StateIdle)))
	if got := bodies[event.Result](whole(t, db, "s")); len(got) != 2 {
		t.Errorf("%d results", len(got))
	}
}

// TestCancelUnopened: a cancel ends the inputs of a session that cannot be opened.
func TestCancelUnopened(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	f := &failing{next: with(t.TempDir(), coretest.Model(coretest.Say("Better.")))}
	f.broken.Store(true)
	send(t, db, "s", rounds("in", 0))
	runWorker(t, &tiring{Engine: db}, f.open, 4)
	until(t, db, "s", func(s service.Session) bool { return strings.Contains(s.Error, "no such repository") })
	send(t, db, "s", service.Command{ID: "stop", Command: host.Command{Type: "cancel"}})
	if r := last(results(t, db, "s", "in")); r.Outcome != "cancelled" {
		t.Errorf("result %+v", r)
	}
	until(t, db, "s", in(service.StateFailed))
}

// TestCancelOpening: a cancel ends an input whose session is still being opened, and
// another input continues the session.
func TestCancelOpening(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "s", core.Allow)
	next := with(t.TempDir(), coretest.Model(coretest.Say("Better.")))
	opening := make(chan struct{}, 1)
	var opened atomic.Int64
	send(t, db, "s", rounds("in", 0))
	runWorker(t, db, func(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
		if opened.Add(1) > 1 {
			return next(ctx, s, base)
		}
		opening <- struct{}{}
		<-ctx.Done() // such as a server that does not start
		return host.Opened{}, ctx.Err()
	}, 4)
	<-opening
	send(t, db, "s", service.Command{ID: "stop", Command: host.Command{Type: "cancel"}})
	if r := last(results(t, db, "s", "in")); r.Outcome != "cancelled" {
		t.Errorf("result %+v", r)
	}
	if s := until(t, db, "s", in(service.StateFailed)); !strings.Contains(s.Error, "cancelled while") {
		t.Errorf("the session failed with %q", s.Error)
	}
	send(t, db, "s", rounds("again", 0))
	if r := last(results(t, db, "s", "again")); r.Text != "Better." {
		t.Errorf("another input: %+v", r)
	}
}
