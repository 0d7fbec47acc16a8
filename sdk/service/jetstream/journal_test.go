package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// serve starts a server, and returns how to end it before the test does.
func serve(t *testing.T, dir string) (s *Server, end func()) {
	t.Helper()
	s, err := Serve(ServeOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(s.Close)
	t.Cleanup(end)
	return s, end
}

func open(t *testing.T, s *Server) *DB {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return openOn(t, nc)
}

func openOn(t *testing.T, nc *nats.Conn) *DB {
	t.Helper()
	d, err := Open(t.Context(), nc, Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func journal(t *testing.T, d *DB, id string) core.Journal {
	t.Helper()
	j, err := d.Journal(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func warning(seq event.Seq) event.Event {
	return event.Event{V: event.Version, Seq: seq, Session: "s", Body: event.Warning{Code: fmt.Sprint(seq)}}
}

func appended(t *testing.T, j core.Journal, from, to event.Seq) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		if err := j.Append(t.Context(), warning(seq)); err != nil {
			t.Fatalf("append %d: %v", seq, err)
		}
	}
}

// replay returns the numbers of the records, and the error at its end.
func replay(t *testing.T, j core.Journal) (list []event.Seq, err error) {
	t.Helper()
	for e, err := range j.Replay(t.Context(), 0) {
		if err != nil {
			return list, err
		}
		list = append(list, e.Seq)
	}
	return list, nil
}

func complete(t *testing.T, j core.Journal, want event.Seq) {
	t.Helper()
	list, err := replay(t, j)
	if err != nil || len(list) != int(want) {
		t.Fatalf("%d records, want %d, error %v", len(list), want, err)
	}
	for i, seq := range list {
		if seq != event.Seq(i+1) {
			t.Fatalf("record %d is %d", i+1, seq)
		}
	}
}

func TestJournal(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	var n atomic.Int64
	coretest.TestJournal(t, func(t *testing.T) coretest.OpenJournal {
		id := fmt.Sprintf("s%d", n.Add(1))
		return func() (core.Journal, error) { return d.Journal(t.Context(), "acme", id) }
	})
}

// TestReadersLeaveNothing checks that who read or followed a session leaves no consumer
// behind: a server has room for a thousand.
func TestReadersLeaveNothing(t *testing.T) {
	s, end := serve(t, t.TempDir())
	defer end()
	d := open(t, s)
	j := journal(t, d, "s")
	appended(t, j, 1, 3)
	complete(t, j, 3)
	for r, err := range d.Watch(t.Context(), "acme", "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.Seq == 3 {
			break
		}
	}
	for e, err := range j.Replay(t.Context(), 0) {
		if err != nil || e.Seq != 1 {
			t.Fatal(e.Seq, err)
		}
		break
	}
	info, err := d.stream.Info(t.Context())
	if err != nil || info.State.Consumers != 0 {
		t.Errorf("%d consumers are left, %v", info.State.Consumers, err)
	}
}

// TestTenants: equal ids of two tenants are two sessions, and names that are no
// tokens of a subject are refused.
func TestTenants(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	appended(t, journal(t, d, "s"), 1, 2)
	other, err := d.Journal(t.Context(), "globex", "s")
	if err != nil {
		t.Fatal(err)
	}
	complete(t, other, 0)
	for _, name := range []string{"", "*", ">", "a.b", "a b", "../x", strings.Repeat("x", 1000)} {
		if _, err := d.Journal(t.Context(), "acme", name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("session %.20q: error %v", name, err)
		}
		if _, err := d.Journal(t.Context(), name, "s"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("tenant %.20q: error %v", name, err)
		}
		if _, err := d.Store(name, "s").PutBlob(t.Context(), nil); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("store of tenant %.20q: error %v", name, err)
		}
	}
}

// TestTakeOver: of many that take a session over and write at the same time, the last
// one wins, and no record is lost or doubled.
func TestTakeOver(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	var stored atomic.Int64
	var work sync.WaitGroup
	for w := range 8 {
		work.Go(func() {
			j, err := d.Journal(t.Context(), "acme", "s")
			if err != nil {
				t.Error(err)
				return
			}
			for i := range event.Seq(20) {
				err := j.Append(t.Context(), warning(event.Seq(w+1)*1000+i))
				if errors.Is(err, core.ErrFenced) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				stored.Add(1)
			}
		})
	}
	work.Wait()
	list, err := replay(t, journal(t, d, "s"))
	seen := map[event.Seq]bool{}
	for _, seq := range list {
		if seen[seq] {
			t.Errorf("record %d is there twice", seq)
		}
		seen[seq] = true
	}
	if err != nil || int64(len(list)) != stored.Load() {
		t.Errorf("%d records, %d were acknowledged; error %v", len(list), stored.Load(), err)
	}
}

// TestTakeOverOfASync: a session whose owner writes and syncs can be taken over at any
// time.
func TestTakeOverOfASync(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	for range 20 {
		j := journal(t, d, "s")
		var work sync.WaitGroup
		work.Go(func() {
			for seq := event.Seq(1); ; seq++ {
				if err := errors.Join(j.Append(t.Context(), warning(seq)), j.Sync(t.Context())); err != nil {
					if !errors.Is(err, core.ErrFenced) {
						t.Error(err)
					}
					return
				}
			}
		})
		journal(t, d, "s")
		work.Wait()
	}
}

// muted is a connection that stops to hear from the server.
type muted struct {
	net.Conn
	mute *atomic.Bool
}

func (c muted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for c.mute.Load() {
		time.Sleep(time.Millisecond)
	}
	return n, err
}

type muteDialer struct {
	server *Server
	mute   *atomic.Bool
}

func (d muteDialer) Dial(string, string) (net.Conn, error) {
	c, err := d.server.server.InProcessConn()
	return muted{c, d.mute}, err
}

// TestLostAnswers: the answer to an append is lost. It is stored once.
func TestLostAnswers(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	var mute atomic.Bool
	nc, err := nats.Connect("nats://in-process", nats.SetCustomDialer(muteDialer{s, &mute}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	j := journal(t, openOn(t, nc), "s")
	appended(t, j, 1, 3)
	mute.Store(true)
	heard := time.AfterFunc(publishTimeout+publishTimeout/4, func() { mute.Store(false) })
	defer heard.Stop()
	appended(t, j, 4, 6)
	complete(t, j, 6)

	// Given up on, and appended again.
	mute.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), publishTimeout/4)
	defer cancel()
	if err := j.Append(ctx, warning(7)); err == nil {
		t.Error("an append without an answer succeeds")
	}
	mute.Store(false)
	appended(t, j, 7, 8)
	complete(t, journal(t, open(t, s), "s"), 8)
}

// TestDamage flips one bit of a record on disk: a replay says so, whether the server
// still has its index or not.
func TestDamage(t *testing.T) {
	for _, index := range []bool{true, false} {
		dir := t.TempDir()
		s, end := serve(t, dir)
		j := journal(t, open(t, s), "s")
		appended(t, j, 1, 6)
		for _, err := range []error{
			j.(*sessionLog).AppendAll(t.Context(), []event.Event{warning(7), warning(8)}), j.Append(t.Context(), warning(9)), j.Sync(t.Context()),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		end()
		flip(t, dir, `"code":"7"`)
		if !index {
			removed := 0
			_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				if err == nil && filepath.Base(path) == "index.db" {
					removed++
					return os.Remove(path)
				}
				return err
			})
			if removed == 0 {
				t.Fatal("the server has no index")
			}
		}
		s, end = serve(t, dir)
		var list []event.Seq
		j, err := open(t, s).Journal(t.Context(), "acme", "s")
		if err == nil {
			list, err = replay(t, j)
		}
		if !errors.Is(err, ErrDamaged) || len(list) > 6 {
			t.Errorf("index %v: %d records, error %v, want 6 at most and ErrDamaged", index, len(list), err)
		}
		end()
	}
}

