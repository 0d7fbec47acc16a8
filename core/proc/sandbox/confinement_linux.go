package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc/internal/early"
)

// levelsHere are the levels of this system, the best one first.
var levelsHere = []Level{Namespace, Landlock}

const noLevels = "this system has no sandbox"

// enterTime is the timeout of the helper for starting the command.
const enterTime = 30 * time.Second

// self is the program that becomes the helper: the running one, even if its file
// was replaced.
const self = "/proc/self/exe"

// build makes cmd start the helper.
func (c *Confinement) build(p *Profile, cmd *exec.Cmd) error {
	program, err := programOf(cmd)
	if err != nil {
		return err
	}
	dir := cmd.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("sandbox: working directory: %w", err)
		}
	}
	c.net = p.Network
	c.group = systemGroups().create(p.Limits)
	if err := c.connect(); err != nil {
		return err
	}
	cmd.ExtraFiles = c.theirs // descriptor 3
	env := []string{early.Env + "=" + c.token}
	switch c.Level {
	case Namespace:
		env = append(env, "TMPDIR=/tmp")
		env = append(env, proxyEnv(&p.Network, cmd.Env)...)
		env = append(env, cacheEnv(p, "/tmp", false, cmd.Env)...)
		c.helper = true
		enterNamespaces(p, cmd)
		// Compute the plan while the helper starts.
		c.work = func() (*plan, error) { return c.planNamespace(p, program, dir) }
	case Landlock:
		err = c.buildLandlock(p, cmd, &env)
	}
	if err != nil {
		return err
	}
	c.program = program
	// A runtime with few threads starts faster.
	if !slices.ContainsFunc(cmd.Env, func(entry string) bool { return strings.HasPrefix(entry, "GOMAXPROCS=") }) {
		env = append(env, "GOMAXPROCS=1")
		c.drop = []string{"GOMAXPROCS"}
	}
	cmd.Path, cmd.Env = self, append(cmd.Env[:len(cmd.Env):len(cmd.Env)], env...)
	return nil
}

// programOf returns the absolute path of a command's program.
func programOf(cmd *exec.Cmd) (string, error) {
	if cmd.Err != nil {
		return "", cmd.Err
	}
	if filepath.IsAbs(cmd.Path) || cmd.Path == "" {
		return cmd.Path, nil
	}
	return filepath.Abs(filepath.Join(cmd.Dir, cmd.Path))
}

// connect creates the socket pair and writes the token to it.
func (c *Confinement) connect() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("sandbox: a socket for the helper: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "sandbox")
	defer ours.Close()
	c.theirs = append(c.theirs, os.NewFile(uintptr(pair[1]), "sandbox helper"))
	conn, err := net.FileConn(ours)
	if err != nil {
		return fmt.Errorf("sandbox: a socket for the helper: %w", err)
	}
	c.conn = conn.(*net.UnixConn)
	c.token = newToken()
	_, err = c.conn.Write([]byte(c.token))
	return err
}

// enterNamespaces makes the helper start in its own namespaces.
func enterNamespaces(p *Profile, cmd *exec.Cmd) {
	cmd.Dir = "/"
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	attr := *cmd.SysProcAttr
	attr.Cloneflags = namespaceFlags(p)
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	// Only root keeps capabilities in the namespaces across the exec of the
	// helper automatically.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_NET_BIND_SERVICE}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	cmd.SysProcAttr = &attr
}

