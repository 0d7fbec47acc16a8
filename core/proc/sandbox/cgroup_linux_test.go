package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeGroups creates a tree of control groups, with the controllers that each has and
// those that it gives to groups below it.
func fakeGroups(t *testing.T, own string, all map[string][2]string) groups {
	t.Helper()
	g := groups{mount: t.TempDir(), self: filepath.Join(t.TempDir(), "cgroup")}
	write := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(g.self, "12:pids:/elsewhere\n0::"+own+"\n")
	for dir, c := range all {
		write(filepath.Join(g.mount, dir, "cgroup.controllers"), c[0])
		write(filepath.Join(g.mount, dir, "cgroup.subtree_control"), c[1])
		write(filepath.Join(g.mount, dir, "cgroup.procs"), "")
	}
	return g
}

func TestControlGroups(t *testing.T) {
	limits := Limits{Memory: 1 << 30, Processes: 512, CPU: time.Hour}
	const every = "cpuset cpu io memory pids"
	for name, a := range map[string]struct {
		own    string
		groups map[string][2]string
		parent string // of the group; "none" if there must be none
		files  map[string]string
	}{
		"below the own group":  {"/", map[string][2]string{"/": {every, "cpu memory pids"}}, "/", map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "pids.max": "512", "cpu.max": "00000 100000"}},
		"beside the own group": {"/app.slice/x.scope", map[string][2]string{"/": {every, ""}, "/app.slice": {"memory pids", "memory pids"}, "/app.slice/x.scope": {"", ""}}, "/app.slice", map[string]string{"memory.max": "1073741824", "pids.max": "512", "cpu.max": ""}},
		"nothing delegated":    {"/a/b", map[string][2]string{"/": {every, every}, "/a": {"", ""}, "/a/b": {"", ""}}, "none", nil},
		"version 1":            {"/", nil, "none", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := fakeGroups(t, a.own, a.groups)
			dir := g.create(limits)
			if a.parent == "none" {
				if dir != "" {
					t.Fatalf("created %s", dir)
				}
				return
			}
			if filepath.Dir(dir) != filepath.Join(g.mount, a.parent) {
				t.Fatalf("created %q, want it in %s", dir, a.parent)
			}
			if err := joinGroup(dir, 42); err != nil {
				t.Fatal(err)
			}
			a.files["cgroup.procs"] = "42"
			for file, want := range a.files {
				got, err := os.ReadFile(filepath.Join(dir, file))
				if want == "" && err == nil || !strings.HasSuffix(string(got), want) {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
			if g.create(Limits{}) != "" {
				t.Error("created one without limits")
			}
			left := filepath.Join(filepath.Dir(dir), groupPrefix+"left")
			if err := os.Mkdir(left, 0o755); err != nil {
				t.Fatal(err)
			}
			if g.create(limits) == "" {
				t.Error("created only one")
			}
			if _, err := os.Stat(left); err == nil {
				t.Error("an empty group of a killed agent stays")
			}
		})
	}
}
