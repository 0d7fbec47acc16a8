package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// world is the surroundings of an attack: a writable workspace, and its targets.
type world struct {
	base, ws  string
	outside   string // a visible directory
	masked    string // a directory that is hidden
	maskedEnv string // a file in the workspace that is hidden
	victim    *exec.Cmd
	tcp, udp  string
	abstract  string
	named     string // a socket in the file system
	fd        *os.File
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{base: base, ws: base + "/ws", outside: base + "/outside", masked: base + "/home/.ssh", maskedEnv: base + "/ws/.env"}
	for file, text := range map[string]string{
		w.ws + "/.git/config": "[core]\n", w.ws + "/.git/hooks/sample": "#!/bin/sh\n", w.ws + "/sub/.agent/settings.json": "{}",
		w.ws + "/file": "mine", w.maskedEnv: "secret", w.outside + "/file": "theirs", w.masked + "/id": "secret",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	w.listen(t)
	w.victim = exec.Command("sleep", "300")
	w.victim.Env = []string{"SECRET=of-the-victim"}
	if err := w.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.victim.Process.Kill()
		_ = w.victim.Wait()
	})
	w.fd, err = os.OpenFile(w.outside+"/inherited", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.fd.Close() })
	return w
}

// listen opens a socket of each kind, which answers with "hello".
func (w *world) listen(t *testing.T) {
	t.Helper()
	serve := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		t.Cleanup(func() { l.Close(); <-done })
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "hello")
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	w.tcp = serve("tcp", "127.0.0.1:0")
	w.abstract = "@agent-sandbox-test-" + filepath.Base(filepath.Dir(w.base)) + strconv.Itoa(os.Getpid())
	serve("unix", w.abstract)
	w.named = w.base + "/socket"
	serve("unix", w.named)
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { u.Close(); <-done })
	go func() {
		defer close(done)
		b := make([]byte, 16)
		for {
			_, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo([]byte("hello"), from)
		}
	}()
	w.udp = u.LocalAddr().String()
}

func (w *world) profile(mode sandbox.Mode) *sandbox.Profile {
	return &sandbox.Profile{
		Mode: mode, Writable: []string{w.ws}, Readable: []string{w.base},
		ReadOnly: []string{w.ws + "/.git", w.ws + "/sub/.agent/", w.ws + "/.vscode/", w.ws + "/.envrc"},
		Masked:   []string{w.masked, w.maskedEnv, w.base + "/missing"},
	}
}

// attack is something that works without a sandbox and must fail in one.
type attack struct {
	name   string
	script func(w *world) string   // for the shell
	args   func(w *world) []string // or for the test binary, see playAttack
	needs  []string
	root   bool // works only as root without a sandbox
	rare   bool // does not work on every machine without a sandbox
	aside  bool // may work temporarily, but its result is renamed in the end
	stdin  func(t *testing.T) *os.File
}

func script(format string, paths ...func(*world) string) func(*world) string {
	return func(w *world) string {
		args := make([]any, len(paths))
		for i, p := range paths {
			args[i] = p(w)
		}
		return fmt.Sprintf(format, args...)
	}
}

func outside(w *world) string { return w.outside }
func masked(w *world) string  { return w.masked }
func pid(w *world) string     { return strconv.Itoa(w.victim.Process.Pid) }

func act(role string, args ...func(*world) string) func(*world) []string {
	return func(w *world) []string {
		all := []string{role}
		for _, a := range args {
			all = append(all, a(w))
		}
		return all
	}
}