// flip changes a bit of a text in the server's files.
func flip(t *testing.T, dir, text string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".blk" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := bytes.Index(data, []byte(text))
		if at < 0 {
			return nil
		}
		found++
		data[at+len(text)-2] ^= 1
		return os.WriteFile(path, data, 0o600)
	})
	if err != nil || found != 1 {
		t.Fatalf("%q is in %d files, error %v", text, found, err)
	}
}

// TestStore keeps outputs and blobs, and deletes them with their session.
func TestStore(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	d := open(t, s)
	st := d.Store("acme", "s")
	text := strings.Repeat("line\n", 1<<20)
	out, err := st.Create(t.Context(), core.OutputMeta{Tool: "shell", Call: "c1", Time: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, text); err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 4)
	if _, err := out.ReadAt(part, 5); err != nil || string(part) != "line" || out.Path() != "" {
		t.Errorf("%q while it is written, path %q, error %v", part, out.Path(), err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	hash, err := st.PutBlob(t.Context(), []byte("image"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := st.PutBlob(t.Context(), []byte("image")); err != nil || again != hash {
		t.Errorf("again: %s, %v", again, err)
	}
	for id, want := range map[string]string{out.Handle(): text, hash: "image"} {
		f, err := d.Store("acme", "s").Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != want || f.Close() != nil {
			t.Errorf("%s: %d bytes, error %v", id, len(got), err)
		}
	}
	for _, other := range []core.ContextStore{d.Store("acme", "other"), d.Store("globex", "s")} {
		if _, err := other.Open(t.Context(), out.Handle()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("another session opens the output: %v", err)
		}
	}

	j := journal(t, d, "s")
	appended(t, j, 1, 3)
	if err := d.Delete(t.Context(), "acme", "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Open(t.Context(), hash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the output of a deleted session: %v", err)
	}
	if err := j.Append(t.Context(), warning(4)); !errors.Is(err, core.ErrFenced) {
		t.Errorf("the writer of a deleted session: %v", err)
	}
	complete(t, journal(t, d, "s"), 0)
	left, err := filepath.Glob(filepath.Join(d.opts.TempDir, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// TestSession resumes a session that another machine ran, with its outputs.
func TestSession(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	for i, answer := range []string{"One.", "Two."} {
		d := open(t, s)
		p := coretest.Model(coretest.Say(answer))
		session, err := core.New(t.Context(), core.Config{ID: "s", Provider: p, Env: env.NewMemory("/work", nil), Policy: coretest.AllowAll, Journal: journal(t, d, "s"), Store: d.Store("acme", "s")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Submit(t.Context(), core.Input{Content: model.TextParts("go")}); err != nil {
			t.Error(err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		if got := len(p.Requests()[0].Messages); got != 1+2*i {
			t.Errorf("session %d sends %d messages", i+1, got)
		}
	}
}
