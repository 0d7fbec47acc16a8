package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/plugins"
)

// secretPlace is a workspace with a file for each entry of the list.
type secretPlace struct {
	ws, home string
	files    []string
}

// newSecretPlace creates it. The home directory is in the workspace, as it must be
// visible.
func newSecretPlace(t *testing.T) *secretPlace {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &secretPlace{ws: ws, home: filepath.Join(ws, "home")}
	t.Setenv("HOME", s.home)
	t.Setenv("PLANTED", "leaked by the environment")
	s.plant(t)
	if len(s.files) < 300 {
		t.Fatalf("the list has only %d places", len(s.files))
	}
	return s
}

// plant creates the files. Those of the system are as they are here.
func (s *secretPlace) plant(t *testing.T) {
	t.Helper()
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(s.home, "open"), "readable")
	for i, e := range sensitive.Entries() {
		if e.Class != sensitive.Secret {
			continue
		}
		root := map[sensitive.Scope]string{
			sensitive.Home: s.home, sensitive.AgentHome: filepath.Join(s.home, ".agent"), sensitive.Anywhere: filepath.Join(s.ws, fmt.Sprint("d", i)),
		}[e.Scope]
		if root == "" {
			all, err := filepath.Glob("/" + strings.TrimSuffix(e.Pattern, "/"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range all {
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
					s.files = append(s.files, path)
				}
			}
			continue
		}
		path := filepath.Join(root, strings.ReplaceAll(e.Pattern, "*", "x"))
		if strings.HasSuffix(e.Pattern, "/") {
			path = filepath.Join(path, "file")
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "file")
		}
		if filepath.Base(path) == "settings.json" && e.Scope == sensitive.AgentHome {
			continue // it would have to be valid
		}
		write(path, "leaked "+e.Pattern)
		s.files = append(s.files, path)
	}
	s.files = append(s.files, fmt.Sprintf("/proc/%d/environ", os.Getpid()))
}

// open opens an agent for the place.
func (s *secretPlace) open(t *testing.T, level sandbox.Mode, mode permissions.Mode) *Agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, doc := range map[string]any{
		filepath.Join(s.home, ".agent", "plugin-links.json"): map[string]any{"version": 1, "links": map[string]string{"reader": dir}},
		filepath.Join(dir, plugins.SpecFile): map[string]any{
			"name": "reader", "version": "1.0.0", "protocol": 1, "command": map[string]any{"*": []string{"./reader", ReaderFlag}},
			"manifest": map[string]any{"read": []string{"$HOME", "$WORKSPACE", "/etc"}},
		},
	} {
		data, err := json.Marshal(doc)
		if err = errors.Join(err, os.WriteFile(name, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(self)
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "reader"), data, 0o755)); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), Options{
		Dir: s.ws, Home: filepath.Join(s.home, ".agent"), Permissions: permissions.Options{Mode: mode},
		Plugins: &plugins.Options{Home: filepath.Join(s.home, ".agent"), UserHome: s.home},
		Sandbox: &SandboxOptions{Shell: level, Skills: level, MCP: level, Plugins: level},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// TestSecretsAreHidden tries to read each file of the list in the sandboxes of
// commands, scripts of skills, plugins and MCP servers, at both levels.
func TestSecretsAreHidden(t *testing.T) {
	s := newSecretPlace(t)
	contents := map[string]string{}
	for _, file := range s.files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[file] = string(data)
	}
	for _, level := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(level), func(t *testing.T) {
			a := s.open(t, level, permissions.ModeWorkspace)
			if !a.Env().(*env.Local).Sandboxed(t.Context()) {
				t.Skip("this level does not work on this machine")
			}
			open := filepath.Join(s.home, "open")
			script := "cat '" + open + "' '" + strings.Join(s.files, "' '") + "' 2>/dev/null; true"
			for name, read := range map[string]func() []byte{
				"shell":          func() []byte { return readIn(t, a, script, core.ScopeShell) },
				"skill":          func() []byte { return readIn(t, a, script, core.ScopeSkillScript) },
				"MCP":            func() []byte { return readAsServer(t, a.mcpSandbox(), s.ws, script) },
				"MCP of project": func() []byte { return readAsServer(t, projectSandbox(t, a), s.ws, script) },
				"plugin":         func() []byte { return readAsPlugin(t, a, append([]string{open}, s.files...)) },
			} {
				if name == "plugin" && testing.Short() {
					continue // the race detector maps more memory than a plugin may use
				}
				out := string(read())
				if !strings.HasPrefix(out, "readable\n") {
					t.Errorf("%s cannot read an ordinary file: %q", name, out)
				}
				for file, text := range contents {
					if strings.Contains(out, text) {
						t.Errorf("%s read %s", name, file)
					}
				}
			}
		})
	}
}

