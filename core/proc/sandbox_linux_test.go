package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// eachLevel runs a test on each sandbox level that works on this machine, and logs
// why others do not.
func eachLevel(t *testing.T, test func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode)) {
	t.Helper()
	for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(mode), func(t *testing.T) {
			s := newSupervisor(t)
			if _, err := s.Sandbox().Choose(context.Background(), mode); err != nil {
				t.Skip(err)
			}
			test(t, s, mode)
		})
	}
}

// confined returns the spec of a script that may write dir.
func confined(mode sandbox.Mode, dir, script string) proc.Spec {
	spec := sh(script)
	spec.Dir = dir
	spec.Sandbox = &sandbox.Profile{Mode: mode, Writable: []string{dir}}
	return spec
}

// output runs a command and returns its output.
func output(t testing.TB, s *proc.Supervisor, spec proc.Spec) (string, proc.Exit) {
	t.Helper()
	var out bytes.Buffer
	spec.Stdout, spec.Stderr = &out, &out
	exit := run(t, s, spec)
	return out.String(), exit
}

// TestSandboxedWork checks that ordinary work is possible in a sandbox.
func TestSandboxedWork(t *testing.T) {
	tests := []struct {
		name, script string
		stdin        string
		want         string // empty: only the exit code counts
		code         int
		signal       string
		only         sandbox.Mode // works only with this one
	}{
		{name: "output", script: "echo out; echo err >&2", want: "out\nerr\n"},
		{name: "exit code", script: "exit 42", code: 42},
		{name: "signal", script: "kill -9 $$", code: -1, signal: "SIGKILL"},
		{name: "terminated", script: "kill -TERM $$", code: -1, signal: "SIGTERM"},
		{name: "input", script: "cat", stdin: "hello", want: "hello"},
		{name: "no terminal", script: "if true </dev/tty; then echo open; fi 2>/dev/null"},
		{name: "files", script: "mkdir d && echo x >d/f && mv d/f g && ln -s g h && cat h && rm -r d g h && ls", want: "x\n"},
		{name: "a file is replaced", script: "echo a >f && echo b >tmp && mv tmp f && cat f", want: "b\n"},
		{name: "devices", script: "echo x >/dev/null && head -c 4 /dev/zero | wc -c && head -c 4 /dev/urandom | wc -c", want: "4\n4\n"},
		{name: "temporary files", script: `f=$(mktemp) && echo x >$f && cat $f && echo x >"${TMPDIR:-/tmp}/g"`, want: "x\n"},
		{name: "own processes", script: "sleep 10 & kill $! && cat /proc/self/comm", want: "cat\n"},
		{name: "here-documents and pipes", script: "cat <<E | tr a b\naaa\nE", want: "bbb\n"},
		{name: "standard streams by name", script: "echo x >/dev/stdout; echo y >/dev/fd/1; cat /dev/stdin", stdin: "z", want: "x\ny\nz"},
		{name: "modes", script: "echo x >f && chmod 600 f && stat -c %a f", want: "600\n"},
		{name: "modes of a directory", script: "mkdir d && chmod 700 d && chmod +x d/../d && stat -c %a d", want: "711\n"},
		{name: "umask", script: "umask 077; echo x >f; mkdir d; stat -c %a f d", want: "600\n700\n"},
		{name: "the environment is exact", script: "env | grep -c -e '^AGENT_SANDBOX' -e ^GOMAXPROCS", want: "0\n", code: 1},
		{name: "a setting of Go's is kept", script: "echo $GOMAXPROCS", want: "7\n"},
		{name: "shared memory", script: "echo x >/dev/shm/f && cat /dev/shm/f", want: "x\n", only: sandbox.ModeNamespace},
		{name: "processes are counted anew", script: "echo $$; ls /proc | grep -c '^[0-9]'", only: sandbox.ModeNamespace},
	}
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		for _, test := range tests {
			if test.only != "" && test.only != mode {
				continue
			}
			t.Run(test.name, func(t *testing.T) {
				spec := confined(mode, t.TempDir(), test.script)
				if strings.Contains(test.script, "$GOMAXPROCS") {
					spec.Env = append(spec.Env, "GOMAXPROCS=7")
				}
				spec.Stdin = strings.NewReader(test.stdin)
				out, exit := output(t, s, spec)
				if exit.Code != test.code || exit.Signal != test.signal || exit.Left != 0 {
					t.Errorf("exit %+v, want code %d, signal %q, none left", exit, test.code, test.signal)
				}
				if test.want != "" && out != test.want {
					t.Errorf("output %q, want %q", out, test.want)
				}
			})
		}
	})
}

