package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc/internal/early"
)

// self is the program that becomes the fork server: the running one, even if its
// file was replaced.
const self = "/proc/self/exe"

// errServer is the error for a fork server that has ended.
var errServer = errors.New("sandbox: the fork server has ended; the next command starts another one")

// forkServer is the process that the helpers of all confined commands are forked
// from, see package early. It is started with the first one. A new one replaces
// one that was killed. While a command runs, the helper of the next one is forked.
type forkServer struct {
	runner Runner

	mu     sync.Mutex
	closed bool
	cmd    *exec.Cmd // nil before the start and after the end
	conn   *net.UnixConn
	done   chan struct{} // closed when the process was waited for
	spare  *helper       // waits for its command, or nil

	wg sync.WaitGroup
}

// helper is a forked helper that waits for its plan.
type helper struct {
	flags   uintptr // of its namespaces
	conn    *net.UnixConn
	process *os.Process
	expiry  *time.Timer
}

// spareTime is how long a helper waits at most for its command: it sees the mounts
// of the time when it was forked.
const spareTime = time.Minute

// ensure starts the server, unless it runs.
func (s *forkServer) ensure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		select {
		case <-s.done:
			s.conn.Close()
			s.cmd = nil
		default:
			return nil
		}
	}
	return s.start()
}

// start starts the server. The caller holds the lock.
func (s *forkServer) start() error {
	conn, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	token := newToken()
	if _, err := conn.Write([]byte(token)); err != nil {
		conn.Close()
		return fmt.Errorf("sandbox: write to the fork server: %w", err)
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
		return err
	}
	done := make(chan struct{})
	go func() { // ends with the process, which ends with the connection
		s.runner.Wait(cmd)
		close(done)
	}()
	s.cmd, s.conn, s.done = cmd, conn, done
	return nil
}

// helper returns the spare helper, or forks one.
func (s *forkServer) helper(flags uintptr) (*helper, error) {
	if h := s.take(flags); h != nil {
		return h, nil
	}
	return s.fork(flags)
}

// take takes the spare helper, if it has the right namespaces.
func (s *forkServer) take(flags uintptr) *helper {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.spare
	if h == nil || h.flags != flags {
		return nil
	}
	s.spare = nil
	h.expiry.Stop()
	return h
}

// fork forks a helper into namespaces.
func (s *forkServer) fork(flags uintptr) (*helper, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	pid, err := s.request(flags, conn, theirs)
	theirs.Close()
	if err != nil {
		conn.Close()
		return nil, err
	}
	h := &helper{flags: flags, conn: conn}
	h.process, err = os.FindProcess(pid)
	return h, err
}

// request asks the server for a helper with a socket, and returns its process ID.
func (s *forkServer) request(flags uintptr, ours *net.UnixConn, theirs *os.File) (pid int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0, errServer
	}
	if _, _, err := s.conn.WriteMsgUnix(early.Word(flags), unix.UnixRights(int(theirs.Fd())), nil); err != nil {
		return 0, errors.Join(errServer, err)
	}
	theirs.Close() // an end of the server must be an end of the connection
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

// refill forks a spare helper in the background, unless there is one. Without it,
// the next command waits for its own. Without namespaces that takes no time.
func (s *forkServer) refill(flags uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if flags == 0 || s.closed || s.spare != nil && s.spare.flags == flags {
		return
	}
	s.wg.Go(func() {
		var h *helper
		cmd := &exec.Cmd{}
		err := s.runner.Start(cmd, func() (err error) {
			if h, err = s.fork(flags); err == nil {
				cmd.Process = h.process
			}
			return err
		})
		if err == nil {
			h.expiry = time.AfterFunc(spareTime, func() { s.expire(h) })
			s.drop(s.replace(h))
		}
	})
}

// replace makes h the spare helper, and returns the one before.
func (s *forkServer) replace(h *helper) (before *helper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.spare = s.spare, h
	return before
}

// expire ends a spare helper that was not used.
func (s *forkServer) expire(h *helper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare == h && !s.closed {
		s.spare = nil
		s.wg.Go(func() { s.drop(h) })
	}
}

// drop ends a helper without a command, and waits for its end. It may be nil.
func (s *forkServer) drop(h *helper) {
	if h != nil {
		h.expiry.Stop()
		h.conn.Close()
		s.runner.Wait(&exec.Cmd{Process: h.process})
	}
}

// close ends the server and the spare helper, and waits for their ends.
func (s *forkServer) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wg.Wait()
	s.drop(s.replace(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		s.conn.Close()
		<-s.done
		s.cmd = nil
	}
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
