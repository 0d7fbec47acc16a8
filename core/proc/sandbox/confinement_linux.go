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

// build prepares the start of a helper that runs cmd.
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
	if c.from, err = c.manager.server.ensure(); err != nil {
		return err
	}
	var env []string
	switch c.Level {
	case Namespace:
		env = append(env, "TMPDIR=/tmp")
		env = append(env, proxyEnv(&p.Network, cmd.Env)...)
		env = append(env, cacheEnv(p, "/tmp", false, cmd.Env)...)
		c.helper = true
		c.flags = namespaceFlags(p)
		if !p.Network.Full && len(p.Network.Hosts) == 0 {
			if c.from, err = c.manager.server.hold(c.from); err != nil {
				return err
			}
			c.held, c.flags = true, c.flags&^holderFlags
			c.vacant.Store(true)
		}
		c.work = func() (*plan, error) { return c.planNamespace(p, program, dir) }
	case Landlock:
		err = c.buildLandlock(p, dir, &env)
	}
	if err != nil {
		return err
	}
	c.program = program
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], env...)
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

// Start starts the helper.
func (c *Confinement) Start() error {
	// The caller may set it for its children only.
	if locks := (unix.Rlimit{}); unix.Getrlimit(unix.RLIMIT_LOCKS, &locks) == nil {
		c.locks = bytesOf(locks)
	}
	c.vacant.Store(false) // a holder that cannot fork is not used again
	h, err := c.from.helper(c.flags)
	if err != nil {
		return err
	}
	c.conn, c.cmd.Process = h.conn, h.process
	return nil
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
	b := c.begin()
	namespacePlan(b, p, l, dir, landlockABI(), c.held)
	return b, nil
}

// maxTrees is the maximum number of mounts of a process, limited by the slots.
const maxTrees = 200

func (c *Confinement) buildLandlock(p *Profile, dir string, env *[]string) error {
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
	c.rules = rules
	*env = append(*env, "TMPDIR="+confined.Tmp)
	*env = append(*env, cacheEnv(p, confined.Tmp, true, nil)...)
	c.broker = newBroker(l, confined.Tmp)
	c.work = func() (*plan, error) {
		b := c.begin()
		landlockPlan(b, p, dir, brokeredFiles(l))
		return b, nil
	}
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
	if err == nil {
		c.from.refill(c.flags)
	}
	return err
}

func (c *Confinement) enter() (err error) {
	if c.plan, err = c.work(); err != nil {
		return err
	}
	if err := c.hand(); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("sandbox: send the plan to the helper: %w", err)
	}
	for {
		m, file, err := receive(c.conn)
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
			return c.plan.failure(m)
		default:
			return fmt.Errorf("sandbox: the helper sent an unknown message %q", byte(m.Kind))
		}
	}
}

// begin returns a plan that begins with what a child of this process would get from
// it and its attributes.
func (c *Confinement) begin() *plan {
	b := &plan{}
	if before, ok := ahead(c.flags); ok {
		b.ahead, b.slots = before.plan, uint8(len(replacedAhead))
	}
	if attr := c.cmd.SysProcAttr; attr != nil {
		if attr.Setsid {
			b.do("create a session", unix.SYS_SETSID)
		}
		if attr.Setctty {
			b.do("set the controlling terminal", unix.SYS_IOCTL, attr.Ctty, unix.TIOCSCTTY, 1)
		}
		if attr.Pdeathsig != 0 {
			b.prctl("end with the agent", unix.PR_SET_PDEATHSIG, int(attr.Pdeathsig))
		}
	}
	if c.locks != nil {
		b.do("set the limit of file locks", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, c.locks, 0)
	}
	return b
}

// hand gives the helper its files and the plan.
func (c *Confinement) hand() error {
	c.plan.Path, c.plan.Args, c.plan.Env, c.plan.Init = c.program, c.cmd.Args, c.cmd.Environ(), c.helper
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	var fds []int
	for _, stream := range []any{c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr} {
		file, ok := stream.(*os.File)
		if !ok || file == nil {
			file = null
		}
		fds = append(fds, int(file.Fd()))
	}
	if c.rules != nil {
		fds = append(fds, int(c.rules.Fd())) // descriptor 4
	}
	return hand(c.conn, c.plan.Image(), fds)
}

// hand gives a helper its files and the image of a plan.
func hand(conn *net.UnixConn, image []byte, fds []int) error {
	if _, _, err := conn.WriteMsgUnix(early.Word(uintptr(len(image))), unix.UnixRights(fds...), nil); err != nil {
		return err
	}
	_, err := conn.Write(image)
	return err
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
func receive(conn *net.UnixConn) (early.Message, *os.File, error) {
	var b [early.MessageSize]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(b[:], oob)
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
	if _, err := io.ReadFull(conn, b[n:]); err != nil {
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
	m, file, err := receive(c.conn)
	if file != nil {
		file.Close()
	}
	if err != nil || m.Kind != early.Exited {
		return Ended{}, false
	}
	status := syscall.WaitStatus(m.A)
	ended = Ended{Code: status.ExitStatus(), Others: m.B != 0}
	c.vacant.Store(!ended.Others)
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
	if err := m.runner.Start(cmd, c.Start); err != nil {
		return false, whyNot(err)
	}
	_ = c.conn.SetDeadline(time.Now().Add(enterTime))
	err = c.enter()
	if err != nil {
		_ = cmd.Process.Kill()
	}
	m.runner.Wait(cmd)
	switch state := cmd.ProcessState; {
	case state != nil && state.Success():
		c.vacant.Store(true)
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
