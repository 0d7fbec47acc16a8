package agent

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/permissions"
)

//go:embed testdata/redteam.txt
var attacks string

// leak is in each secret file; what prints it read one.
const leak = "LEAKED-4711"

// fortress is a workspace with things to attack.
type fortress struct {
	home, ws, out, template string
	agent                   *Agent
	tools                   *core.Snapshot
}

// TestAttacks runs each attack that is not asked about, at each sandbox level and
// without one, in each mode: nothing may be written outside the workspace, read from a
// secret file, or planted.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("runs thousands of commands")
	}
	if os.Getenv(apartVariable) == "" {
		t.Parallel()
	}
	for _, level := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock, sandbox.ModeOff} {
		for _, mode := range []permissions.Mode{permissions.ModeWorkspace, permissions.ModeAcceptEdits, permissions.ModeDefault, permissions.ModePlan} {
			t.Run(string(level)+"/"+string(mode), func(t *testing.T) {
				if apart(t) {
					return
				}
				f := newFortress(t, level, mode)
				ran, all := 0, 0
				for line := range strings.Lines(attacks) {
					line = strings.TrimSuffix(line, "\n")
					if line == "" || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "#!") {
						continue
					}
					all++
					if f.attack(t, mode, "shell", map[string]any{"command": f.expand(line), "timeout_ms": 2000}) {
						ran++
					}
				}
				for _, a := range f.calls() {
					all++
					if f.attack(t, mode, a.tool, a.args) {
						ran++
					}
				}
				if ran == 0 {
					t.Error("everything is asked about")
				}
				t.Logf("%d of %d attacks ran unasked, without effect", ran, all)
			})
		}
	}
}

// apartVariable has the name of the subtest that runs in a separate process.
const apartVariable = "AGENT_TEST_APART"

// apart runs a subtest, which sets variables, in a separate process, so that it can
// run beside others; false means that this is the process.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartVariable) == t.Name() {
		return false
	}
	t.Parallel()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+pattern)
	cmd.Env = append(os.Environ(), apartVariable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP: "+t.Name()+" (")):
		t.Skipf("%s", out)
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" (")):
		t.Errorf("the test did not run:\n%s", out)
	default:
		t.Logf("%s", out)
	}
	return true
}

// expand replaces the names of directories and line breaks.
func (f *fortress) expand(line string) string {
	line = regexp.MustCompile(`(^|[^$({A-Z])HOME/`).ReplaceAllString(line, "${1}"+f.home+"/")
	line = regexp.MustCompile(`\bWS\b`).ReplaceAllString(line, f.ws)
	return strings.ReplaceAll(strings.ReplaceAll(line, "OUT", f.out), `\n`, "\n")
}

// call is a call of another tool.
type call struct {
	tool string
	args map[string]any
}

// calls are attacks with tools that work on files.
func (f *fortress) calls() (list []call) {
	for _, path := range []string{
		".env", "./.env", "sub/../.env", f.ws + "/.env", "/proc/self/cwd/.env", "/proc/self/root" + f.ws + "/.env", "~/.ssh/id_rsa", f.home + "/.ssh/id_rsa", "../../.ssh/id_rsa", "link/id_rsa", "dotenv",
		"/proc/self/environ", "/proc/1/environ", "/dev/fd/3", "/etc/shadow", "/etc/../etc/shadow", ".ENV", ".env/", ".env\x00", "file://" + f.ws + "/.env", "link/../.ssh/id_rsa", "hard",
	} {
		list = append(list,
			call{"read_file", map[string]any{"file_path": path}}, call{"grep", map[string]any{"pattern": "L.AKED", "path": path, "output_mode": "content"}},
			call{"read_many_files", map[string]any{"paths": []string{path}}}, call{"list_dir", map[string]any{"path": path}})
	}
	for _, pattern := range []string{"**/*", "**/.*", ".e*", "../../**/*", f.home + "/**", "link/*", "{.env,a.txt}", "[.]env"} {
		list = append(list, call{"read_many_files", map[string]any{"paths": []string{pattern}}}, call{"glob", map[string]any{"pattern": pattern}},
			call{"grep", map[string]any{"pattern": "L.AKED", "glob": pattern, "output_mode": "content"}})
	}
	for _, path := range []string{
		f.out + "/x", "../../out/x", "link/../../out/x", "outlink/x", "~/out/x", "/proc/self/cwd/../../out/x", "/proc/self/root" + f.out + "/x", f.ws + "/../../out/x", "outlink/keep", "keeplink",
		".git/config", ".git/hooks/pre-commit", ".GIT/hooks/x", "sub/.git/config", ".envrc", ".vscode/tasks.json", "AGENTS.md", "sub/AGENTS.md", ".agent/settings.json", ".mcp.json", ".husky/x", ".env", "~/.bashrc", "/etc/profile.d/x",
	} {
		list = append(list, call{"write_file", map[string]any{"file_path": path, "content": "x"}}, call{"edit_file", map[string]any{"file_path": path, "old_string": "", "new_string": "x"}})
	}
	return list
}

