package early

import (
	"runtime"
	"syscall"
	"unsafe"
)

// init runs on the process's first thread, to which it is locked, when there
// is nothing yet but the runtime.
func init() {
	token, ok := syscall.Getenv(Env)
	if !ok || len(token) != TokenSize || !called(token) {
		return
	}
	help()
}

// exitFailed is the helper's exit code when the command did not start.
const exitFailed = 126

// maxPlan bounds the memory for a plan.
const maxPlan = 64 << 20

// called reports whether descriptor 3 is a socket that holds the token, and
// takes the token off. Nothing that belongs to somebody else is read.
func called(token string) bool {
	kind, err := syscall.GetsockoptInt(FD, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if err != nil || kind != syscall.SOCK_STREAM {
		return false
	}
	var b [TokenSize]byte
	n, _, err := syscall.Recvfrom(FD, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	if err != nil || n != TokenSize || string(b[:]) != token {
		return false
	}
	n, _, err = syscall.Recvfrom(FD, b[:], 0)
	return err == nil && n == TokenSize
}

// help is the helper's whole life.
func help() {
	const cloexec = 4 // CLOSE_RANGE_CLOEXEC
	_, _, errno := syscall.RawSyscall(sysCloseRange, FD, ^uintptr(0)>>1, cloexec)
	if errno != 0 {
		fail(StepPlan, errno)
	}
	argv, ok := readArgs()
	plan, valid := readPlan()
	if !ok || !valid {
		fail(StepPlan, syscall.EBADMSG)
	}
	run(plan.Steps)
	if plan.Path == "" {
		exit(0)
	}
	env := environ(append(plan.Drop, Env))
	if !plan.Init {
		fail(StepStart, errnoOf(syscall.Exec(plan.Path, argv, env)))
	}
	for _, sig := range endings {
		ignoreAsInit(sig)
	}
	pid, err := syscall.ForkExec(plan.Path, argv, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		fail(StepStart, errnoOf(err))
	}
	for fd := range 3 { // the command's end must be the end of its output
		_ = syscall.Close(fd)
	}
	send(Message{Kind: Started})
	reap(pid)
}

// endings are the signals by which a process is asked to end.
var endings = [...]syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// ignoreAsInit takes the runtime's handler off. The kernel does not deliver
// what has no handler to the first process of a PID namespace, and, other than
// when it is ignored, a child has the default action.
func ignoreAsInit(sig syscall.Signal) {
	var action [32]byte // struct kernel_sigaction with SIG_DFL
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// reap waits for the command and reports its end, then for the other side to
// close the socket, if there are still others. With the end of the helper
// everything in its PID namespace ends.
func reap(command int) {
	var status syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == command {
			break
		}
		if err != nil && err != syscall.EINTR {
			fail(StepStart, errnoOf(err))
		}
	}
	others := uint32(1)
	for others == 1 {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			others = 0
		} else if pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	send(Message{Exited, uint32(status), others})
	if others == 1 {
		var b [1]byte
		for {
			if n, err := syscall.Read(FD, b[:]); n == 0 || err != nil && err != syscall.EINTR {
				break
			}
		}
	}
	exit(0)
}

// run makes the system calls.
func run(steps []Step) {
	m := &machine{}
	for i := range steps {
		s := &steps[i]
		result, errno := m.call(s)
		if errno != 0 {
			if !ignored(s, errno) {
				fail(uint32(i), errno)
			}
			if s.Keep != 0 {
				m.slots[s.Keep] = ^uintptr(0) // no descriptor
			}
			continue
		}
		m.slots[s.Keep] = result
		if s.Send {
			rights := syscall.UnixRights(int(result))
			if err := syscall.Sendmsg(FD, Message{Kind: Listening}.Encode(), rights, nil, 0); err != nil {
				fail(uint32(i), errnoOf(err))
			}
		}
	}
}

// machine makes system calls. It is on the heap, where nothing moves.
type machine struct {
	slots [Slots]uintptr
	progs []*fprog
}

// fprog is struct sock_fprog.
type fprog struct {
	len    uint16
	filter *byte
}

func (m *machine) call(s *Step) (result uintptr, errno syscall.Errno) {
	var args [6]uintptr
	for i, a := range s.Args {
		switch a.Kind {
		case Number:
			args[i] = uintptr(a.Value)
		case Slot:
			args[i] = m.slots[a.Value%Slots]
		case Bytes:
			args[i] = uintptr(unsafe.Pointer(unsafe.SliceData(a.Data)))
		case Filter:
			prog := &fprog{len: uint16(len(a.Data) / 8), filter: unsafe.SliceData(a.Data)}
			m.progs = append(m.progs, prog)
			args[i] = uintptr(unsafe.Pointer(prog))
		}
	}
	// Raw: the runtime's monitor would take the processor from a call that lasts
	// longer than 20 µs, and the way back is a wait for another thread.
	result, _, errno = syscall.RawSyscall6(s.Call, args[0], args[1], args[2], args[3], args[4], args[5])
	runtime.KeepAlive(s)
	runtime.KeepAlive(m)
	return result, errno
}

func ignored(s *Step, errno syscall.Errno) bool {
	for _, e := range s.Ignore {
		if syscall.Errno(e) == errno {
			return true
		}
	}
	return false
}

// readPlan reads the plan from the socket.
func readPlan() (*Plan, bool) {
	var head [8]byte
	if !readFull(head[:]) {
		return nil, false
	}
	size := get(head[:])
	if size > maxPlan {
		return nil, false
	}
	body := make([]byte, size)
	if !readFull(body) {
		return nil, false
	}
	return Decode(body)
}

func readFull(b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(FD, b)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// readArgs returns the command line, which is the command's own. Package os
// has it only after its initialisation.
func readArgs() (argv []string, ok bool) {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer syscall.Close(fd)
	var text []byte
	for {
		if cap(text)-len(text) < 4096 {
			text = append(make([]byte, 0, 2*cap(text)+8192), text...)
		}
		n, err := syscall.Read(fd, text[len(text):cap(text)])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, false
		}
		if n == 0 {
			break
		}
		text = text[:len(text)+n]
	}
	for start, i := 0, 0; i < len(text); i++ {
		if text[i] == 0 {
			argv = append(argv, string(text[start:i]))
			start = i + 1
		}
	}
	return argv, len(argv) > 0
}

// environ returns the command's environment: that of the helper without the
// variables of those names.
func environ(drop []string) []string {
	var kept []string
next:
	for _, entry := range syscall.Environ() {
		for _, name := range drop {
			if len(entry) > len(name) && entry[:len(name)] == name && entry[len(name)] == '=' {
				continue next
			}
		}
		kept = append(kept, entry)
	}
	return kept
}

func send(m Message) {
	b := m.Encode()
	for {
		if _, err := syscall.Write(FD, b); err != syscall.EINTR {
			return
		}
	}
}

// fail reports the step that failed, and ends the helper.
func fail(step uint32, errno syscall.Errno) {
	send(Message{Failed, step, uint32(errno)})
	exit(exitFailed)
}

func exit(code int) {
	for {
		syscall.Exit(code)
	}
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := err.(syscall.Errno); ok {
		return errno
	}
	return syscall.EINVAL
}

// sysCloseRange is the same number on every architecture.
const sysCloseRange = 436
