package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// TestEmptyManifestSeesNothing: a plugin without a manifest reads the programs and
// libraries of the system and its own folder, and nothing else. It writes its data
// directory.
func TestEmptyManifestSeesNothing(t *testing.T) {
	pl := newPlace(t)
	user := t.TempDir()
	elsewhere, err := os.MkdirTemp("/var/tmp", "elsewhere-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(elsewhere) })
	secret, other := filepath.Join(user, "keys", "id"), filepath.Join(elsewhere, "other.go")
	if err := os.MkdirAll(filepath.Dir(secret), 0o755); err != nil {
		t.Fatal(err)
	}
	dotfile, store, neighbor := filepath.Join(user, ".config", "app.toml"), filepath.Join(pl.home, "sessions", "s.jsonl"), filepath.Join(pl.home, "plugins", "other", "plugin.json")
	for _, file := range []string{dotfile, store, neighbor} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{secret, other, dotfile, store, neighbor} {
		if err := os.WriteFile(file, []byte("private"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(pl.home, "plugin-data", "good", "state")
	for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		if _, err := pl.supervisor.Sandbox().Choose(t.Context(), mode); err != nil {
			t.Logf("%s: %v", mode, err)
			continue
		}
		for _, a := range []struct {
			name     string
			try      misbehavior
			manifest map[string]any
			ok       bool
		}{
			{"shadow", misbehavior{What: "read", Path: "/etc/shadow"}, nil, false},
			{"machine id", misbehavior{What: "read", Path: "/etc/machine-id"}, nil, false},
			{"another repository", misbehavior{What: "read", Path: other}, nil, false},
			{"another repository by the grant", misbehavior{What: "read", Path: other}, map[string]any{"read": []string{elsewhere}}, true},
			{"settings of a program", misbehavior{What: "read", Path: dotfile}, nil, false},
			{"sessions", misbehavior{What: "read", Path: store}, nil, false},
			{"another plugin", misbehavior{What: "read", Path: neighbor}, nil, false},
			{"a key", misbehavior{What: "read", Path: secret}, nil, false},
			{"a key below a granted directory", misbehavior{What: "read", Path: secret}, map[string]any{"read": []string{"$HOME"}}, false},
			{"a key by its name", misbehavior{What: "read", Path: secret}, map[string]any{"read": []string{"$HOME/keys"}}, true},
			{"names of the system", misbehavior{What: "read", Path: "/etc/passwd"}, nil, true},
			{"its own folder", misbehavior{What: "read"}, nil, true},
			{"its data", misbehavior{What: "write", Path: data}, nil, true},
		} {
			t.Run(string(mode)+"/"+a.name, func(t *testing.T) {
				dir := pl.link(t, "good", "good:good", func(s map[string]any) {
					if a.manifest != nil {
						s["manifest"] = a.manifest
					}
				})
				if a.try.Path == "" {
					a.try.Path = filepath.Join(dir, "plugin.json")
				}
				if _, err := os.Stat(a.try.Path); err != nil && a.try.What == "read" {
					t.Skip(err)
				}
				o := pl.options()
				o.Sandbox, o.UserHome, o.Masked = mode, user, []string{filepath.Join(user, "key*")}
				got, err := call(t, t.Context(), only(t, open(t, o)), "misbehave", a.try, "")
				if err != nil {
					t.Fatal(err)
				}
				if ok := got.Code == ""; ok != a.ok {
					t.Errorf("ok is %v, want %v: %s", ok, a.ok, got.text)
				}
				if _, err := os.Stat(data); a.try.Path == data && err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestLimits: a plugin that uses more memory, processes or processor time than its
// limit fails, and the error names the limit.
func TestLimits(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		for _, a := range []struct {
			what, says string
			limits     map[string]any
			only       sandbox.Mode
		}{
			{"use memory", "it may use 1024 MiB of memory (limits.memoryMb)", nil, ""},
			{"use memory", "it may use 256 MiB of memory", map[string]any{"memoryMb": 256}, ""},
			{"lack a thread", "1024 MiB of memory (limits.memoryMb) and 512 processes and threads (limits.processes)", map[string]any{"processes": 512}, ""},
			{"use processes", "resource temporarily unavailable", map[string]any{"processes": 100}, sandbox.ModeNamespace},
			{"use the processor", "it may use 1 seconds of processor time", map[string]any{"cpuSeconds": 1}, ""},
		} {
			t.Run(string(mode)+"/"+a.what, func(t *testing.T) {
				pl := newPlace(t)
				if _, err := pl.supervisor.Sandbox().Choose(t.Context(), mode); err != nil || a.only != "" && a.only != mode {
					t.Skip("not on this level here", err)
				}
				if testing.Short() && a.what == "use memory" {
					t.Skip("the race detector maps more memory than the limit")
				}
				pl.link(t, "good", "good:good", func(s map[string]any) {
					if a.limits != nil {
						s["manifest"] = map[string]any{"limits": a.limits}
					}
				})
				o := pl.options()
				o.Sandbox = mode
				got, err := call(t, t.Context(), only(t, open(t, o)), "misbehave", misbehavior{What: a.what}, "")
				if err != nil || got.Code == "" || !strings.Contains(got.text, a.says) {
					t.Errorf("error %v, code %q, want %q in\n%s", err, got.Code, a.says, got.text)
				}
			})
		}
	}
}
