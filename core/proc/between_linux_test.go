package proc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// namespaceSupervisor returns a supervisor for commands on level Namespace.
func namespaceSupervisor(t *testing.T) *proc.Supervisor {
	t.Helper()
	s := newSupervisor(t)
	if _, err := s.Sandbox().Choose(context.Background(), sandbox.ModeNamespace); err != nil {
		t.Skip(err)
	}
	return s
}

// TestNothingLeaks checks that a command sees nothing of what an earlier one left,
// although its helper was forked while that one ran.
func TestNothingLeaks(t *testing.T) {
	need(t, "setsid", "ipcmk")
	s := namespaceSupervisor(t)
	dir, d := t.TempDir(), longTime(t)
	do := func(script string) string {
		spec := confined(sandbox.ModeNamespace, dir, script)
		spec.Env = append(spec.Env, roleEnv+"=attack", "SELF="+os.Args[0])
		spec.Sandbox.Readable = []string{os.Args[0]}
		out, _ := output(t, s, spec)
		return strings.TrimSpace(out)
	}
	const dial = `"$SELF" dial %s >/dev/null && echo connected`
	const listen = `: >out; "$SELF" listen %[1]s >out & until grep -q listening out; do :; done; "$SELF" dial %[1]s >/dev/null && echo connected`
	for _, test := range []struct{ name, leave, left, look, want string }{
		{"/dev/shm", "echo x >/dev/shm/a; ls /dev/shm", "a", "ls -A /dev/shm", ""},
		{"/tmp", "echo x >/tmp/a; ls /tmp/a", "/tmp/a", "ls -A /tmp/a 2>/dev/null", ""},
		{"shared memory", "ipcmk -M 64 >/dev/null; wc -l </proc/sysvipc/shm", "2", "wc -l </proc/sysvipc/shm", "1"},
		{"a process", fmt.Sprintf("setsid sleep %s >/dev/null 2>&1 & echo ready", d), "ready", "grep -l sleep /proc/[0-9]*/comm", ""},
		{"a TCP port", fmt.Sprintf(listen, "tcp 127.0.0.1:7777"), "connected", fmt.Sprintf(dial, "tcp 127.0.0.1:7777"), ""},
		{"an abstract socket", fmt.Sprintf(listen, "unix @left"), "connected", fmt.Sprintf(dial, "unix @left"), ""},
		{"a network setting", "(echo 7 >/proc/sys/net/ipv4/ip_default_ttl) 2>/dev/null; cat /proc/sys/net/ipv4/ip_default_ttl", "64", "cat /proc/sys/net/ipv4/ip_default_ttl", "64"},
		{"a limit", "ulimit -n 20; ulimit -n", "20", "test $(ulimit -n) -gt 20 && echo more", "more"},
	} {
		if out := do(test.leave); out != test.left {
			t.Errorf("%s: the first command prints %q, want %q", test.name, out, test.left)
		}
		for range 2 {
			if out := do(test.look); out != test.want {
				t.Errorf("%s: a later command prints %q, want %q", test.name, out, test.want)
			}
		}
	}
}

// networkOf is a script that prints the network namespace.
const networkOf = "readlink /proc/self/ns/net"

// TestNetworksAreNotShared checks that a network namespace is used again only after
// all processes in it have ended.
func TestNetworksAreNotShared(t *testing.T) {
	need(t, "setsid")
	s := namespaceSupervisor(t)
	dir := t.TempDir()
	do := func(script string, hosts ...string) string {
		spec := confined(sandbox.ModeNamespace, dir, script)
		spec.Sandbox.Network.Hosts = hosts
		out, exit := output(t, s, spec)
		if exit.Code != 0 {
			t.Errorf("%s: exit %+v", script, exit)
		}
		return strings.TrimSpace(out)
	}
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	first := do(networkOf)
	if again := do(networkOf); first != again || first == host {
		t.Errorf("one after the other, commands run in %s and %s, want the same, and not %s", first, again, host)
	}
	if with := do(networkOf, "example.com"); with == first || with == host {
		t.Errorf("a command with hosts runs in %s", with)
	}

	spec := confined(sandbox.ModeNamespace, dir, networkOf+"; read line")
	stdin, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer end.Close()
	var out bytes.Buffer
	spec.Stdin, spec.Stdout = stdin, &out
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	beside := do(networkOf)
	if _, err := end.WriteString("end\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if used := strings.TrimSpace(out.String()); used != first || beside == first || beside == host {
		t.Errorf("commands run at the same time in %s and %s", used, beside)
	}

	before := do(networkOf + "; setsid sleep " + longTime(t) + " >/dev/null 2>&1 &")
	for range 3 {
		if after := do(networkOf); after == before {
			t.Errorf("a command runs in %s, where an earlier one left a process", after)
		}
	}
}

// TestKilledHolder checks that commands run after whatever starts them was killed.
func TestKilledHolder(t *testing.T) {
	s := namespaceSupervisor(t)
	dir := t.TempDir()
	run := func() bool {
		p, err := s.Start(t.Context(), confined(sandbox.ModeNamespace, dir, "exit 3"))
		if err != nil {
			t.Log(err)
			return false
		}
		exit, err := p.Wait()
		return err == nil && exit.Code == 3
	}
	for range 3 {
		if !run() {
			t.Fatal("the command did not run")
		}
		for _, pid := range helpers(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		eventually(t, "a command that runs", run)
	}
}

// helpers returns the processes of this test's sandboxes.
func helpers(t *testing.T) (pids []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // the thread may have ended
		for child := range strings.FieldsSeq(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if pid, err := strconv.Atoi(child); err == nil && strings.HasPrefix(string(line), "agent-sandbox") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestCoveredDirectories: a directory in /dev/shm, which the sandbox covers before it
// knows the command, is there if it was granted, also below layers.
func TestCoveredDirectories(t *testing.T) {
	s := namespaceSupervisor(t)
	at, err := os.MkdirTemp("/dev/shm", "agent-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	dir := func(name string) string {
		path := filepath.Join(at, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "before"), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	work, read, cache, tried := dir("work"), dir("read"), dir("cache"), dir("tried")
	for i := range 2 { // without a spare helper, and with one
		try := filepath.Join(at, fmt.Sprint("try", i))
		spec := confined(sandbox.ModeNamespace, work, fmt.Sprintf("cat before %[1]s/before %[2]s/before %[3]s/before && echo w >w && ! echo r 2>/dev/null >%[1]s/r && echo c >%[2]s/c && echo t >%[3]s/t && cat w %[2]s/c %[3]s/t; ls /dev/shm/*/", read, cache, tried))
		spec.Sandbox.Readable = []string{read}
		spec.Sandbox.Scratch, spec.Sandbox.Layers = []string{cache}, filepath.Join(at, "layers")
		spec.Sandbox.Tried, spec.Sandbox.Try = []string{tried}, try
		out, exit := output(t, s, spec)
		if want := "work\nread\ncache\ntried\nw\nc\nt\ncache\nread\ntried\nwork\n"; out != want || exit.Code != 0 {
			t.Errorf("%+v, printed %q, want %q", exit, out, want)
		}
		for path, want := range map[string]bool{work + "/w": true, cache + "/c": false, tried + "/t": false, sandbox.TriedIn(try, tried) + "/t": true} {
			if _, err := os.Lstat(path); (err == nil) != want {
				t.Errorf("%s: %v, want it there: %t", path, err, want)
			}
		}
	}
}
