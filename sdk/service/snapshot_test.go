package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// own creates a session with a workspace that is not shared.
func own(t *testing.T, e service.Engine, id string) {
	t.Helper()
	verdict, err := json.Marshal(core.Allow)
	if err != nil {
		t.Fatal(err)
	}
	err = e.Create(t.Context(), service.Session{
		Tenant: tenant, ID: id, Spec: verdict, State: service.StateQueued, Workspace: workspace.Spec{Directory: workspace.New},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// unsaving is an engine that fails to keep outputs while it is broken: it says so of those
// that it has, or it hangs.
type unsaving struct {
	service.Engine
	broken, hangs atomic.Bool
	failed        sync.Map // handles
}

func (e *unsaving) PutOutput(ctx context.Context, tenant, id, handle string, content io.Reader) error {
	switch {
	case !e.broken.Load():
		return e.Engine.PutOutput(ctx, tenant, id, handle, content)
	case e.hangs.Load():
		<-ctx.Done()
		return context.Cause(ctx)
	}
	e.failed.Store(handle, true)
	return errors.Join(e.Engine.PutOutput(ctx, tenant, id, handle, content), errors.New("the object store is full"))
}

// swept waits until nothing is left of what it failed to keep.
func (e *unsaving) swept(t *testing.T, id string) {
	t.Helper()
	for handle := range e.failed.Range {
		for end := time.Now().Add(coretest.Patience); ; time.Sleep(5 * time.Millisecond) {
			f, err := e.Store(tenant, id).Open(t.Context(), handle.(string)) // may fail while it is being removed
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err == nil {
				err = f.Close()
			}
			if time.Now().After(end) {
				t.Fatalf("%s is left, error %v", handle, err)
			}
		}
	}
}

// TestSaveFails: a session whose files cannot be saved has its results, and says so once.
// When they can be saved again, they are.
func TestSaveFails(t *testing.T) {
	db, _ := engine(t)
	e := &unsaving{Engine: db}
	own(t, db, "s")
	root, err := workspace.Open(workspace.Options{Dir: filepath.Join(t.TempDir(), "work")})
	if err != nil {
		t.Fatal(err)
	}
	effects := filepath.Join(t.TempDir(), "effects")
	turn := func(id string, limit time.Duration) *service.Snapshot {
		t.Helper()
		w, err := service.NewWorker(service.WorkerOptions{Engine: e, Open: opener(t.TempDir(), effects), Workspaces: root, SaveWithin: limit})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		defer running.Wait()
		defer cancel()
		send(t, db, "s", rounds(id, 1))
		if r := last(results(t, db, "s", id)); r.Outcome != string(core.StopDone) {
			t.Errorf("%s: result %+v", id, r)
		}
		s := until(t, db, "s", in(service.State(core.StateIdle))).Snapshot
		e.swept(t, "s")
		return s
	}
	if s := turn("one", 0); s == nil || s.Files == "" {
		t.Errorf("saved: %+v", s)
	}
	e.broken.Store(true)
	if s := turn("two", 0); s != nil {
		t.Errorf("refused: %+v", s)
	}
	count := 0
	for range e.failed.Range {
		count++
	}
	if count != 1 {
		t.Errorf("%d packs were refused", count)
	}
	e.hangs.Store(true)
	if s := turn("three", 50*time.Millisecond); s != nil {
		t.Errorf("hung: %+v", s)
	}
	e.broken.Store(false)
	if s := turn("four", 0); s == nil || s.Files == "" {
		t.Errorf("saved again: %+v", s)
	}
	after := ""
	for _, e := range whole(t, db, "s") {
		switch b := e.Body.(type) {
		case event.Result:
			after = b.Run
		case event.Warning:
			if b.Code != "unsaved" || after != "two" || !strings.Contains(b.Message, "the object store is full") {
				t.Errorf("behind %s: %+v", after, b)
			}
			after = "the warning"
		}
	}
	if got := bodies[event.Warning](whole(t, db, "s")); len(got) != 1 {
		t.Errorf("%d warnings: %+v", len(got), got)
	}
}