// planNamespace computes the helper's plan, and creates placeholders for
// protected paths that are missing.
func (c *Confinement) planNamespace(p *Profile, program, dir string) (*plan, error) {
	visible := []string{dir}
	if program != "" {
		visible = append(visible, program)
	}
	l, err := newLayout(p, visible...)
	if err != nil {
		return nil, err
	}
	l.hideSockets()
	for _, s := range slices.Concat(l.scratch, l.tried) {
		for _, dir := range []string{s.upper, s.work} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("sandbox: create a directory for changes to %s: %w", s.path, err)
			}
		}
	}
	if len(l.writable)+len(l.readable)+len(l.pins)+len(l.holds)+len(l.tried) > maxTrees {
		return nil, fmt.Errorf("sandbox: more than %d writable, readable and protected paths", maxTrees)
	}
	var there []pin
	for _, pin := range l.pins {
		switch {
		case !pin.missing:
		case !pin.dir:
			c.absent = append(c.absent, pin)
			continue
		default:
			held, err := usePlaceholder(pin.path)
			switch {
			case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
				continue // the process cannot create one there either
			case err != nil:
				return nil, err
			}
			c.stands = append(c.stands, held)
		}
		there = append(there, pin)
	}
	l.pins = there
	return namespacePlan(p, l, dir, landlockABI()), nil
}

// maxTrees is the maximum number of mounts of a process, limited by the slots.
const maxTrees = 200

func (c *Confinement) buildLandlock(p *Profile, cmd *exec.Cmd, env *[]string) error {
	confined := *p
	if confined.Tmp == "" {
		var err error
		if c.tmp, err = NewTempDir(); err != nil {
			return fmt.Errorf("sandbox: create a directory for temporary files: %w", err)
		}
		confined.Tmp = c.tmp.Path
	}
	l, err := newLayout(&confined)
	if err != nil {
		return err
	}
	rules, err := newRuleset(&confined, l, landlockABI())
	if err != nil {
		return err
	}
	c.theirs = append(c.theirs, rules) // descriptor 4
	cmd.ExtraFiles = c.theirs
	*env = append(*env, "TMPDIR="+confined.Tmp)
	*env = append(*env, cacheEnv(p, confined.Tmp, true, nil)...)
	c.broker = newBroker(l, confined.Tmp)
	c.work = func() (*plan, error) { return landlockPlan(p, brokeredFiles(l)), nil }
	return nil
}

// stepError is a step of the helper that failed.
type stepError struct {
	What string
	Err  syscall.Errno
}

// Error implements error.
func (e *stepError) Error() string { return fmt.Sprintf("sandbox: %s: %v", e.What, e.Err) }

// Unwrap returns the system's error.
func (e *stepError) Unwrap() error { return e.Err }

// Enter sends the plan to the started helper, and returns when the command runs.
// The error of a command that cannot be started is the system's.
func (c *Confinement) Enter(ctx context.Context) error {
	c.started()
	if c.group != "" {
		if err := joinGroup(c.group, c.cmd.Process.Pid); err != nil { // other limits remain
			c.manager.logger.Debug("move a process to its control group", "error", err)
		}
	}
	_ = c.conn.SetDeadline(time.Now().Add(enterTime))
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Now()) })
	err := c.enter()
	if !stop() { // the context is done, or will be
		return errors.Join(ctx.Err(), err)
	}
	_ = c.conn.SetDeadline(time.Time{})
	return err
}

func (c *Confinement) enter() (err error) {
	if c.plan, err = c.work(); err != nil {
		return err
	}
	c.plan.Path, c.plan.Drop, c.plan.Init = c.program, c.drop, c.helper
	if _, err := c.conn.Write(c.plan.Append(nil)); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("sandbox: send the plan to the helper: %w", err)
	}
	for {
		m, file, err := c.receive()
		switch {
		case errors.Is(err, io.EOF) && !c.helper:
			return nil // it has become the command
		case err != nil:
			return fmt.Errorf("sandbox: the helper ended before the command started: %w", err)
		case m.Kind == early.Started:
			return nil
		case m.Kind == early.Listening && file != nil:
			if err := c.serve(file); err != nil {
				return err
			}
		case m.Kind == early.Failed:
			return c.failure(m)
		default:
			return fmt.Errorf("sandbox: the helper sent an unknown message %q", byte(m.Kind))
		}
	}
}