var attacks = []attack{
	{name: "write outside", script: script("echo x >%s/new", outside)},
	{name: "append outside", script: script("echo x >>%s/file", outside)},
	{name: "truncate outside", args: act("truncate", outside)},
	{name: "remove outside", script: script("rm -f %s/file && ! test -e %[1]s/file", outside)},
	{name: "rename outside", script: script("mv %s/file %[1]s/other", outside)},
	{name: "make a directory outside", script: script("mkdir %s/dir", outside)},
	{name: "chmod outside", script: script("chmod 777 %s/file", outside)},
	{name: "chown outside", script: script("chown 12345 %s/file", outside), root: true},
	{name: "set attributes outside", args: act("setxattr", outside)},
	{name: "link out and write", script: script("ln -s %s/file link && echo x >>link", outside)},
	{name: "hard link in and write", script: script("ln %s/file hard && echo x >>hard", outside)},
	{name: "hard link out", script: script("ln file %s/hard", outside)},
	{name: "move out", script: script("cp file copy && mv copy %s/moved && test -e %[1]s/moved", outside)},
	{name: "write by dot-dot", script: script("echo x >../outside/new && test -e %s/new", outside)},
	{name: "write through /proc/self/root", script: script("echo x >/proc/self/root%s/new", outside)},
	{name: "write through an inherited descriptor", args: act("fd")},
	{name: "read a masked directory", script: script("cat %s/id", masked)},
	{name: "list and read a masked directory", script: script("cd %s && cat *", masked)},
	{name: "read a masked file", script: script("cat .env | grep secret")},
	{name: "read a masked file by a link", script: script("ln -s .env other && cat other | grep secret")},
	{name: "read a masked file by a hard link", script: script("ln .env other && cat other | grep secret")},
	{name: "move a masked file away", script: script("mv .env moved && cat moved | grep secret")},
	{name: "write git configuration", script: script("echo x >>.git/config")},
	{name: "write a git hook", script: script("echo x >.git/hooks/pre-commit")},
	{name: "move .git", script: script("mv .git .git2")},
	{name: "replace .git", script: script("mv .git .old && mkdir -p .git/hooks && echo x >.git/hooks/pre-commit")},
	{name: "remove .git", script: script("rm -rf .git && ! test -e .git")},
	{name: "plant a hook by a symbolic link", script: script("ln -s ../../file .git/hooks/post-checkout")},
	{name: "plant a hook by a hard link", script: script("ln file .git/hooks/post-checkout")},
	{name: "move the parent of a pin", script: script("mv sub sub2 && mkdir -p sub/.agent && echo '{}' >sub/.agent/settings.json")},
	{name: "write a pin", script: script("echo x >sub/.agent/settings.json")},
	{name: "make a missing pinned directory", script: script("mkdir -p .vscode && echo x >.vscode/tasks.json")},
	{name: "make a missing pinned file", script: script("echo x >.envrc"), aside: true},
	{name: "plant a symbolic link for a missing pin", script: script("ln -s file .envrc && test -L .envrc"), aside: true},
	{name: "move onto a missing pin", script: script("echo x >f2; mv f2 .envrc && grep x .envrc"), aside: true},
	{name: "chmod git configuration", script: script("chmod 777 .git/config")},
	{name: "chmod a masked file", script: script("chmod 777 .env")},
	{name: "write a pin by the working directory's link", script: script("echo x >>/proc/self/cwd/.git/config")},
	{name: "write a pin by a link", script: script("mkdir d && ln -s ../.git d/l && echo x >>d/l/config")},
	{name: "write a pin from another directory", script: script("mkdir d && cd d && echo x >>../.git/config")},
	{name: "exchange a pin's parent", args: act("exchange")},
	{name: "link an unnamed file", args: act("tmpfile")},
	{name: "change a path while it is checked", args: act("race path", func(*world) string { return ".git/hooks/raced" })},
	{name: "change a directory while it is checked", args: act("race directory", func(*world) string { return ".git/hooks/raced" })},
	{name: "read a hidden file by changing a path", args: act("race read")},
	{name: "TCP", args: act("dial", func(*world) string { return "tcp" }, func(w *world) string { return w.tcp })},
	{name: "UDP", args: act("dial", func(*world) string { return "udp" }, func(w *world) string { return w.udp })},
	{name: "abstract socket", args: act("dial", func(*world) string { return "unix" }, func(w *world) string { return w.abstract })},
	{name: "named socket", args: act("dial", func(*world) string { return "unix" }, func(w *world) string { return w.named })},
	{name: "raw socket", args: act("socket", func(*world) string { return strconv.Itoa(unix.AF_PACKET) }), root: true},
	{name: "kernel crypto socket", args: act("socket", func(*world) string { return strconv.Itoa(unix.AF_ALG) }), rare: true},
	{name: "hypervisor socket", args: act("socket", func(*world) string { return strconv.Itoa(unix.AF_VSOCK) }), rare: true},
	{name: "audit socket", args: act("socket", func(*world) string { return strconv.Itoa(unix.AF_NETLINK) }, func(*world) string { return strconv.Itoa(unix.NETLINK_AUDIT) })},
	{name: "kill", script: script("kill -9 %s", pid)},
	{name: "ptrace", args: act("ptrace", pid)},
	{name: "read the memory of others", args: act("vmread", pid)},
	{name: "environment of others", script: script("tr '\\0' '\\n' </proc/%s/environ | grep SECRET", pid)},
	{name: "root of others", script: script("ls /proc/%s/root/", pid)},
	{name: "descriptors of others", script: script("readlink /proc/%s/fd/0", pid)},
	{name: "tty injection", args: act("tiocsti"), stdin: terminal, root: true},
	{name: "mount", args: act("mount", outside), root: true},
	{name: "remount", args: act("remount"), root: true},
	{name: "unmount", args: act("unmount"), root: true},
	{name: "new user namespace", args: act("unshare")},
	{name: "bpf", args: act("bpf"), root: true},
	{name: "userfaultfd", args: act("call", func(*world) string { return strconv.Itoa(unix.SYS_USERFAULTFD) }), root: true},
	{name: "io_uring", args: act("iouring")},
	{name: "keyring", args: act("keyctl")},
	{name: "read a disk", script: script(`d=$(ls /dev/vda /dev/sda /dev/nvme0n1 2>/dev/null | head -n 1); test -b "$d"; head -c 1 "$d"`), root: true, rare: true},
	{name: "set a kernel parameter", script: script("cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern"), root: true},
}

