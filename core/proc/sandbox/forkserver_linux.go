package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc/internal/early"
)

// self is the program that becomes the fork server: the running one, even if its
// file was replaced.
const self = "/proc/self/exe"

// spareTime is how long helpers and holders wait at most for a command: helpers see
// the mounts of the time when they were forked.
const spareTime = time.Minute

// forkServer forks the helpers of all confined commands: a process that is started
// with the first one, see package early, and holders. A server or holder that was
// killed is replaced.
type forkServer struct {
	runner Runner

	mu     sync.Mutex
	closed bool
	root   *forker   // nil before the first command
	idle   []*forker // holders without a command
	wg     sync.WaitGroup
}

// ensure starts the server, unless it runs.
func (s *forkServer) ensure() (*forker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root != nil && s.root.alive() {
		return s.root, nil
	}
	if s.root != nil {
		s.root.close()
	}
	conn, cmd, err := s.start()
	if err != nil {
		return nil, err
	}
	s.root = s.forker(conn, cmd)
	return s.root, nil
}

// start starts the server's process.
func (s *forkServer) start() (*net.UnixConn, *exec.Cmd, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	token := newToken()
	if _, err := conn.Write([]byte(token)); err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("sandbox: write to the fork server: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"agent-sandbox"}
	cmd.Dir = "/"
	// A runtime with few threads starts faster, and one that does not collect garbage
	// needs no more: the server does not allocate.
	cmd.Env = []string{early.Env + "=" + token, "GOMAXPROCS=1", "GOGC=off"}
	cmd.ExtraFiles = []*os.File{theirs} // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.runner.Start(cmd, cmd.Start); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, cmd, nil
}

// forker returns the forker for a started process, which ends with its connection.
func (s *forkServer) forker(conn *net.UnixConn, cmd *exec.Cmd) *forker {
	f := &forker{runner: s.runner, conn: conn, done: make(chan struct{})}
	go func() {
		s.runner.Wait(cmd)
		close(f.done)
	}()
	return f
}

// hold returns a holder: a process in a user and a network namespace, in which
// commands run one after the other: making a network namespace, and removing it,
// takes about as long as the rest of a sandbox. It must be given to release.
func (s *forkServer) hold(root *forker) (*forker, error) {
	s.mu.Lock()
	for len(s.idle) > 0 {
		f := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		if f.alive() {
			s.mu.Unlock()
			f.expiry.Stop()
			return f, nil
		}
	}
	s.mu.Unlock()
	h, cmd, err := root.start(holderFlags)
	if err != nil {
		return nil, err
	}
	f := s.forker(h.conn, cmd)
	if err := beginHolding(h.conn); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// release takes a holder back. If processes of a command may be left in its
// namespaces, it is not used again.
func (s *forkServer) release(f *forker, vacant bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !vacant || s.closed {
		s.wg.Go(f.close)
		return
	}
	f.expiry = time.AfterFunc(spareTime, func() { s.expire(f) })
	s.idle = append(s.idle, f)
}

// expire ends a holder that was not used.
func (s *forkServer) expire(f *forker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.idle, f); i >= 0 && !s.closed {
		s.idle = slices.Delete(s.idle, i, i+1)
		s.wg.Go(f.close)
	}
}

// close ends all processes, and waits for their ends.
func (s *forkServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, f := range s.idle {
		f.expiry.Stop()
		f.close()
	}
	s.idle = nil
	if s.root != nil {
		s.root.close()
		s.root = nil
	}
	s.wg.Wait()
}

// forker is a process that forks helpers, the server or a holder. While a command
// runs, the helper of the next one is forked.
type forker struct {
	runner Runner
	done   chan struct{} // closed when the process was waited for
	expiry *time.Timer   // of an idle holder

	mu     sync.Mutex // of all below
	conn   *net.UnixConn
	closed bool
	spare  *helper // waits for its command, or nil
	wg     sync.WaitGroup
}

// helper is a forked helper that waits for its plan.
type helper struct {
	flags   uintptr // of its namespaces
	conn    *net.UnixConn
	process *os.Process
	expiry  *time.Timer
}

// errServer is the error for a process that has ended.
var errServer = errors.New("sandbox: the process that starts commands has ended; the next command starts another one")

func (f *forker) alive() bool {
	select {
	case <-f.done:
		return false
	default:
		return true
	}
}

// helper returns the spare helper, or forks one.
func (f *forker) helper(flags uintptr) (*helper, error) {
	if h := f.take(flags); h != nil {
		return h, nil
	}
	return f.fork(flags)
}

// take takes the spare helper, if it has the right namespaces.
func (f *forker) take(flags uintptr) *helper {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.spare
	if h == nil || h.flags != flags {
		return nil
	}
	f.spare = nil
	h.expiry.Stop()
	return h
}

// fork forks a helper into namespaces.
func (f *forker) fork(flags uintptr) (*helper, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	pid, err := f.request(flags, conn, theirs)
	theirs.Close()
	if err != nil {
		conn.Close()
		return nil, err
	}
	h := &helper{flags: flags, conn: conn}
	if h.process, err = os.FindProcess(pid); err != nil {
		return h, err
	}
	if before, ok := ahead(flags); ok {
		_ = hand(conn, before.image, nil) // if it fails, so does sending the plan of the command
	}
	return h, nil
}

// request asks the process for a helper with a socket, and returns its process ID.
func (f *forker) request(flags uintptr, ours *net.UnixConn, theirs *os.File) (pid int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, _, err := f.conn.WriteMsgUnix(early.Word(flags), unix.UnixRights(int(theirs.Fd())), nil); err != nil {
		return 0, errors.Join(errServer, err)
	}
	theirs.Close() // an end of the process must be an end of the connection
	_ = ours.SetReadDeadline(time.Now().Add(enterTime))
	defer ours.SetReadDeadline(time.Time{})
	m, _, err := receive(ours)
	switch {
	case err != nil:
		return 0, errors.Join(errServer, err)
	case m.Kind != early.Forked:
		return 0, fmt.Errorf("sandbox: the fork server sent an unknown message %q", byte(m.Kind))
	case m.B != 0:
		return 0, os.NewSyscallError("clone", syscall.Errno(m.B))
	}
	return int(m.A), nil
}

// start forks a helper as a child that the runner knows.
func (f *forker) start(flags uintptr) (h *helper, cmd *exec.Cmd, err error) {
	cmd = &exec.Cmd{}
	err = f.runner.Start(cmd, func() (err error) {
		if h, err = f.fork(flags); err == nil {
			cmd.Process = h.process
		}
		return err
	})
	return h, cmd, err
}

// refill forks a spare helper in the background, unless there is one. Without it,
// the next command waits for its own. Without namespaces that takes no time.
func (f *forker) refill(flags uintptr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flags == 0 || f.closed || f.spare != nil && f.spare.flags == flags {
		return
	}
	f.wg.Go(func() {
		if h, _, err := f.start(flags); err == nil {
			h.expiry = time.AfterFunc(spareTime, func() { f.expire(h) })
			f.drop(f.replace(h))
		}
	})
}

// replace makes h the spare helper, and returns the one before.
func (f *forker) replace(h *helper) (before *helper) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, f.spare = f.spare, h
	return before
}