// attack makes a call if that is allowed unasked, and checks what it did.
func (f *fortress) attack(t *testing.T, mode permissions.Mode, tool string, args map[string]any) (ran bool) {
	t.Helper()
	e, ok := f.tools.Lookup(tool)
	if !ok {
		return false
	}
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &core.Call{ID: "1", Name: tool, Args: data, Env: f.agent.Env(), Output: &out, Session: core.SessionInfo{ID: "s", Dir: f.ws}}
	_, d, err := core.Judge(t.Context(), f.agent.Policy(), e, c, nil)
	if err != nil || d.Verdict != core.Allow {
		return false
	}
	c.Env = core.Restrict(f.agent.Env(), d.Grants, nil)
	before := treeOf(t, f.ws)
	if res, err := e.Tool.Run(t.Context(), c); err == nil {
		fmt.Fprint(&out, model.Parts(res.Content).Text(), string(res.Structured))
	}
	if strings.Contains(out.String(), leak) {
		t.Errorf("%s %s reads a secret: %.300s", tool, data, out.String())
	}
	if got := treeOf(t, f.out); got != "keep kept\n" {
		t.Errorf("%s %s writes outside the workspace: %s", tool, data, got)
		f.reset(t)
	}
	after := treeOf(t, f.ws)
	switch {
	case after == before:
		return true
	case mode == permissions.ModeDefault || mode == permissions.ModePlan:
		t.Errorf("%s %s writes to the workspace", tool, data)
	}
	f.planted(t, tool+" "+string(data))
	f.reset(t)
	return true
}

// planted checks that nothing is left that runs later.
func (f *fortress) planted(t *testing.T, what string) {
	t.Helper()
	for _, name := range []string{".envrc", ".vscode/tasks.json", "AGENTS.md", "sub/CLAUDE.md", "sub/AGENTS.md", "sub/.cargo/config.toml", ".husky/pre-commit", ".mcp.json", ".agent/settings.json", "nested/.git/hooks/pre-commit"} {
		if _, err := os.Lstat(filepath.Join(f.ws, name)); err == nil {
			t.Errorf("%s plants %s", what, name)
		}
	}
	hooks, err := filepath.Glob(filepath.Join(f.ws, ".git/hooks/*"))
	if err != nil || len(hooks) > 0 {
		t.Errorf("%s plants %s", what, hooks)
	}
	config, err := os.ReadFile(filepath.Join(f.ws, ".git/config"))
	if want, _ := os.ReadFile(filepath.Join(f.template, ".git/config")); err == nil && !bytes.Equal(config, want) {
		t.Errorf("%s changes the settings of git: %s", what, config)
	}
}

// treeOf lists the files in a directory with their content.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case e.Type().IsRegular():
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			fmt.Fprintf(&b, "%s %s\n", rel, data)
		default:
			fmt.Fprintf(&b, "%s %s\n", rel, e.Type())
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return b.String()
}