// terminal returns a pseudo-terminal.
func terminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { slave.Close() })
	return slave
}

// strike performs an attack and returns its output.
func (a *attack) strike(t *testing.T, s *proc.Supervisor, w *world, mode sandbox.Mode) (proc.Exit, string) {
	t.Helper()
	var out bytes.Buffer
	var spec proc.Spec
	if a.script != nil {
		spec = sh("set -e\n" + a.script(w))
	} else {
		spec = proc.Spec{Path: os.Args[0], Args: a.args(w), Env: []string{roleEnv + "=attack", "PATH=" + os.Getenv("PATH")}}
	}
	spec.Dir, spec.Stdout, spec.Stderr = w.ws, &out, &out
	if a.stdin != nil {
		spec.Stdin = a.stdin(t)
	}
	spec.Sandbox = w.profile(mode)
	if mode != sandbox.ModeOff {
		spec.Env = append(spec.Env, sandboxedEnv+"=1")
	}
	// A descriptor that is inherited by mistake.
	if _, err := unix.FcntlInt(w.fd.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	spec.Env = append(spec.Env, fmt.Sprintf("INHERITED=%d", w.fd.Fd()))
	p, err := s.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

// TestAttacks performs each attack without a sandbox, where it works, and on
// every level of this machine, where it fails.
func TestAttacks(t *testing.T) {
	for _, level := range []sandbox.Mode{sandbox.ModeOff, sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(level), func(t *testing.T) {
			s := newSupervisor(t)
			if _, err := s.Sandbox().Choose(context.Background(), level); err != nil {
				t.Skip(err)
			}
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) {
					need(t, a.needs...)
					if a.root && level == sandbox.ModeOff && os.Getuid() != 0 {
						t.Skip("works only as root without a sandbox")
					}
					w := newWorld(t)
					before := w.state(t)
					exit, out := a.strike(t, s, w, level)
					if level == sandbox.ModeOff {
						if exit.Code != 0 && a.rare {
							t.Logf("this machine does not allow it even without a sandbox: %s", out)
							return
						}
						if exit.Code != 0 {
							t.Errorf("without a sandbox: exit %+v\n%s", exit, out)
						}
						return
					}
					if exit.Code == 0 && !(a.aside && level == sandbox.ModeNamespace) || exit.Code == exitNotTried {
						t.Errorf("exit %+v\n%s", exit, out)
					}
					if after := w.state(t); after != before {
						t.Errorf("the world has changed:\n%s\nbefore it was\n%s\n%s", after, before, out)
					}
					if err := w.victim.Process.Signal(syscall.Signal(0)); err != nil {
						t.Errorf("the victim: %v", err)
					}
				})
			}
		})
	}
}