// expire ends a spare helper that was not used.
func (f *forker) expire(h *helper) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spare == h && !f.closed {
		f.spare = nil
		f.wg.Go(func() { f.drop(h) })
	}
}

// drop ends a helper without a command, and waits for its end. It may be nil.
func (f *forker) drop(h *helper) {
	if h != nil {
		h.expiry.Stop()
		h.conn.Close()
		f.runner.Wait(&exec.Cmd{Process: h.process})
	}
}

// close ends the process and its spare helper, and waits for their ends.
func (f *forker) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.wg.Wait()
	f.drop(f.replace(nil))
	f.conn.Close()
	<-f.done
}

// holderFlags are the new namespaces of a holder.
const holderFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET

// beginHolding turns a helper into a holder.
func beginHolding(conn *net.UnixConn) error {
	b := &plan{}
	b.Hold = true
	b.identities()
	b.loopback()
	_ = conn.SetDeadline(time.Now().Add(enterTime))
	defer conn.SetDeadline(time.Time{})
	if err := hand(conn, b.Image(), nil); err != nil {
		return fmt.Errorf("sandbox: send the plan to the holder of a network namespace: %w", err)
	}
	m, _, err := receive(conn)
	switch {
	case err != nil:
		return fmt.Errorf("sandbox: the holder of a network namespace ended: %w", err)
	case m.Kind == early.Failed:
		return b.failure(m)
	}
	return nil
}

// socketPair returns a connection and the file of its other end.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: a socket for the helper: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), "sandbox helper")
	file := os.NewFile(uintptr(pair[0]), "sandbox")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("sandbox: a socket for the helper: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}
