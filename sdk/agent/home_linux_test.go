package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/plugins"
)

// newHome returns a home directory with files of all kinds, and a workspace in it.
func newHome(t *testing.T) (home, ws string) {
	t.Helper()
	cache, err := os.UserCacheDir() // /tmp is different in a sandbox
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err == nil {
		home, err = os.MkdirTemp(cache, "agent-test-")
	}
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(home) })
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	ws = filepath.Join(home, "src", "ws")
	for _, file := range []string{
		"src/ws/main.go", "src/other/main.go", "Documents/letter", ".config/app/settings", ".gitconfig", ".cargo/registry/crate", ".cache/build", ".tools/bin/tool", ".npmrc", ".agent/skills/s/SKILL.md",
		".agent/settings.json", "jdk/lib/rt.jar",
	} {
		path := filepath.Join(home, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(file+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, ".tools/bin")+":"+os.Getenv("PATH"))
	t.Setenv("JAVA_HOME", filepath.Join(home, "jdk"))
	return home, ws
}

// TestHome reads files of the home directory in the sandboxes of commands, skills and
// MCP servers, with each view, on each level.
func TestHome(t *testing.T) {
	always := []string{"src/ws/main.go", ".tools/bin/tool", ".agent/skills/s/SKILL.md"}
	for view, want := range map[HomeView][]string{
		HomeMasked: always,
		"":         append(always, ".gitconfig", ".cargo/registry/crate", ".cache/build", "jdk/lib/rt.jar"),
		HomeOpen:   append(always, ".gitconfig", ".cargo/registry/crate", ".cache/build", "jdk/lib/rt.jar", "src/other/main.go", "Documents/letter", ".config/app/settings"),
	} {
		for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
			t.Run(string(view)+"/"+string(mode), func(t *testing.T) {
				home, ws := newHome(t)
				a, err := Open(t.Context(), Options{Dir: ws, Home: filepath.Join(home, ".agent"), Sandbox: &SandboxOptions{Shell: mode, Skills: mode, MCP: mode, Home: view}})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				if !a.Env().(*env.Local).Sandboxed(t.Context()) {
					t.Skip("this level does not work on this machine")
				}
				own, err := a.ownSandbox()
				if err != nil {
					t.Fatal(err)
				}
				script := "cd " + home + " && cat src/*/main.go Documents/* .config/app/* .gitconfig .cargo/registry/* .cache/build .tools/bin/tool .npmrc .agent/skills/s/SKILL.md .agent/settings.json jdk/lib/* 2>/dev/null; true"
				for name, out := range map[string][]byte{
					"shell":              readIn(t, a, script, core.ScopeShell),
					"skill":              readIn(t, a, script, core.ScopeSkillScript),
					"MCP":                readAsServer(t, a.mcpSandbox(), ws, script),
					"MCP of a project's": readAsServer(t, own, ws, script),
				} {
					got := map[string]bool{}
					for line := range strings.Lines(string(out)) {
						got[strings.TrimSpace(line)] = true
					}
					for _, file := range want {
						if !got[file] {
							t.Errorf("%s cannot read %s", name, file)
						}
						delete(got, file)
					}
					if len(got) > 0 {
						t.Errorf("%s reads %v", name, got)
					}
				}
			})
		}
	}
}

// TestServersOfProjects: an MCP server that a project configures is confined, with the
// network and caches; one of the user is not, unless its settings or the choice say so.
func TestServersOfProjects(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	home, ws := newHome(t)
	servers := []mcp.Configured{{Name: "theirs", Project: true}, {Name: "mine"}}
	confine := func(choice MCPServers, name string, s mcp.Server) *sandbox.Profile {
		a, err := Open(t.Context(), Options{Dir: ws, Home: filepath.Join(home, ".agent"), Sandbox: &SandboxOptions{MCPServers: choice}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		a.opts.MCP.Servers = servers
		var spec proc.Spec
		if err := a.confine(name, s, &spec); err != nil {
			t.Fatal(err)
		}
		return spec.Sandbox
	}
	for _, c := range []struct {
		choice   MCPServers
		name     string
		confined bool
	}{
		{"", "theirs", true}, {"", "mine", false}, {ConfineAll, "mine", true}, {ConfineNone, "theirs", false},
	} {
		if got := confine(c.choice, c.name, mcp.Server{}) != nil; got != c.confined {
			t.Errorf("%q: the server %s is confined: %v", c.choice, c.name, got)
		}
	}
	p := confine("", "theirs", mcp.Server{})
	script := "echo x >~/.cache/new && cat ~/.cache/new; echo x >new && cat new; cat /etc/shadow; exec 3<>/dev/tcp/" +
		strings.Replace(l.Addr().String(), ":", "/", 1) + " && echo connected"
	for script, want := range map[string]string{
		script: "x\nconnected\n",
	} {
		if out := readAsServer(t, p, ws, "bash -c '"+script+"' 2>/dev/null; true"); string(out) != want {
			t.Errorf("%q, want %q", out, want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".cache", "new")); err == nil {
		t.Error("the cache itself was written")
	}
	p = confine("", "theirs", mcp.Server{Sandbox: &mcp.Confine{Writable: []string{"."}, Hosts: []string{"example.org"}}})
	if out := readAsServer(t, p, ws, "echo x >new && cat new; echo x >.envrc; cat ../other/main.go 2>/dev/null; true"); string(out) != "x\n" || p.Network.Full {
		t.Errorf("with a sandbox of the project: %q", out)
	}
}

// TestPluginsPlantNothing: a plugin that may write the workspace cannot change what
// other programs run later.
func TestPluginsPlantNothing(t *testing.T) {
	home, ws := newHome(t)
	for _, file := range []string{".git/HEAD", ".git/config", ".git/hooks/sample", ".git/objects/x", ".git/refs/x", "sub/.vscode/tasks.json"} {
		path := filepath.Join(ws, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(mode), func(t *testing.T) {
			a, err := Open(t.Context(), Options{Dir: ws, Home: filepath.Join(home, ".agent"), Sandbox: &SandboxOptions{Plugins: mode, Shell: mode}})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if !a.Env().(*env.Local).Sandboxed(t.Context()) {
				t.Skip("this level does not work on this machine")
			}
			a.opts.Plugins = &plugins.Options{}
			p := &sandbox.Profile{Mode: mode, Writable: []string{ws}}
			a.pluginOptions().Protect("p", p, nil, []string{ws})
			script := "for f in new .git/config .git/hooks/post-commit sub/.vscode/tasks.json; do echo x >$f && echo $f; done 2>/dev/null; true"
			if out := readAsServer(t, p, ws, script); string(out) != "new\n" {
				t.Errorf("written: %s", out)
			}
		})
	}
}