// TestSecretsAreAskedFor calls the tools that read or change files on each file of
// the list, and commands, with and without a sandbox, in each mode: none is allowed.
func TestSecretsAreAskedFor(t *testing.T) {
	s := newSecretPlace(t)
	for _, level := range []sandbox.Mode{sandbox.ModeAuto, sandbox.ModeOff} {
		for _, mode := range permissions.Modes() {
			t.Run(string(level)+"/"+string(mode), func(t *testing.T) {
				a := s.open(t, level, mode)
				tools, err := a.Tools().Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range s.files {
					for tool, args := range map[string]map[string]any{
						"read_file": {"file_path": file}, "edit_file": {"file_path": file, "old_string": "leaked", "new_string": "x"}, "write_file": {"file_path": file, "content": "x"},
						"grep": {"pattern": "leaked", "path": file}, "shell": {"command": "cat '" + file + "'"},
					} {
						if verdictOf(t, a, tools, tool, args) == core.Allow {
							t.Errorf("%s %s is allowed", tool, file)
						}
					}
				}
				for tool, args := range map[string]map[string]any{
					"grep": {"pattern": "l.aked", "path": s.ws}, "read_many_files": {"paths": []string{s.ws + "/**", s.ws + "/**/.*"}}, "glob": {"pattern": "**/*", "path": s.ws},
				} {
					if _, known := tools.Lookup(tool); known && verdictOf(t, a, tools, tool, args) == core.Allow && strings.Contains(runTool(t, a, tools, tool, args), "leaked") {
						t.Errorf("%s on the workspace shows secrets", tool)
					}
				}
			})
		}
	}
}

func callOf(t *testing.T, a *Agent, tools *core.Snapshot, tool string, args map[string]any) (core.Entry, *core.Call) {
	t.Helper()
	e, ok := tools.Lookup(tool)
	if !ok {
		t.Fatalf("no tool %s", tool)
	}
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	info := a.Env().Info()
	return e, &core.Call{ID: "1", Name: tool, Args: data, Env: a.Env(), Output: &bytes.Buffer{}, Session: core.SessionInfo{Dir: info.Dir}}
}

func verdictOf(t *testing.T, a *Agent, tools *core.Snapshot, tool string, args map[string]any) core.Verdict {
	t.Helper()
	e, call := callOf(t, a, tools, tool, args)
	_, d, err := core.Judge(t.Context(), a.Policy(), e, call, nil)
	if err != nil {
		return core.Deny // the tool refuses the call
	}
	return d.Verdict
}

func runTool(t *testing.T, a *Agent, tools *core.Snapshot, tool string, args map[string]any) string {
	t.Helper()
	e, call := callOf(t, a, tools, tool, args)
	_, d, err := core.Judge(t.Context(), a.Policy(), e, call, nil)
	if err != nil {
		t.Fatal(err)
	}
	call.Env = core.Restrict(a.Env(), d.Grants, nil)
	res, err := e.Tool.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(call.Output, model.Parts(res.Content).Text(), string(res.Structured))
}

func readIn(t *testing.T, a *Agent, script string, scope core.Scope) []byte {
	t.Helper()
	out, _, err := core.Exec(t.Context(), a.Env(), core.Command{Script: script, Grants: []core.Grant{{Access: core.Access{Scope: scope, Resource: script}}}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func projectSandbox(t *testing.T, a *Agent) *sandbox.Profile {
	t.Helper()
	p, err := a.ownSandbox()
	if err != nil {
		t.Fatal(err)
	}
	return p
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

func readAsPlugin(t *testing.T, a *Agent, files []string) []byte {
	t.Helper()
	tools, err := a.Plugins().Plugins()[0].Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(map[string]any{"paths": files})
	if err != nil {
		t.Fatal(err)
	}
	res, err := tools[0].Run(t.Context(), &core.Call{ID: "1", Args: args, Output: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(model.Parts(res.Content).Text())
}

// TestDeepSecrets: a search of a large workspace runs unasked only if the sandbox hides
// all secrets in it.
func TestDeepSecrets(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(ws, "services/api/config/prod/eu/.env"), "leaked", 0o600)
	a, err := Open(t.Context(), Options{Dir: ws, Home: t.TempDir(), Permissions: permissions.Options{Mode: permissions.ModeWorkspace}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if !a.Env().(*env.Local).Sandboxed(t.Context()) {
		t.Skip("no level of the sandbox works here")
	}
	tools, err := a.Tools().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	search := map[string]any{"command": "grep -r l.aked ."}
	if verdictOf(t, a, tools, "shell", search) != core.Allow {
		t.Error("a search of a small workspace asks")
	}
	if out := runTool(t, a, tools, "shell", search); strings.Contains(out, "leaked") {
		t.Errorf("it shows %q", out)
	}
	for i := range 3100 { // more than the sandbox searches
		writeFile(t, filepath.Join(ws, "data", fmt.Sprint(i)), "x", 0o600)
	}
	if verdictOf(t, a, tools, "shell", search) != core.Ask {
		t.Error("a search that may include secrets does not ask")
	}
}