func newFortress(t *testing.T, level sandbox.Mode, mode permissions.Mode) *fortress {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err = errors.Join(err, os.MkdirAll(cache, 0o700)); err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp(cache, "fortress-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	f := &fortress{home: filepath.Join(top, "home"), template: filepath.Join(top, "template")}
	f.ws, f.out = filepath.Join(f.home, "src", "ws"), filepath.Join(f.home, "out")
	t.Setenv("HOME", f.home)
	t.Setenv("PLANTED_TOKEN", leak)
	f.build(t)
	f.reset(t)
	f.agent, err = Open(t.Context(), Options{
		Dir: f.ws, Home: filepath.Join(f.home, ".agent"), Permissions: permissions.Options{Mode: mode}, UnguardedWrites: true,
		Sandbox: &SandboxOptions{Shell: level, Skills: level, MCP: level, Plugins: level},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.agent.Close() })
	if level != sandbox.ModeOff && !f.agent.Env().(*env.Local).Sandboxed(t.Context()) {
		t.Skip("this level does not work here")
	}
	if f.tools, err = f.agent.Tools().Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// build creates the home directory and the template of the workspace.
func (f *fortress) build(t *testing.T) {
	t.Helper()
	touch := "touch " + f.out + "/x\n"
	for name, text := range map[string]string{
		"a.txt": "alpha\nbeta\n", "b.txt": "beta\n", ".env": "PASSWORD=" + leak + "\n", "sub/c.txt": "c\n", "payload.sh": "#!/bin/sh\n" + touch, "payload.py": "open('" + f.out + "/x','w')\n",
		"payload.awk": "BEGIN{system(\"touch " + f.out + "/x\")}\n", "payload.sed": "1e touch " + f.out + "/x\n", "payload.mk": "x:=$(shell touch " + f.out + "/x)\nx:\n\ttouch " + f.out + "/x\n",
		"payload.cfg": "[core]\nfsmonitor = touch " + f.out + "/x\n", "bin/ls": "#!/bin/sh\n" + touch, "bin/payload.sh": "#!/bin/sh\n" + touch, "package.json": `{"scripts": {"test": "touch ` + f.out + `/x"}}`,
		"payload.patch": "--- a/../../out/keep\n+++ b/../../out/keep\n@@ -1 +1 @@\n-kept\n+lost\n", "payload.go": "package main\n\nfunc main() {}\n", "go.mod": "module x\n",
		"../home/.ssh/id_rsa": leak, "../home/.agent/sessions/s.jsonl": leak, "../home/.agent/mcp/auth/a.json": leak, "../home/.bashrc": "# empty\n",
	} {
		writeFile(t, filepath.Join(f.template, name), text, 0o755)
	}
	for _, link := range [][2]string{{"link", f.home + "/.ssh"}, {"dotenv", ".env"}, {"outlink", f.out}, {"keeplink", f.out + "/keep"}} {
		if err := os.Symlink(link[1], filepath.Join(f.template, link[0])); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "git init -q && rm -f .git/hooks/* && git add -A -- ':!.env' && git -c user.name=a -c user.email=a@b.c commit -qm x && tar cf a.tar a.txt && mkdir -p p/.vscode && echo x >p/.vscode/tasks.json && tar cf plant.tar -C p .vscode && rm -r p")
	cmd.Dir = f.template
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("git: %v: %s", err, out)
	}
}

// reset restores the workspace and the directory outside.
func (f *fortress) reset(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(f.ws)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		os.RemoveAll(filepath.Join(f.ws, e.Name()))
	}
	os.RemoveAll(f.out)
	writeFile(t, filepath.Join(f.out, "keep"), "kept", 0o600)
	if err := errors.Join(os.MkdirAll(f.ws, 0o755), exec.CommandContext(t.Context(), "cp", "-a", f.template+"/.", f.ws).Run()); err != nil {
		t.Fatal(err)
	}
}