// failure is the error of a step that failed.
func (c *Confinement) failure(m early.Message) error {
	errno := syscall.Errno(m.B)
	switch {
	case m.A == early.StepStart:
		return &os.PathError{Op: "exec", Path: c.plan.Path, Err: errno}
	case int(m.A) < len(c.plan.what):
		return &stepError{c.plan.what[m.A], errno}
	}
	return &stepError{"read the plan", errno}
}

// serve starts the broker, or the proxy on the socket that the helper opened in the
// process's network namespace.
func (c *Confinement) serve(file *os.File) error {
	defer file.Close()
	if c.Level == Landlock {
		return c.broker.serve(file)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("sandbox: socket of the proxy: %w", err)
	}
	if c.proxy == nil { // its socket comes first
		c.proxy, err = newProxy(listener, c.net)
		return err
	}
	c.proxy.forward(listener)
	return nil
}

// receive reads a message, with the file that may be attached.
func (c *Confinement) receive() (early.Message, *os.File, error) {
	var b [early.MessageSize]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(b[:], oob)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	if err != nil {
		return early.Message{}, nil, err
	}
	file := passedFile(oob[:oobn])
	if _, err := io.ReadFull(c.conn, b[n:]); err != nil {
		return early.Message{}, file, err
	}
	return early.DecodeMessage(b[:]), file, nil
}

// passedFile returns the file that came with a message, or nil.
func passedFile(oob []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "proxy")
}

// Wait waits for the end of the command in a sandbox with a helper. It is not ok
// if the helper ended first.
func (c *Confinement) Wait() (ended Ended, ok bool) {
	m, file, err := c.receive()
	if file != nil {
		file.Close()
	}
	if err != nil || m.Kind != early.Exited {
		return Ended{}, false
	}
	status := syscall.WaitStatus(m.A)
	ended = Ended{Code: status.ExitStatus(), Others: m.B != 0}
	if status.Signaled() {
		ended.Signal = unix.SignalName(status.Signal())
	}
	return ended, true
}

// probe tests a level with a process that does nothing.
func (m *Manager) probe(level Level) (works bool, reason string) {
	if seccompFilter(0, mounted) == nil {
		return false, "there is no system call filter for this architecture, only for amd64 and arm64"
	}
	if level == Landlock {
		if abi := landlockABI(); abi < abiTruncate {
			return false, fmt.Sprintf("the kernel has Landlock version %d, but version %d is required: Linux 6.2 or later, with Landlock enabled (lsm=…,landlock)", abi, abiTruncate)
		}
	}
	cmd := &exec.Cmd{Args: []string{"agent-sandbox-probe"}, Env: []string{}, Dir: "/"}
	c, err := m.confine(level, &Profile{}, cmd)
	if err != nil {
		return false, err.Error()
	}
	defer c.Remove()
	defer c.Close()
	c.helper = false // it ends after the steps
	if err := m.runner.Start(cmd); err != nil {
		return false, whyNot(err)
	}
	c.started()
	_ = c.conn.SetDeadline(time.Now().Add(enterTime))
	err = c.enter()
	if err != nil {
		_ = cmd.Process.Kill()
	}
	m.runner.Wait(cmd)
	switch state := cmd.ProcessState; {
	case state != nil && state.Success():
		return true, ""
	case err != nil:
		return false, whyNot(err)
	}
	return false, "the helper failed"
}

// whyNot adds the most likely cause to an error, and what to do.
func whyNot(err error) string {
	is := func(file, value string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.TrimSpace(string(text)) == value
	}
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return text + ": the kernel is too old: Linux 5.12 or later is required"
	case is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		return text + ": AppArmor denies unprivileged programs user namespaces; to allow them, add an AppArmor profile with userns for agent, or run sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case is("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		return text + ": user namespaces are disabled; enable them with sysctl kernel.unprivileged_userns_clone=1"
	case is("/proc/sys/user/max_user_namespaces", "0"):
		return text + ": user namespaces are disabled; enable them with sysctl user.max_user_namespaces=10000"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return text + ": this is probably a container that does not allow new namespaces"
	}
	return text
}