func TestSandboxedLateOutput(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		lateOutput(t, func(script string) string {
			out, _ := output(t, s, confined(mode, t.TempDir(), script))
			return out
		})
	})
}

func TestSandboxedStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		for name, test := range map[string]struct {
			spec proc.Spec
			says string
		}{
			"unknown program":   {proc.Spec{Path: "no-such-program"}, "no-such-program"},
			"missing program":   {proc.Spec{Path: "/no/such/program"}, "no such file"},
			"not a program":     {proc.Spec{Path: file}, "permission denied"},
			"missing directory": {proc.Spec{Path: "/bin/sh", Dir: "/no/such/dir"}, "working directory"},
			"relative path":     {proc.Spec{Path: "/bin/sh", Sandbox: &sandbox.Profile{Mode: mode, Writable: []string{"x"}}}, "not an absolute path"},
			"wrong mode":        {proc.Spec{Path: "/bin/sh", Sandbox: &sandbox.Profile{Mode: "best"}}, `unknown sandbox mode "best"`},
			"wrong host":        {proc.Spec{Path: "/bin/sh", Sandbox: &sandbox.Profile{Network: sandbox.Network{Hosts: []string{"a b"}}}}, `invalid host "a b"`},
		} {
			t.Run(name, func(t *testing.T) {
				if test.spec.Sandbox == nil {
					test.spec.Sandbox = &sandbox.Profile{Mode: mode}
				}
				_, err := s.Start(context.Background(), test.spec)
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one about %q", err, test.says)
				}
			})
		}
		dir := t.TempDir()
		if err := os.Symlink("elsewhere", dir+"/.git"); err != nil {
			t.Fatal(err)
		}
		spec := confined(mode, dir, "true")
		spec.Sandbox.ReadOnly = []string{dir + "/.git/"}
		var link *sandbox.LinkError
		if _, err := s.Start(context.Background(), spec); !errors.As(err, &link) || link.Path != dir+"/.git" {
			t.Errorf("a pin that is a symbolic link: %v", err)
		}
	})
}

// sleepers returns the processes that sleep for that time, except zombies.
func sleepers(d string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.HasPrefix(line, []byte("sleep\x00"+d)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// longTime is a duration for which no other test sleeps.
func longTime(t *testing.T) string {
	return fmt.Sprintf("300.%d%d", os.Getpid(), time.Now().UnixNano())
}

func TestSandboxedAbort(t *testing.T) {
	need(t, "setsid")
	const grace = 100 * time.Millisecond
	scripts := map[string]string{
		"obedient":       `exec sleep %s`,
		"stubborn":       `trap '' TERM; while :; do sleep %s; done`,
		"child":          `sleep %s & wait`,
		"stubborn child": `(trap '' TERM; exec sleep %s) & wait`,
		"daemon":         `(setsid sh -c 'trap "" TERM; sleep %s; true' >/dev/null 2>&1 &); sleep 100`,
		"orphan":         `(env -i setsid sh -c 'trap "" TERM; sleep %s; true' >/dev/null 2>&1 &); sleep 100`,
	}
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		for name, script := range scripts {
			if name == "orphan" && mode != sandbox.ModeNamespace {
				continue // only the namespace finds it
			}
			t.Run(name, func(t *testing.T) {
				d := longTime(t)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				spec := confined(mode, t.TempDir(), fmt.Sprintf(script, d))
				spec.Grace, spec.Stdout = grace, io.Discard
				p, err := s.Start(ctx, spec)
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "a sleeper", func() bool { return len(sleepers(d)) > 0 })
				start := time.Now()
				cancel()
				if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				t.Logf("Wait took %v after the end of the context, with %v of grace", time.Since(start), grace)
				if left := sleepers(d); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
			})
		}
	})
}

func TestSandboxedCommandLeavesNothing(t *testing.T) {
	need(t, "setsid")
	scripts := map[string]string{
		"child":               `sleep %s & exit 3`,
		"child, no output":    `sleep %s >/dev/null 2>&1 & exit 3`,
		"daemon":              `setsid sleep %s >/dev/null 2>&1 & exit 3`,
		"daemon, own session": `(env -i setsid sleep %s >/dev/null 2>&1 &); sleep 0.05; exit 3`,
	}
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		for name, script := range scripts {
			if strings.HasPrefix(name, "daemon") && mode != sandbox.ModeNamespace {
				continue // a daemon lives until the supervisor is closed, see TestDetachedDaemonLivesUntilClose
			}
			t.Run(name, func(t *testing.T) {
				d := longTime(t)
				_, exit := output(t, s, confined(mode, t.TempDir(), fmt.Sprintf(script, d)))
				if exit.Code != 3 || exit.Left != 1 {
					t.Errorf("exit %+v, want code 3, 1 left", exit)
				}
				if left := sleepers(d); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
			})
		}
	})
}

