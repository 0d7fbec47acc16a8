package plugins_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// TestManifestBoundsTheProcess lets a plugin attempt what a manifest must allow:
// each attempt succeeds without a sandbox, fails with one, and succeeds again if
// the manifest allows it.
func TestManifestBoundsTheProcess(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer server.Close()
	pl := newPlace(t)
	user := t.TempDir() // the user's home
	for _, file := range []string{filepath.Join(pl.workspace, "main.go"), filepath.Join(user, ".secret"), filepath.Join(pl.home, "settings.json")} {
		if err := os.WriteFile(file, []byte("private"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []struct {
		name   string
		try    misbehavior
		manner string // of the manifest that allows it
		value  any
	}{
		{"read the workspace", misbehavior{What: "read", Path: filepath.Join(pl.workspace, "main.go")}, "read", []string{"$WORKSPACE"}},
		{"write the workspace", misbehavior{What: "write", Path: filepath.Join(pl.workspace, "new")}, "write", []string{"$WORKSPACE"}},
		{"read the home", misbehavior{What: "read", Path: filepath.Join(user, ".secret")}, "read", []string{"$HOME/.secret"}},
		{"read the agent's settings", misbehavior{What: "read", Path: filepath.Join(pl.home, "settings.json")}, "read", []string{pl.home + "/settings.json"}},
		{"write beside itself", misbehavior{What: "write", Path: filepath.Join(pl.home, "new")}, "write", []string{pl.home}},
		{"connect", misbehavior{What: "connect", URL: server.URL}, "network", []string{"*"}},
		{"run a program that reads", misbehavior{What: "run and read", Path: filepath.Join(user, ".secret")}, "read", []string{"$HOME"}},
	} {
		t.Run(a.name, func(t *testing.T) {
			for _, bounds := range []struct {
				mode  sandbox.Mode
				allow bool
				fails bool
			}{
				{sandbox.ModeOff, false, false},
				{sandbox.ModeNamespace, false, true},
				{sandbox.ModeNamespace, true, false},
				{sandbox.ModeLandlock, false, true},
				{sandbox.ModeLandlock, true, false},
			} {
				t.Run(fmt.Sprintf("%s allowed=%v", bounds.mode, bounds.allow), func(t *testing.T) {
					pl.link(t, "good", "good:good", func(s map[string]any) {
						if bounds.allow {
							s["manifest"] = map[string]any{a.manner: a.value}
						}
					})
					o := pl.options()
					o.Sandbox, o.UserHome = bounds.mode, user

					p := only(t, open(t, o))
					got, err := call(t, t.Context(), p, "misbehave", a.try, "")
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(got.text, "the sandbox does not work on this machine") {
						t.Skip(got.text)
					}
					failed := got.Code != ""
					if a.try.What == "write" { // it may be in the private /tmp of the sandbox
						failed = os.Remove(a.try.Path) != nil
					}
					if failed != bounds.fails {
						t.Errorf("failed is %v, want %v: %s", failed, bounds.fails, got.text)
					}
				})
			}
		})
	}
}

// TestManifestNamesHosts lets a plugin connect to the hosts of its manifest, and
// to others.
func TestManifestNamesHosts(t *testing.T) {
	serve := func() string {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(server.Close)
		return server.URL
	}
	listed, other := serve(), serve()
	host, _ := strings.CutPrefix(listed, "http://")
	const noProxy = "HTTP_PROXY is not set"
	for _, a := range []struct {
		name    string
		mode    sandbox.Mode
		network []string
		try     misbehavior
		fails   string // part of the error; empty = success
	}{
		{"listed", sandbox.ModeNamespace, []string{host}, misbehavior{What: "connect by proxy", URL: listed}, ""},
		{"not listed", sandbox.ModeNamespace, []string{host}, misbehavior{What: "connect by proxy", URL: other}, "403 Forbidden: " + strings.TrimPrefix(other, "http://") + ": refused by the sandbox"},
		{"a host name that is not listed", sandbox.ModeNamespace, []string{host}, misbehavior{What: "connect by proxy", URL: "http://elsewhere.test/"}, "elsewhere.test:80: refused by the sandbox"},
		{"past the proxy", sandbox.ModeNamespace, []string{host}, misbehavior{What: "connect", URL: other}, "connection refused"},
		{"a listed port of this machine, past the proxy", sandbox.ModeNamespace, []string{host}, misbehavior{What: "connect", URL: listed}, ""},
		{"nothing listed", sandbox.ModeNamespace, nil, misbehavior{What: "connect by proxy", URL: listed}, noProxy},
		{"nothing listed, past the proxy", sandbox.ModeNamespace, nil, misbehavior{What: "connect", URL: listed}, "connection refused"},
		{"a level without named hosts", sandbox.ModeLandlock, []string{host}, misbehavior{What: "connect by proxy", URL: listed}, noProxy},
		{"a level without named hosts, directly", sandbox.ModeLandlock, []string{host}, misbehavior{What: "connect", URL: listed}, "not permitted"},
	} {
		t.Run(a.name, func(t *testing.T) {
			pl := newPlace(t)
			if _, err := pl.supervisor.Sandbox().Choose(t.Context(), a.mode); err != nil {
				t.Skip(err)
			}
			pl.link(t, "good", "good:good", func(s map[string]any) { s["manifest"] = map[string]any{"network": a.network} })
			o := pl.options()
			o.Sandbox = a.mode
			got, err := call(t, t.Context(), only(t, open(t, o)), "misbehave", a.try, "")
			if err != nil {
				t.Fatal(err)
			}
			if failed := got.Code != ""; failed != (a.fails != "") || !strings.Contains(got.text, a.fails) {
				t.Errorf("failed is %v: %s\nwant %q", failed, got.text, a.fails)
			}
		})
	}
}
