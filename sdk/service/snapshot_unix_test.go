//go:build unix

package service_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// machine starts a worker with a work directory that it shares with nobody.
func (f *fleet) machine(t *testing.T, name string) (p process, dir string) {
	t.Helper()
	j := f.job
	j.Work = filepath.Join(f.job.Dir, name)
	return start(t, workerEnv, j), filepath.Join(j.Work, "sessions", tenant)
}

// files lists the files of a session's workspace on a machine.
func files(t *testing.T, dir, id string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, id, "work"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// moves returns the messages of the warnings that a session moved to another machine.
func moves(log []event.Event) (list []string) {
	for _, w := range bodies[event.Warning](log) {
		if w.Code == "moved" {
			list = append(list, w.Message)
		}
	}
	return list
}

// TestSnapshotMoves: when a machine dies in the middle of a turn, another one continues
// with the files of the end of the last turn, and the log and the model are told what is
// lost. When that one dies between turns, nothing is lost, and what the first machine still
// has of the session counts no more.
func TestSnapshotMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills processes and waits until their leases end")
	}
	f := newFleet(t, 1)
	own(t, f.db, "s")
	first, dir := f.machine(t, "first")
	send(t, f.db, "s", rounds("one", 2))
	done := until(t, f.db, "s", in(service.State(core.StateIdle)))
	if done.Snapshot == nil || len(done.Snapshot.Packs) != 1 {
		t.Fatalf("the snapshot of a finished turn: %+v", done.Snapshot)
	}
	hang := f.job.Effects + ".hang"
	if err := os.WriteFile(hang, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, f.db, "s", rounds("two", 1))
	f.await(t, 3)
	first.signal(t, os.Kill)
	if err := os.Remove(hang); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir, "s"); !slices.Equal(got, []string{"c0", "c1", "c3"}) {
		t.Fatalf("the first machine has %v", got)
	}

	second, dir2 := f.machine(t, "second")
	log := results(t, f.db, "s", "two")
	if got := moves(log); len(got) != 1 || !strings.Contains(got[0], "is lost") {
		t.Errorf("warnings %q", got)
	}
	if told := bodies[event.Steering](log); len(told) != 1 || told[0].Source != "system" || !strings.Contains(told[0].Content.Text(), "Look at the files") {
		t.Errorf("the model was told %+v", told)
	}
	until(t, f.db, "s", func(s service.Session) bool {
		return s.State == service.State(core.StateIdle) && s.Snapshot != nil && s.Snapshot.After > done.Snapshot.After
	})
	if got := files(t, dir2, "s"); !slices.Equal(got, []string{"c0", "c1"}) {
		t.Errorf("the second machine has %v", got)
	}

	second.signal(t, os.Kill)
	f.machine(t, "first")
	send(t, f.db, "s", rounds("three", 1))
	log = results(t, f.db, "s", "three")
	if got := moves(log); len(got) != 2 || strings.Contains(got[1], "is lost") {
		t.Errorf("warnings %q", got)
	}
	if told := bodies[event.Steering](log); len(told) != 1 {
		t.Errorf("the model was told %+v", told)
	}
	if got := files(t, dir, "s"); len(got) != 3 || !slices.Equal(got[:2], []string{"c0", "c1"}) || got[2] == "c3" {
		t.Errorf("the first machine has %v now", got)
	}
	if err := f.db.Delete(t.Context(), tenant, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Store(tenant, "s").Open(t.Context(), core.HandlePrefix+done.Snapshot.Packs[0].Name); err == nil {
		t.Error("the deleted session still has a pack")
	}
}

// TestSnapshotAtShutdown: a worker that ends in the middle of a turn saves the files as they
// are then, so that another machine loses nothing.
func TestSnapshotAtShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs processes")
	}
	f := newFleet(t, 1)
	own(t, f.db, "s")
	first, _ := f.machine(t, "first")
	hang := f.job.Effects + ".hang"
	if err := os.WriteFile(hang, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, f.db, "s", rounds("in", 1))
	f.await(t, 1)
	first.end(t)
	if err := os.Remove(hang); err != nil {
		t.Fatal(err)
	}
	left, err := f.db.Get(t.Context(), tenant, "s")
	if err != nil || left.Snapshot == nil || left.Snapshot.Files == "" {
		t.Fatalf("the snapshot of a turn that is not finished: %+v, %v", left.Snapshot, err)
	}
	_, dir := f.machine(t, "second")
	log := results(t, f.db, "s", "in")
	if got := moves(log); len(got) != 1 || strings.Contains(got[0], "is lost") {
		t.Errorf("warnings %q", got)
	}
	if got := files(t, dir, "s"); !slices.Contains(got, "c0") {
		t.Errorf("the second machine has %v", got)
	}
}