// state describes what an attack must not change.
func (w *world) state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{w.outside, w.ws + "/.git", w.ws + "/sub", w.base + "/home", w.ws + "/.env"} {
		err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			text := []byte(nil)
			if info.Mode().IsRegular() {
				if text, err = os.ReadFile(path); err != nil {
					return err
				}
			}
			fmt.Fprintf(&b, "%s %v %q\n", path, info.Mode(), text)
			return nil
		})
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	for _, name := range []string{".vscode", ".envrc"} {
		_, err := os.Lstat(filepath.Join(w.ws, name))
		fmt.Fprintln(&b, name, err == nil)
	}
	return b.String()
}

// exitNotTried is the exit code of an attack that failed for another reason.
const exitNotTried = 77

// playAttack is the role of the attacker in the sandbox.
func playAttack() int {
	runtime.LockOSThread() // ptrace belongs to a thread
	role, args := os.Args[1], os.Args[2:]
	err := roles[role](args)
	if errors.Is(err, errNotTried) {
		fmt.Println(err)
		return exitNotTried
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

var errNotTried = errors.New("the attack was not tried")

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Println(err)
		os.Exit(exitNotTried)
	}
	return n
}

func syscallError(call uintptr, args ...uintptr) error {
	args = slices.Concat(args, make([]uintptr, 6))
	_, _, errno := syscall.Syscall6(call, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return errno
	}
	return nil
}

// raceTime is how long an attack tries to win a race.
const raceTime = 300 * time.Millisecond

// racedPath is a path in memory that changes all the time.
type racedPath struct {
	text []byte
	done chan struct{}
	wg   sync.WaitGroup
}

func newRacedPath(good, evil string) *racedPath {
	p := &racedPath{text: make([]byte, 64), done: make(chan struct{})}
	copy(p.text, good)
	p.wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-p.done:
				return
			default:
				clear(p.text[copy(p.text, []string{good, evil}[i%2]):])
			}
		}
	})
	return p
}

func (p *racedPath) open(flags int) (int, error) {
	at := int64(unix.AT_FDCWD)
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&p.text[0])), uintptr(flags), 0o755, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func (p *racedPath) stop() {
	close(p.done)
	p.wg.Wait()
}

// race creates a file at a path that changes between a harmless and an evil one, until
// there is one at the target.
func race(target, good, evil string, change func(i int)) error {
	path := newRacedPath(good, evil)
	defer path.stop()
	for i, end := 0, time.Now().Add(raceTime); time.Now().Before(end); i++ {
		if change != nil {
			change(i)
		}
		if fd, err := path.open(unix.O_CREAT | unix.O_WRONLY); err == nil {
			unix.Close(fd)
		}
		if _, err := os.Lstat(target); err == nil {
			return nil
		}
	}
	return errors.New("the race was not won")
}