// TestKilledAgentLeavesNoSandbox kills an agent with commands in sandboxes.
func TestKilledAgentLeavesNoSandbox(t *testing.T) {
	need(t, "setsid")
	eachLevel(t, func(t *testing.T, _ *proc.Supervisor, mode sandbox.Mode) {
		d := longTime(t)
		agent := actor("sandboxes", filepath.Base(t.TempDir()), "SLEEP="+d, "MODE="+string(mode), "DIR="+t.TempDir(),
			"TMPDIR="+t.TempDir()) // where a killed agent leaves its directories
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "three sleepers", func() bool { return len(sleepers(d)) == 3 })
		if err := agent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = agent.Wait() // killed
		eventually(t, "no sleeper", func() bool { return len(sleepers(d)) == 0 })
	})
}

// playSandboxes runs commands in sandboxes forever.
func playSandboxes() error {
	s := proc.NewSupervisor(proc.Options{})
	defer s.Close()
	for _, script := range []string{"exec sleep %s", "trap '' TERM HUP; sleep %s & wait", "setsid sleep %s >/dev/null 2>&1 & wait"} {
		spec := confined(sandbox.Mode(os.Getenv("MODE")), os.Getenv("DIR"), fmt.Sprintf(script, os.Getenv("SLEEP")))
		if _, err := s.Start(context.Background(), spec); err != nil {
			return err
		}
	}
	select {} // until it is killed
}

// TestMissingPins checks protected paths that are missing.
func TestMissingPins(t *testing.T) {
	s := newSupervisor(t)
	if _, err := s.Sandbox().Choose(context.Background(), sandbox.ModeNamespace); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	spec := confined(sandbox.ModeNamespace, dir, "ls -A; mkdir .vscode && echo x >.vscode/tasks.json")
	spec.Sandbox.ReadOnly = []string{dir + "/.git/", dir + "/.vscode", dir + "/.envrc"}
	var out bytes.Buffer
	spec.Stdout = &out
	for i, want := range []string{".vscode.from-sandbox", ".vscode.from-sandbox-1"} {
		out.Reset()
		p, err := s.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(); err != nil || exit.Code != 0 {
			t.Fatalf("exit %+v, error %v\n%s", exit, err, &out)
		}
		if i == 0 && out.String() != ".git\n" {
			t.Errorf("the command saw %q, want the empty directory .git", &out)
		}
		if aside := p.Aside(); len(aside) != 1 || aside[0] != filepath.Join(dir, want) {
			t.Errorf("renamed %q, want %s", aside, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v (error %v), want the renamed files", entries, err)
	}
}

// TestSharedTmp checks that commands share files in /tmp, invisible to others.
func TestSharedTmp(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		tmp := t.TempDir()
		spec := confined(mode, t.TempDir(), `echo x >"$TMPDIR/f"`)
		spec.Sandbox.Tmp = tmp
		if out, exit := output(t, s, spec); exit.Code != 0 {
			t.Fatal(out)
		}
		spec.Args = []string{"-c", `cat "$TMPDIR/f"`}
		if out, exit := output(t, s, spec); exit.Code != 0 || out != "x\n" {
			t.Errorf("exit %+v, output %q", exit, out)
		}
		if text, err := os.ReadFile(tmp + "/f"); err != nil || string(text) != "x\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestForeignHelperEnvironment(t *testing.T) {
	// The variable alone must not turn a program into a helper.
	t.Setenv("AGENT_SANDBOX_HELPER", strings.Repeat("A", 26))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	if _, err := ours.WriteString(strings.Repeat("B", 26) + "more"); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]*os.File{"none": nil, "a pipe": {r}, "a socket with another token": {theirs}} {
		cmd := actor("unknown", "x")
		cmd.ExtraFiles = files
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "unknown role") {
			t.Errorf("with %s as descriptor 3: %v\n%s", name, err, out)
		}
	}
	b := make([]byte, 64)
	if n, err := theirs.Read(b); err != nil || n != 30 {
		t.Errorf("%d bytes are left in the socket (%v), want all 30", n, err)
	}
}

