package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// leased opens the sessions with a short lease.
func leased(t *testing.T, s *Server, term time.Duration) *DB {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	d, err := Open(t.Context(), nc, Options{TempDir: t.TempDir(), Lease: term})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func send(t *testing.T, d *DB, id, command string) {
	t.Helper()
	if err := d.Send(t.Context(), "acme", id, service.Command{ID: command, Command: host.Command{Type: "input"}}); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, d *DB) service.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := d.Take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// nothing checks that there is no work.
func nothing(t *testing.T, d *DB) {
	t.Helper()
	info, err := d.js.Stream(t.Context(), d.opts.Name+"-work")
	if err != nil {
		t.Fatal(err)
	}
	if n := info.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("%d sessions have work, want none", n)
	}
}

func commands(t *testing.T, d *DB, id string) (list []string) {
	t.Helper()
	all, err := d.Commands(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		list = append(list, c.ID)
	}
	return list
}

// TestQueue: a session is at one worker at a time, whatever is sent, its commands stay
// until they are removed, and what comes while the lease ends is not forgotten.
func TestQueue(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := leased(t, s, time.Minute)
	send(t, d, "a", "c1")
	send(t, d, "a", "c2")
	send(t, d, "b", "c1")
	send(t, d, "a", "c1") // again
	a, b := take(t, d), take(t, d)
	if _, id := a.Session(); id != "a" {
		a, b = b, a
	}
	if tenant, id := b.Session(); tenant != "acme" || id != "b" {
		t.Fatalf("the second session is %s of %s", id, tenant)
	}
	if got := commands(t, d, "a"); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Errorf("commands %q", got)
	}
	list, err := d.Commands(t.Context(), "acme", "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context(), "acme", "a", list[1].Number); err != nil {
		t.Fatal(err)
	}
	if got := commands(t, d, "a"); len(got) != 0 {
		t.Errorf("removed commands %q", got)
	}

	// Sent behind the worker's last look, before it ends the lease.
	send(t, d, "a", "c3")
	select {
	case <-a.Sent():
	case <-time.After(time.Minute):
		t.Error("the worker does not learn of a command")
	}
	if err := a.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a = take(t, d); !slices.Equal(commands(t, d, "a"), []string{"c3"}) || a.Tries() != 0 {
		t.Errorf("commands %q, tried %d times", commands(t, d, "a"), a.Tries())
	}

	if err := b.Release(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if b = take(t, d); b.Tries() != 1 {
		t.Errorf("tried %d times", b.Tries())
	}
	for _, l := range []service.Lease{a, b} {
		_, id := l.Session()
		list, err := d.Commands(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Remove(t.Context(), "acme", id, list[0].Number), l.Done(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	nothing(t, d)
}

// TestLease: a worker that falls silent loses its session to another one, also if the
// item of work got lost; one that renews keeps it.
func TestLease(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := leased(t, s, 300*time.Millisecond)
	send(t, d, "s", "c1")
	take(t, d)
	l := take(t, d) // the first one is silent
	if l.Tries() != 1 {
		t.Errorf("tried %d times", l.Tries())
	}
	if err := l.Done(t.Context()); err != nil { // which keeps the command: there is work
		t.Fatal(err)
	}
	renewed := time.Now()
	l = take(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan time.Time, 1)
	go func() {
		defer close(lost)
		if l, err := d.Take(ctx); err == nil {
			lost <- time.Now()
			l.Close()
		}
	}()
	for end := time.Now().Add(2 * l.Term()); time.Now().Before(end); {
		select {
		case at := <-lost: // on a slow machine
			if at.Sub(renewed) < l.Term() {
				t.Fatalf("the session is given away %v after its lease of %v was renewed", at.Sub(renewed), l.Term())
			}
			end = time.Now()
		case <-time.After(l.Term() / 10):
			renewed = time.Now()
			if err := l.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	<-lost

	// The sender died before it asked for a worker.
	work, err := d.js.Stream(t.Context(), "agent-work")
	if err != nil {
		t.Fatal(err)
	}
	if err := work.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	take(t, d)
}

// TestIndex keeps sessions, and refuses what was decided on an old entry.
func TestIndex(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	for i := range 5 {
		e := service.Session{Tenant: "acme", ID: fmt.Sprintf("s%d", i), State: service.StateQueued, Spec: []byte(`{"model":"m"}`)}
		if err := d.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := d.Create(t.Context(), e); !errors.Is(err, fs.ErrExist) {
			t.Errorf("created twice: %v", err)
		}
	}
	if err := d.Create(t.Context(), service.Session{Tenant: "globex", ID: "s9"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for before := ""; ; {
		page, err := d.List(t.Context(), service.Filter{Tenant: "acme", Before: before, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			got, before = append(got, e.ID), e.ID
		}
	}
	if !slices.Equal(got, []string{"s4", "s3", "s2", "s1", "s0"}) {
		t.Errorf("pages %q", got)
	}

	e, err := d.Get(t.Context(), "acme", "s1")
	if err != nil || string(e.Spec) != `{"model":"m"}` {
		t.Fatalf("%+v, %v", e, err)
	}
	old := e
	e.State, e.Questions = "parked", []event.Question{{QID: "q"}}
	if err := d.Update(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	e.State = "idle"
	if err := d.Update(t.Context(), &e); err != nil {
		t.Errorf("a second update: %v", err)
	}
	if err := d.Update(t.Context(), &old); !errors.Is(err, core.ErrFenced) {
		t.Errorf("an update of an old entry: %v", err)
	}
	if err := d.Delete(t.Context(), "acme", "s1"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), "acme", "s1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted session: %v", err)
	}
	if err := d.Update(t.Context(), &e); !errors.Is(err, core.ErrFenced) {
		t.Errorf("an update of a deleted session: %v", err)
	}
	if _, err := d.Get(t.Context(), "globex", "s1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another tenant's session: %v", err)
	}
}

// watched reads n records behind a cursor.
func watched(t *testing.T, d *DB, id string, cursor uint64, n int) (list []service.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r, err := range d.Watch(ctx, "acme", id, cursor) {
		if err != nil {
			t.Fatal(err)
		}
		if list = append(list, r); len(list) == n {
			break
		}
	}
	return list
}

// TestWatch: who watches gets all records behind a cursor, once, those of several
// owners, and long ones, and meanwhile the deltas.
func TestWatch(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	long := event.Event{V: event.Version, Seq: 4, Session: "s", Body: event.Warning{Message: strings.Repeat("x", maxPayload)}}
	appended(t, journal(t, d, "s"), 1, 2)
	second := journal(t, d, "s")
	appended(t, second, 3, 3)
	if err := second.Append(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	appended(t, journal(t, d, "s/child"), 1, 1)
	appended(t, journal(t, d, "other"), 1, 1)
	list := watched(t, d, "s", 0, 4)
	for i, r := range list {
		if r.Event.Seq != event.Seq(i+1) || i > 0 && r.Cursor <= list[i-1].Cursor {
			t.Errorf("record %d: cursor %d, event %d", i+1, r.Cursor, r.Event.Seq)
		}
	}
	if again := watched(t, d, "s", list[1].Cursor, 2); again[0].Cursor != list[2].Cursor || again[1].Cursor != list[3].Cursor {
		t.Errorf("behind the second record: %d, %d", again[0].Cursor, again[1].Cursor)
	}
	if child := watched(t, d, "s/child", 0, 1); child[0].Event.Seq != 1 {
		t.Errorf("the subagent's: %+v", child)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	delta := func(seq, after event.Seq) {
		if err := d.Show(t.Context(), "acme", "s", event.Event{V: event.Version, Seq: seq, Session: "s", Body: event.MessageDelta{Text: "so far"}}, after); err != nil {
			t.Error(err)
		}
	}
	var got []event.Seq
	for r, err := range d.Watch(ctx, "acme", "s", list[2].Cursor) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Event.Seq)
		switch r.Event.Seq {
		case 4:
			delta(2, 1) // of a worker that was taken over
			delta(5, 4)
			delta(7, 6) // before the record that it follows
		case 5:
			if r.Cursor != 0 {
				t.Errorf("the delta has cursor %d", r.Cursor)
			}
			appended(t, second, 6, 6)
		}
		if r.Event.Seq == 7 {
			break
		}
	}
	if !slices.Equal(got, []event.Seq{4, 5, 6, 7}) {
		t.Errorf("events %d", got)
	}
}

// TestTogether: events that were appended together are those of any log, and who watches
// can continue behind each.
func TestTogether(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	j := journal(t, d, "s").(*sessionLog)
	all := func(j *sessionLog, from, to event.Seq, more ...event.Event) error {
		var list []event.Event
		for seq := from; seq <= to; seq++ {
			list = append(list, warning(seq))
		}
		return j.AppendAll(t.Context(), append(list, more...))
	}
	long := event.Event{V: event.Version, Seq: 7, Session: "s", Body: event.Warning{Message: strings.Repeat("x", maxPayload)}}
	for _, err := range []error{all(j, 1, 1), all(j, 2, 4), all(j, 5, 6, long), all(j, 1, 0), all(j, 8, 8)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := all(j, 9, 9+service.MaxTogether); err == nil {
		t.Error("too many are appended")
	}
	complete(t, journal(t, d, "s"), 8)
	if err := all(j, 9, 12); !errors.Is(err, core.ErrFenced) {
		t.Errorf("appended by a former owner: %v", err)
	}
	complete(t, journal(t, d, "s"), 8)
	list := watched(t, d, "s", 0, 8)
	for i, r := range list {
		if r.Event.Seq != event.Seq(i+1) || i > 0 && r.Cursor <= list[i-1].Cursor {
			t.Errorf("event %d: cursor %d, number %d", i+1, r.Cursor, r.Event.Seq)
		}
		if i+1 == len(list) {
			break
		}
		for k, again := range watched(t, d, "s", r.Cursor, len(list)-i-1) {
			if want := list[i+1+k]; again.Cursor != want.Cursor || again.Event.Seq != want.Event.Seq {
				t.Errorf("behind event %d: %d, want %d", i+1, again.Event.Seq, want.Event.Seq)
			}
		}
	}
}

// TestWatchRestart: who watches misses nothing when the server restarts.
func TestWatchRestart(t *testing.T) {
	dir := t.TempDir()
	port := ports(t, 1)[0]
	start := func() *Server {
		s, err := Serve(ServeOptions{Dir: dir, Host: "127.0.0.1", Port: port})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start()
	defer func() { s.Close() }()
	nc, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	d := openOn(t, nc)
	j := journal(t, d, "s")
	appended(t, j, 1, 5)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := event.Seq(0)
	for r, err := range d.Watch(ctx, "acme", "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.Seq != last+1 {
			t.Fatalf("event %d follows event %d", r.Event.Seq, last)
		}
		if last = r.Event.Seq; last == 5 {
			s.Close()
			s = start()
			appended(t, j, 6, 10)
		}
		if last == 10 {
			return
		}
	}
}

// TestValues: a value is set by whoever read the newest one.
func TestValues(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	for want := range 3 {
		data, revision, err := d.Value(t.Context(), "acme", "n")
		if err != nil || string(data) != strings.Repeat("x", want) {
			t.Fatalf("%q, %v", data, err)
		}
		if err := d.SetValue(t.Context(), "acme", "n", []byte(string(data)+"x"), revision); err != nil {
			t.Fatal(err)
		}
		if err := d.SetValue(t.Context(), "acme", "n", []byte("late"), revision); !errors.Is(err, core.ErrFenced) {
			t.Errorf("set twice: %v", err)
		}
	}
	if list, err := d.Tenants(t.Context(), "n"); err != nil || !slices.Equal(list, []string{"acme"}) {
		t.Errorf("tenants %q, %v", list, err)
	}
	if data, revision, err := d.Value(t.Context(), "globex", "n"); data != nil || revision != 0 || err != nil {
		t.Errorf("another tenant has %q, %d, %v", data, revision, err)
	}
	if _, _, err := d.Value(t.Context(), "acme", "a.b"); err == nil {
		t.Error("a name with a dot")
	}
}

// TestSent: who is told that a command was sent finds it, so that a cancel takes effect at
// once.
func TestSent(t *testing.T) {
	s, end := serve(t, t.TempDir())
	defer end()
	d := leased(t, s, time.Minute)
	send(t, d, "s", "first")
	l := take(t, d)
	for i := range 100 {
		id, sent := fmt.Sprint("c", i), make(chan error, 1)
		go func() {
			sent <- d.Send(t.Context(), "acme", "s", service.Command{ID: id, Command: host.Command{Type: "cancel"}})
		}()
		<-l.Sent()
		if got := commands(t, d, "s"); !slices.Contains(got, id) {
			t.Errorf("told of command %s, and there are %q", id, got)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
}