var roles = map[string]func(args []string) error{
	"truncate": func(a []string) error { return os.Truncate(a[0]+"/file", 0) },
	"setxattr": func(a []string) error {
		return unix.Setxattr(a[0]+"/file", "user.test", []byte("x"), 0)
	},
	"fd": func([]string) error {
		_, err := os.NewFile(uintptr(number(os.Getenv("INHERITED"))), "inherited").WriteString("x")
		return err
	},
	"exchange": func([]string) error {
		if err := errors.Join(os.MkdirAll("other/.agent", 0o755), os.WriteFile("other/.agent/settings.json", []byte("x"), 0o644)); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, "other", unix.AT_FDCWD, "sub", unix.RENAME_EXCHANGE)
	},
	"tmpfile": func([]string) error {
		fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, ".git/hooks/linked", unix.AT_SYMLINK_FOLLOW)
	},
	"race path": func(a []string) error {
		if err := os.Mkdir("aaaa", 0o755); err != nil {
			return err
		}
		return race(a[0], "aaaa/hooks/r", ".git/hooks/raced", nil)
	},
	"race directory": func(a []string) error {
		if err := errors.Join(os.MkdirAll("one/hooks", 0o755), os.Symlink(".git", "two"), os.Symlink("one", "at")); err != nil {
			return err
		}
		return race(a[0], "at/hooks/raced", "at/hooks/raced", func(i int) {
			_ = errors.Join(os.Symlink([]string{"one", ".git"}[i%2], "next"), os.Rename("next", "at"))
		})
	},
	"race read": func([]string) error {
		path := newRacedPath("file", ".env")
		defer path.stop()
		for end := time.Now().Add(raceTime); time.Now().Before(end); {
			fd, err := path.open(unix.O_RDONLY)
			if err != nil {
				continue
			}
			b := make([]byte, 6)
			n, _ := unix.Read(fd, b)
			unix.Close(fd)
			if string(b[:n]) == "secret" {
				return nil
			}
		}
		return errors.New("only the harmless file was read")
	},
	"listen": func(a []string) error { // until it is killed
		l, err := net.Listen(a[0], a[1])
		if err != nil {
			return err
		}
		defer l.Close()
		fmt.Println("listening")
		os.Stdout.Close()
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			_, _ = io.WriteString(c, "hello")
			c.Close()
		}
	},
	"dial": func(a []string) error {
		c, err := net.Dial(a[0], a[1])
		if err != nil {
			return err
		}
		defer c.Close()
		if a[0] == "udp" {
			if _, err := c.Write([]byte("hi")); err != nil {
				return err
			}
		}
		b := make([]byte, 5)
		_, err = io.ReadFull(c, b)
		return err
	},
	"socket": func(a []string) error {
		protocol := 0
		if len(a) > 1 {
			protocol = number(a[1])
		}
		kind := map[int]int{unix.AF_ALG: unix.SOCK_SEQPACKET, unix.AF_VSOCK: unix.SOCK_STREAM}[number(a[0])]
		if kind == 0 {
			kind = unix.SOCK_RAW
		}
		_, err := unix.Socket(number(a[0]), kind, protocol)
		return err
	},
	"ptrace": func(a []string) error { return syscall.PtraceAttach(number(a[0])) },
	"vmread": func(a []string) error {
		maps, err := os.ReadFile("/proc/" + a[0] + "/maps")
		if err != nil {
			return err
		}
		at, err := strconv.ParseUint(string(maps[:bytes.IndexByte(maps, '-')]), 16, 64)
		if err != nil {
			return err
		}
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err = unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: uintptr(at), Len: 8}}, 0)
		return err
	},
	"tiocsti": func([]string) error {
		b := byte('x')
		return syscallError(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
	},
	"mount": func(a []string) error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		return unix.Mount("tmpfs", a[0], "tmpfs", 0, "")
	},
	"remount": func([]string) error {
		if os.Getenv(sandboxedEnv) != "" { // the mounts are its own; without a sandbox they would be ours
			return unix.Mount("none", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "")
		}
		return nil
	},
	"unmount": func([]string) error {
		if os.Getenv(sandboxedEnv) != "" {
			return unix.Unmount("/proc", unix.MNT_DETACH)
		}
		return nil
	},
	"unshare": func([]string) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		return cmd.Run()
	},
	"bpf":  func([]string) error { b := make([]byte, 128); b[0], b[4], b[8], b[12] = 2, 4, 4, 1; return bpfMap(b) },
	"call": func(a []string) error { return syscallError(uintptr(number(a[0]))) },
	"get": func(a []string) error { // not an attack: uses the proxy even for local addresses
		client := http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(os.Getenv("HTTP_PROXY")) }}}
		resp, err := client.Get(a[0])
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(os.Stdout, resp.Body)
		if resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		return err
	},
	"serve": func(a []string) error { // not an attack either
		l, err := net.Listen("unix", a[0])
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = io.WriteString(c, "hello")
		return err
	},
	"iouring": func([]string) error {
		b := make([]byte, 120)
		return syscallError(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&b[0])))
	},
	"keyctl": func([]string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
		return err
	},
}

// bpfMap creates a BPF map of type array.
func bpfMap(attr []byte) error {
	return syscallError(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), 72)
}

// sandboxedEnv tells an attacker that it is confined.
const sandboxedEnv = "PROC_TEST_SANDBOXED"