// TestScratch checks that commands can write caches, and that only commands see
// the changes.
func TestScratch(t *testing.T) {
	s := newSupervisor(t)
	if _, err := s.Sandbox().Choose(context.Background(), sandbox.ModeNamespace); err != nil {
		t.Skip(err)
	}
	base := t.TempDir()
	cache, layers := base+"/cache", base+"/layers"
	if err := errors.Join(os.Mkdir(cache, 0o755), os.Mkdir(layers, 0o755), os.WriteFile(cache+"/old", []byte("old\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	spec := confined(sandbox.ModeNamespace, t.TempDir(), fmt.Sprintf("cd %s && cat old && echo changed >old && echo x >new", cache))
	spec.Sandbox.Readable = []string{base}
	spec.Sandbox.Scratch, spec.Sandbox.Layers = []string{cache}, layers
	if out, exit := output(t, s, spec); exit.Code != 0 || out != "old\n" {
		t.Fatalf("exit %+v, output %q", exit, out)
	}
	spec.Args = []string{"-c", fmt.Sprintf("cd %s && cat old new", cache)}
	if out, exit := output(t, s, spec); exit.Code != 0 || out != "changed\nx\n" {
		t.Errorf("the next command: exit %+v, output %q", exit, out)
	}
	if text, err := os.ReadFile(cache + "/old"); err != nil || string(text) != "old\n" {
		t.Errorf("outside the cache was changed: %q, %v", text, err)
	}
	if _, err := os.Stat(cache + "/new"); err == nil {
		t.Error("outside the cache has a new file")
	}
}

// TestHosts checks that a command reaches only the listed hosts.
func TestHosts(t *testing.T) {
	s := newSupervisor(t)
	if _, err := s.Sandbox().Choose(context.Background(), sandbox.ModeNamespace); err != nil {
		t.Skip(err)
	}
	listed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer listed.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	var mu sync.Mutex
	var refused []string
	spec := proc.Spec{Path: os.Args[0], Env: []string{roleEnv + "=attack"}, Dir: t.TempDir()}
	spec.Sandbox = &sandbox.Profile{Mode: sandbox.ModeNamespace, Network: sandbox.Network{
		Hosts: []string{listed.Listener.Addr().String()},
		Refused: func(host, _ string) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, host)
		},
	}}
	spec.Args = []string{"get", listed.URL}
	if out, exit := output(t, s, spec); exit.Code != 0 || out != "hello" {
		t.Errorf("a listed host: exit %+v\n%s", exit, out)
	}
	spec.Args = []string{"get", other.URL}
	if out, exit := output(t, s, spec); exit.Code == 0 || !strings.Contains(out, "refused by the sandbox") {
		t.Errorf("another host: exit %+v\n%s", exit, out)
	}
	w := newWorld(t)
	spec.Sandbox.Network.Hosts = append(spec.Sandbox.Network.Hosts, w.tcp)
	spec.Args = []string{"dial", "tcp", w.tcp}
	if out, exit := output(t, s, spec); exit.Code != 0 {
		t.Errorf("a listed port of this machine without the proxy: exit %+v\n%s", exit, out)
	}
	spec.Args = []string{"dial", "tcp", other.Listener.Addr().String()}
	if out, exit := output(t, s, spec); exit.Code == 0 {
		t.Errorf("another port of this machine without the proxy: exit %+v\n%s", exit, out)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{other.Listener.Addr().String()}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}

// TestFullNetwork checks that a command with the host network can use it, but not
// the abstract sockets of other processes.
func TestFullNetwork(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		w := newWorld(t)
		spec := proc.Spec{Path: os.Args[0], Env: []string{roleEnv + "=attack"}, Dir: w.ws}
		spec.Sandbox = w.profile(mode)
		spec.Sandbox.Network.Full = true
		for network, address := range map[string]string{"tcp": w.tcp, "udp": w.udp, "unix": w.abstract} {
			spec.Args = []string{"dial", network, address}
			out, exit := output(t, s, spec)
			if wantOK := network != "unix"; exit.Code == 0 != wantOK {
				t.Errorf("%s: exit %+v\n%s", network, exit, out)
			}
		}
	})
}

// TestSocketsOutOfSight checks that sockets that are invisible to the command, or
// were removed, do not matter.
func TestSocketsOutOfSight(t *testing.T) {
	s := newSupervisor(t)
	if _, err := s.Sandbox().Choose(context.Background(), sandbox.ModeNamespace); err != nil {
		t.Skip(err)
	}
	w := newWorld(t) // it serves one in the temporary directory
	gone := w.base + "/gone"
	l, err := net.Listen("unix", gone)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/", w.base, w.ws} {
		spec := sh("pwd")
		spec.Dir, spec.Sandbox = dir, &sandbox.Profile{Mode: sandbox.ModeNamespace}
		if out, exit := output(t, s, spec); exit.Code != 0 || out != dir+"\n" {
			t.Errorf("in %s: exit %+v\n%s", dir, exit, out)
		}
		spec.Sandbox.Writable = []string{"/"}
		if out, exit := output(t, s, spec); exit.Code != 0 {
			t.Errorf("in %s, with all writable: exit %+v\n%s", dir, exit, out)
		}
	}
}

