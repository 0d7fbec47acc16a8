package plugins_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// TestManifestBoundsTheProcess has a plugin attempt what a manifest must allow:
// without a sandbox each attempt succeeds, with one it fails, and it succeeds
// again where the manifest allows it.
func TestManifestBoundsTheProcess(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer server.Close()
	pl := newPlace(t)
	user := t.TempDir() // the person's home
	for _, file := range []string{filepath.Join(pl.workspace, "main.go"), filepath.Join(user, ".secret"), filepath.Join(pl.home, "settings.json")} {
		if err := os.WriteFile(file, []byte("private"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pl.link(t, "good", "good:good", nil)
	for _, a := range []struct {
		name   string
		try    what
		manner string // of the manifest that allows it
		value  any
	}{
		{"read the workspace", what{What: "read", Path: filepath.Join(pl.workspace, "main.go")}, "read", []string{"$WORKSPACE"}},
		{"write the workspace", what{What: "write", Path: filepath.Join(pl.workspace, "new")}, "write", []string{"$WORKSPACE"}},
		{"read the home", what{What: "read", Path: filepath.Join(user, ".secret")}, "read", []string{"$HOME/.secret"}},
		{"read the agent's settings", what{What: "read", Path: filepath.Join(pl.home, "settings.json")}, "read", []string{pl.home + "/settings.json"}},
		{"write beside itself", what{What: "write", Path: filepath.Join(pl.home, "new")}, "write", []string{pl.home}},
		{"connect", what{What: "connect", URL: server.URL}, "network", []string{"*"}},
		{"run a program that reads", what{What: "run and read", Path: filepath.Join(user, ".secret")}, "read", []string{"$HOME"}},
	} {
		t.Run(a.name, func(t *testing.T) {
			for _, bounds := range []struct {
				mode  sandbox.Mode
				allow bool
				fails bool
			}{
				{sandbox.ModeOff, false, false},
				{sandbox.ModeRequire, false, true},
				{sandbox.ModeRequire, true, false},
			} {
				one := *pl
				one.home = t.TempDir()
				one.link(t, "good", "good:good", func(s map[string]any) {
					if bounds.allow {
						s["manifest"] = map[string]any{a.manner: a.value}
					}
				})
				o := one.options()
				o.Sandbox, o.UserHome = bounds.mode, user

				p := only(t, open(t, o))
				got, err := call(t, t.Context(), p, "misbehave", a.try, "")
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(got.text, "the sandbox does not work here") {
					t.Skipf("no sandbox on this machine: %s", got.text)
				}
				if failed := got.Code != ""; failed != bounds.fails {
					t.Errorf("sandbox %q, allowed %v: failed is %v, want %v: %s", bounds.mode, bounds.allow, failed, bounds.fails, got.text)
				}
			}
		})
	}
}
