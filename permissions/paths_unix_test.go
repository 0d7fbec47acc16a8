//go:build unix

package permissions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/permissions"
)

// machine is a local workspace with files outside it.
type machine struct {
	ws, outside string
	env         *env.Local
	policy      *permissions.Policy
}

func newMachine(t *testing.T, mode permissions.Mode, sets ...permissions.RuleSet) *machine {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{ws: filepath.Join(top, "ws"), outside: filepath.Join(top, "outside")}
	for _, dir := range []string{m.ws, m.outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.write(t, filepath.Join(m.outside, "f"), "outside")
	if m.env, err = env.NewLocal(env.LocalOptions{Dir: m.ws, Home: top}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.env.Close() })
	m.policy = newPolicy(t, permissions.Options{Mode: mode, Sets: sets, Home: top, Workspace: []string{m.ws}, Env: m.env, Shell: "bash"})
	return m
}

func (m *machine) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// call goes through the steps of the pipeline: the call runs if the policy allows it.
func (m *machine) call(t *testing.T, tool core.Tool, args map[string]any) (core.Verdict, string, core.Result, error) {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	name := tool.Definition().Name
	call := &core.Call{ID: "1", Name: name, Args: data, Env: m.env, Session: core.SessionInfo{Dir: m.ws}, Output: discard{}}
	_, d, err := core.Judge(t.Context(), m.policy, core.Entry{ModelName: name, Tool: tool}, call, nil)
	if err != nil || d.Verdict != core.Allow {
		return d.Verdict, d.Reason, core.Result{}, err
	}
	call.Env = core.Restrict(m.env, d.Grants, nil)
	result, err := tool.Run(t.Context(), call)
	return d.Verdict, d.Reason, result, err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestWhatPathsLeadTo: a path is judged by its target.
func TestWhatPathsLeadTo(t *testing.T) {
	m := newMachine(t, permissions.ModeAcceptEdits, user(settings("", "", "fs-read(./private/**)")))
	for _, dir := range []string{"dir", "private", ".git"} {
		if err := os.Mkdir(filepath.Join(m.ws, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.write(t, filepath.Join(m.ws, "private", "p"), "private")
	m.write(t, filepath.Join(m.ws, "plain"), "plain")
	m.write(t, filepath.Join(m.ws, ".env"), "KEY=x")
	for link, target := range map[string]string{
		"out": m.outside, "outfile": filepath.Join(m.outside, "f"), "notes": ".env", "open": "private", "in": "dir",
		"loop": "loop", "hooks": ".git", "dangling": filepath.Join(m.outside, "new"), "chain": "out",
	} {
		if err := os.Symlink(target, filepath.Join(m.ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path  string
		read  core.Verdict
		write core.Verdict
	}{
		{"plain", allow, allow},
		{"in/new", allow, allow},
		{"./dir/../plain", allow, allow},
		{"out/f", ask, ask},
		{"chain/f", ask, ask},
		{"outfile", ask, ask},
		{"dangling", ask, ask},
		{"dir/../out/f", ask, ask},
		{"in/../plain", allow, allow}, // the parent of what the link leads to
		{"out/../ws/plain", allow, allow},
		{"../outside/f", ask, ask},
		{"notes", ask, ask},
		{"open/p", deny, deny}, // writing reads the old content, too,
		{"hooks/config", allow, ask},
		{"loop", deny, deny}, // an error
		{"plain\x00.txt", deny, deny},
		{strings.Repeat("x", 5000), deny, deny},
		{strings.Repeat("x/", 3000), deny, deny},
		{".ENV", ask, ask},
		{".env.", ask, ask},
		{".env ", ask, ask},
		{".e\u200bnv", ask, ask},
		{".env::$DATA", ask, ask},
		{".env.example", allow, allow},
		{".GIT/config", allow, ask},
		{"~/.ssh/id_rsa", ask, ask},
		{"/dev/sda", ask, deny},
	} {
		for _, x := range []struct {
			tool core.Tool
			args map[string]any
			want core.Verdict
		}{
			{tools.ReadFile(), map[string]any{"file_path": tt.path}, tt.read},
			{tools.WriteFile(), map[string]any{"file_path": tt.path, "content": "x"}, tt.write},
		} {
			got, reason, _, err := m.verdict(t, x.tool, x.args)
			if got != x.want {
				t.Errorf("%s %.40q: %s (%s, %v), want %s", x.tool.Definition().Name, tt.path, got, reason, err, x.want)
			}
		}
	}
}

// verdict judges a call without running it.
func (m *machine) verdict(t *testing.T, tool core.Tool, args map[string]any) (core.Verdict, string, core.Result, error) {
	t.Helper()
	data, _ := json.Marshal(args)
	name := tool.Definition().Name
	call := &core.Call{ID: "1", Name: name, Args: data, Env: m.env, Session: core.SessionInfo{Dir: m.ws}}
	_, d, err := core.Judge(t.Context(), m.policy, core.Entry{ModelName: name, Tool: tool}, call, nil)
	return d.Verdict, d.Reason, core.Result{}, err
}

// TestAHardLinkIsNotWrittenThrough: a file with another hard link outside keeps
// its content there.
func TestAHardLinkIsNotWrittenThrough(t *testing.T) {
	m := newMachine(t, permissions.ModeAcceptEdits)
	link := filepath.Join(m.ws, "link")
	if err := os.Link(filepath.Join(m.outside, "f"), link); err != nil {
		t.Skip("no hard links here:", err)
	}
	if v, reason, result, err := m.call(t, tools.WriteFile(), map[string]any{"file_path": "link", "content": "changed"}); v != allow || err != nil || result.Code != "" {
		t.Fatalf("%s %s %+v %v", v, reason, result, err)
	}
	if m.read(t, link) != "changed" || m.read(t, filepath.Join(m.outside, "f")) != "outside" {
		t.Error("the file outside was written through its link")
	}
}

// TestCommandsAskAboutHardLinks: a command writes into the existing file, and
// so under all of its names.
func TestCommandsAskAboutHardLinks(t *testing.T) {
	m := newMachine(t, permissions.ModeAcceptEdits)
	m.write(t, filepath.Join(m.ws, "own"), "x")
	if err := os.Link(filepath.Join(m.outside, "f"), filepath.Join(m.ws, "link")); err != nil {
		t.Skip("no hard links here:", err)
	}
	if err := os.Symlink("link", filepath.Join(m.ws, "to-link")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]core.Verdict{
		"echo changed > own": allow, "echo changed > new": allow, "cat link": allow, "cp link own": allow, "echo x > /dev/null": allow,
		"echo changed > link": ask, "echo changed >> to-link": ask, "cp own link": ask, "cat own | tee link": ask, "echo x > l*k": ask,
	} {
		got, reason, _, err := m.verdict(t, tools.Shell(), map[string]any{"command": command})
		if got != want || err != nil || want == ask && !strings.Contains(reason, "hard links") && !strings.Contains(command, "*") {
			t.Errorf("%s: %s (%s, %v), want %s", command, got, reason, err, want)
		}
	}
}

// TestLargeRepository: git status needs no approval if the index is large.
func TestLargeRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	m := newMachine(t, permissions.ModeDefault)
	git := func(input string, args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", m.ws}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("", "init", "-q")
	var entries strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&entries, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tdir%d/file%d.go\n", i%100, i)
	}
	git(entries.String(), "update-index", "--index-info")
	if info, err := os.Stat(filepath.Join(m.ws, ".git", "index")); err != nil || info.Size() < 2<<20 {
		t.Fatalf("the index is not large: %v, %v", info, err)
	}
	if got, reason, _, err := m.verdict(t, tools.Shell(), map[string]any{"command": "git status --short"}); got != allow || err != nil {
		t.Errorf("git status: %s (%s, %v)", got, reason, err)
	}
}

// TestSwappedLinks: a directory is replaced by a link while tools work in it.
// Only what was checked is used.
func TestSwappedLinks(t *testing.T) {
	m := newMachine(t, permissions.ModeAcceptEdits)
	dir, spare := filepath.Join(m.ws, "d"), filepath.Join(m.ws, "spare")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(t, filepath.Join(dir, "f"), "inside")
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			_ = os.Rename(dir, spare)
			_ = os.Symlink(m.outside, dir)
			_ = os.Remove(dir)
			_ = os.Rename(spare, dir)
		}
	})
	ran, refused := 0, 0
	for i := 0; i < 400 || ran == 0 && i < 100_000; i++ { // under load the swapping may win for long
		v, _, result, err := m.call(t, tools.WriteFile(), map[string]any{"file_path": "d/f", "content": fmt.Sprint("inside ", i)})
		if v == allow && err == nil && result.Code == "" {
			ran++
		} else {
			refused++
		}
		if v, _, result, err := m.call(t, tools.ReadFile(), map[string]any{"file_path": "d/f"}); v == allow && err == nil && result.Code == "" && strings.Contains(fmt.Sprint(result.Content), "outside") {
			t.Fatal("a file outside was read")
		}
	}
	stop.Store(true)
	wg.Wait()
	if got := m.read(t, filepath.Join(m.outside, "f")); got != "outside" {
		t.Errorf("a file outside was written: %q", got)
	}
	entries, err := os.ReadDir(m.outside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) != 1 {
		t.Errorf("there is something new outside: %v %v", entries, err)
	}
	if ran == 0 {
		t.Errorf("nothing was written at all, %d refused", refused)
	}
}

// TestProcessFiles: links in /proc are resolved.
func TestProcessFiles(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc:", err)
	}
	m := newMachine(t, permissions.ModeBypass)
	for path, want := range map[string]core.Verdict{
		"/proc/self/environ": ask, "/proc/1/environ": ask, "/proc/self/task/" + fmt.Sprint(os.Getpid()) + "/environ": ask,
		"/proc/self/root" + m.ws + "/.env": ask, "/proc/self/cwd/.env": ask, "/proc/cpuinfo": allow, "/proc/self/mem": ask,
	} {
		if got, reason, _, err := m.verdict(t, tools.ReadFile(), map[string]any{"file_path": path}); got != want {
			t.Errorf("%s: %s (%s, %v), want %s", path, got, reason, err, want)
		}
		if got := m.policy.Decide(t.Context(), core.PermissionRequest{Tool: "shell", Session: core.SessionInfo{Dir: m.ws}, Accesses: []core.Access{script("cat " + path)}}); got.Verdict != want {
			t.Errorf("cat %s: %s (%s), want %s", path, got.Verdict, got.Reason, want)
		}
	}
}

// TestScriptsOnThisMachine: links and repositories are checked where the
// command will run.
func TestScriptsOnThisMachine(t *testing.T) {
	m := newMachine(t, permissions.ModeDefault)
	m.write(t, filepath.Join(m.ws, "a.txt"), "a")
	if err := os.Mkdir(filepath.Join(m.ws, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(t, filepath.Join(m.ws, "sub", "secrets.yaml"), "a")
	for link, target := range map[string]string{"out": m.outside, "sub/b.txt": filepath.Join(m.outside, "f")} {
		if err := os.Symlink(target, filepath.Join(m.ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		script string
		want   core.Verdict
	}{
		{"cat a.txt", allow},
		{"head -1 a.txt | wc -l", allow},
		{"cat out/f", ask},
		{"cat sub/../a.txt", allow},
		{"cat out/../ws/a.txt", allow},
		{"cat out/../f", ask},
		{"cat sub/*.txt", ask},
		{"cd out && cat f", ask},
		{"grep -r a .", ask}, // it reads sub/secrets.yaml
		{"ls -R", allow},
		{"git log", allow},
	} {
		req := core.PermissionRequest{Tool: "shell", Session: core.SessionInfo{Dir: m.ws}, Accesses: []core.Access{script(tt.script)}}
		if d := m.policy.Decide(t.Context(), req); d.Verdict != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.script, d.Verdict, d.Reason, tt.want)
		}
	}
	// A repository whose settings run programs.
	if err := os.Mkdir(filepath.Join(m.ws, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(t, filepath.Join(m.ws, ".git", "config"), "[filter \"x\"]\n\tclean = touch /tmp/pwned\n")
	req := core.PermissionRequest{Tool: "shell", Session: core.SessionInfo{Dir: m.ws}, Accesses: []core.Access{script("git status")}}
	d := m.policy.Decide(t.Context(), req)
	if d.Verdict != ask || !strings.Contains(d.Reason, "in the repository") {
		t.Errorf("git in a hostile repository: %s (%s)", d.Verdict, d.Reason)
	}
	m.write(t, filepath.Join(m.ws, ".git", "config"), "[core]\n\tbare = false\n")
	d = m.policy.Decide(t.Context(), req)
	if d.Verdict != allow || len(d.Grants[0].Env) == 0 || !strings.Contains(strings.Join(d.Grants[0].Env, " "), "core.fsmonitor") {
		t.Errorf("git in a repository: %s (%s), with the environment %q", d.Verdict, d.Reason, d.Grants[0].Env)
	}
}