// TestLocalSockets checks that a process which serves a socket in the file
// system for its parent can do so, as plugins do.
func TestLocalSockets(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		dir := t.TempDir()
		spec := proc.Spec{Path: os.Args[0], Args: []string{"serve", dir + "/socket"}, Env: []string{roleEnv + "=attack"}, Dir: dir}
		spec.Sandbox = &sandbox.Profile{Mode: mode, Writable: []string{dir}, Network: sandbox.Network{Serve: true}}
		var out bytes.Buffer
		spec.Stdout, spec.Stderr = &out, &out
		p, err := s.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		var c net.Conn
		eventually(t, "a connection", func() bool {
			c, err = net.Dial("unix", dir+"/socket")
			return err == nil
		})
		defer c.Close()
		if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
			t.Errorf("%q, %v", b, err)
		}
		if exit, err := p.Wait(); err != nil || exit.Code != 0 {
			t.Errorf("exit %+v, error %v\n%s", exit, err, &out)
		}
	})
}

// TestServedSocketsConnectToNothing checks that a process that may serve sockets
// cannot connect to those of others.
func TestServedSocketsConnectToNothing(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		w := newWorld(t)
		spec := proc.Spec{Path: os.Args[0], Env: []string{roleEnv + "=attack"}, Dir: w.ws}
		spec.Sandbox = w.profile(mode)
		spec.Sandbox.Network.Serve = true
		for _, args := range [][]string{{"dial", "unix", w.named}, {"dial", "unix", w.abstract}, {"dial", "tcp", w.tcp}, {"dial", "udp", w.udp}} {
			spec.Args = args
			if out, exit := output(t, s, spec); exit.Code == 0 {
				t.Errorf("%q: it connected\n%s", args, out)
			}
		}
		if mode == sandbox.ModeLandlock { // a datagram needs no connection
			spec.Args = []string{"socket", strconv.Itoa(unix.AF_UNIX)}
			if out, exit := output(t, s, spec); exit.Code == 0 {
				t.Errorf("a socket for datagrams was made\n%s", out)
			}
		}
	})
}

// TestSocketsOfTheWorkspace checks that sockets of other processes are hidden in
// writable directories as well, unless they were granted.
func TestSocketsOfTheWorkspace(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		dir := t.TempDir()
		path := dir + "/sub.sock"
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		defer l.Close()
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return // closed
				}
				_, _ = c.Write([]byte("hello")) // the client's output does not matter
				c.Close()
			}
		})
		spec := proc.Spec{Path: os.Args[0], Args: []string{"dial", "unix", path}, Env: []string{roleEnv + "=attack"}, Dir: dir}
		spec.Sandbox = &sandbox.Profile{Mode: mode, Writable: []string{dir}}
		if out, exit := output(t, s, spec); exit.Code == 0 {
			t.Errorf("it connected\n%s", out)
		}
		if mode == sandbox.ModeLandlock {
			return // which cannot distinguish sockets
		}
		spec.Sandbox.Writable = []string{dir, path}
		if out, exit := output(t, s, spec); exit.Code != 0 {
			t.Errorf("to a granted one: exit %+v\n%s", exit, out)
		}
	})
}

// TestMissingCaches checks that programs can write their caches in a new home
// directory, and that variables that are set are kept.
func TestMissingCaches(t *testing.T) {
	eachLevel(t, func(t *testing.T, s *proc.Supervisor, mode sandbox.Mode) {
		home := t.TempDir()
		script := `for dir in "$XDG_CACHE_HOME" "$GOCACHE" "$GOMODCACHE" "$PIP_CACHE_DIR"; do mkdir -p "$dir" && echo x >"$dir/f" && cat "$dir/f"; done; echo "$npm_config_cache"`
		spec := confined(mode, t.TempDir(), script)
		spec.Env = append(spec.Env, "npm_config_cache=/mine")
		spec.Sandbox.Scratch, spec.Sandbox.Layers = []string{home + "/.cache", home + "/go/pkg", home + "/.npm"}, t.TempDir()
		if out, exit := output(t, s, spec); exit.Code != 0 || mode == sandbox.ModeNamespace && out != "x\nx\nx\nx\n/mine\n" {
			t.Errorf("exit %+v\n%s", exit, out)
		}
		if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 {
			t.Errorf("the home directory has %v (error %v)", entries, err)
		}
	})
}
