package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
)

// TestSecretsAreHidden creates a file for each entry of the list, and tries to read
// it in the sandboxes of commands, scripts of skills and MCP servers.
func TestSecretsAreHidden(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(mode), func(t *testing.T) {
			// The home directory must be visible: it is in the workspace.
			ws, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			home := filepath.Join(ws, "home")
			t.Setenv("HOME", home)
			files := plantSecrets(t, home)
			if len(files) < 200 {
				t.Fatalf("the list has only %d places below a home directory", len(files))
			}
			a, err := Open(t.Context(), Options{Dir: ws, Home: filepath.Join(home, ".agent"), Sandbox: &SandboxOptions{Shell: mode, Skills: mode, MCP: mode}})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if !a.Env().(*env.Local).Sandboxed(t.Context()) {
				t.Skip("this level does not work on this machine")
			}
			script := "cat '" + strings.Join(files, "' '") + "' 2>/dev/null; cat " + home + "/open"
			for name, read := range map[string]func() []byte{
				"shell": func() []byte { return readIn(t, a, script, core.ScopeShell) },
				"skill": func() []byte { return readIn(t, a, script, core.ScopeSkillScript) },
				"MCP":   func() []byte { return readAsServer(t, a.mcpSandbox(), ws, script) },
			} {
				if out := read(); !bytes.HasPrefix(out, []byte("readable\n")) {
					t.Errorf("%s read %q, want only the ordinary file", name, out)
				}
			}
		})
	}
}

// plantSecrets creates the files, which have their path as content.
func plantSecrets(t *testing.T, home string) (files []string) {
	t.Helper()
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, "open"), "readable")
	for _, e := range sensitive.Entries() {
		if e.Class != sensitive.Secret || e.Scope != sensitive.Home {
			continue
		}
		path := filepath.Join(home, strings.ReplaceAll(e.Pattern, "*", "x"))
		if strings.HasSuffix(e.Pattern, "/") {
			path = filepath.Join(path, "file")
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "file")
		}
		write(path, "leaked "+e.Pattern)
		files = append(files, path)
	}
	return files
}

func readIn(t *testing.T, a *Agent, script string, scope core.Scope) []byte {
	t.Helper()
	out, _, err := core.Exec(t.Context(), a.Env(), core.Command{Script: script, Grants: []core.Grant{{Access: core.Access{Scope: scope, Resource: script}}}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readAsServer(t *testing.T, p *sandbox.Profile, dir, script string) []byte {
	t.Helper()
	s := proc.NewSupervisor(proc.Options{})
	defer s.Close()
	p.Readable = []string{dir}
	var out bytes.Buffer
	process, err := s.Start(t.Context(), proc.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, Env: os.Environ(), Sandbox: p, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := process.Wait(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
