package early

import (
	"syscall"
	"unsafe"
)

// helper is the memory of a helper, which the fork server has ready: its copy
// must not allocate.
type helper struct {
	slots   [Slots]uintptr
	message syscall.Msghdr
	vector  syscall.Iovec
	control [64]byte  // a control message with at most four files
	files   [4]uint32 // received
	text    [MessageSize]byte
	word    uintptr // received
	mask    uint64  // signals
	action  [4]uintptr
	status  int32
	done    uint32 // steps of the plans before this one
	image   unsafe.Pointer
}

const (
	cloexec     = 4          // CLOSE_RANGE_CLOEXEC
	recvCloexec = 0x40000000 // MSG_CMSG_CLOEXEC
	exitFailed  = 126        // the helper's exit code when the command did not start
	maxImage    = 64 << 20
	sysPrivate  = syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS

	sysCloseRange = 436 // the same on every architecture
)

// raw makes a system call.
//
//go:nosplit
//go:norace
func raw(number, a, b, c, d, e, f uintptr) (uintptr, syscall.Errno) {
	result, _, errno := syscall.RawSyscall6(number, a, b, c, d, e, f)
	return result, errno
}

// fork forks a helper into namespaces, as a child of this process's parent.
//
//go:nosplit
//go:norace
//go:noinline
func (h *helper) fork(flags uintptr, socket uint32) (pid uintptr, errno syscall.Errno) {
	pid, errno = h.clone(flags)
	if pid == 0 && errno == 0 {
		start := h.begin(uintptr(socket))
		if start.hold == 1 {
			h.hold()
		}
		h.command(start)
	}
	return pid, errno
}

// clone returns twice, in the child with 0. All signals are blocked in the child:
// their handlers are the runtime's, which the helper does not have.
//
//go:nosplit
//go:norace
func (h *helper) clone(flags uintptr) (pid uintptr, errno syscall.Errno) {
	all := ^uint64(0)
	raw(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&h.mask)), 8, 0, 0)
	pid, errno = raw(syscall.SYS_CLONE, flags|syscall.CLONE_PARENT|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		raw(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&h.mask)), 0, 8, 0, 0)
	}
	return pid, errno
}

// hold forks a helper for each request, as the server does, until the other side
// is gone.
//
//go:nosplit
//go:norace
func (h *helper) hold() {
	h.report(FD, Message{Kind: Started})
	for {
		h.receiveWord()
		n, errno := raw(syscall.SYS_RECVMSG, FD, uintptr(unsafe.Pointer(&h.message)), recvCloexec, 0, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 || n != unsafe.Sizeof(h.word) || h.received() != 1 {
			h.exit(0)
		}
		socket := h.files[0]
		pid, errno := h.clone(h.word)
		if pid == 0 && errno == 0 {
			h.command(h.begin(uintptr(socket)))
		}
		h.report(socket, Message{Forked, uint32(pid), uint32(errno)})
		raw(syscall.SYS_CLOSE, uintptr(socket), 0, 0, 0, 0, 0)
	}
}

// begin takes the helper's socket, gets the plans and makes their system calls. It
// returns the last plan.
//
//go:nosplit
//go:norace
func (h *helper) begin(socket uintptr) *head {
	raw(syscall.SYS_DUP3, socket, FD, syscall.O_CLOEXEC, 0, 0, 0)
	h.closeRange(FD+1, 0)
	h.resetSignals()
	for {
		if !h.load() {
			h.fail(StepPlan, syscall.EBADMSG)
		}
		start := (*head)(h.image)
		if start.ahead == 0 {
			h.admitSignals(start.init == 1)
			h.run(start.steps, start.count)
			return start
		}
		h.run(start.steps, start.count)
		h.done += uint32(start.count)
		raw(syscall.SYS_MUNMAP, uintptr(h.image), h.word, 0, 0, 0, 0)
	}
}

// command runs the command, and ends with it.
//
//go:nosplit
//go:norace
func (h *helper) command(start *head) {
	if start.path == 0 {
		h.exit(0)
	}
	if start.init == 0 {
		h.fail(StepStart, h.exec(start))
	}
	// The helper waits until the command's program runs, or the child has reported
	// that it does not.
	pid := vfork()
	if errno := syscall.Errno(-pid); errno < 4096 && errno != 0 {
		h.fail(StepStart, errno)
	}
	if pid == 0 {
		h.fail(StepStart, h.exec(start))
	}
	for fd := range uintptr(3) { // the command's end must be the end of its output
		raw(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	h.report(FD, Message{Kind: Started})
	h.reap(pid)
}

// load gets the files and the image.
//
//go:nosplit
//go:norace
func (h *helper) load() bool {
	h.receiveWord()
	n, errno := raw(syscall.SYS_RECVMSG, FD, uintptr(unsafe.Pointer(&h.message)), recvCloexec, 0, 0, 0)
	size := h.word
	if errno != 0 || n != unsafe.Sizeof(h.word) || size < unsafe.Sizeof(head{}) || size > maxImage {
		return false
	}
	files := h.received() // none for a holder
	for i := range uintptr(files) {
		to, flags := i, uintptr(0)
		if i >= FD {
			to, flags = i+1, syscall.O_CLOEXEC
		}
		// Received files have numbers above their final ones, in this order.
		if from := uintptr(h.files[i]); from != to {
			raw(syscall.SYS_DUP3, from, to, flags, 0, 0, 0)
			raw(syscall.SYS_CLOSE, from, 0, 0, 0, 0, 0)
		}
	}
	at, errno := raw(syscall.SYS_MMAP, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, sysPrivate, ^uintptr(0), 0)
	if errno != 0 {
		return false
	}
	h.image = *(*unsafe.Pointer)(unsafe.Pointer(&at))
	for got := uintptr(0); got < size; {
		n, errno := raw(syscall.SYS_READ, FD, at+got, size-got, 0, 0, 0)
		if errno != 0 || n == 0 {
			return false
		}
		got += n
	}
	return true
}

// prepare makes the message header ready for receiving.
//
//go:nosplit
//go:norace
func (h *helper) prepare(at, size uintptr) {
	h.vector.Base = *(**byte)(unsafe.Pointer(&at))
	h.vector.Len = uint64(size)
	h.message.Iov, h.message.Iovlen = &h.vector, 1
	h.message.Control, h.message.Controllen = &h.control[0], uint64(len(h.control))
}

// receiveWord makes the message header ready for receiving a word.
//
//go:nosplit
//go:norace
func (h *helper) receiveWord() { h.prepare(uintptr(unsafe.Pointer(&h.word)), unsafe.Sizeof(h.word)) }

// received stores the files that came with a message, and returns their number.
//
//go:nosplit
//go:norace
func (h *helper) received() int {
	header := (*syscall.Cmsghdr)(unsafe.Pointer(&h.control[0]))
	if h.message.Controllen < syscall.SizeofCmsghdr || header.Level != syscall.SOL_SOCKET || header.Type != syscall.SCM_RIGHTS {
		return 0
	}
	n := min(int(header.Len-syscall.SizeofCmsghdr)/4, len(h.files))
	for i := range n {
		h.files[i] = *(*uint32)(unsafe.Pointer(&h.control[syscall.SizeofCmsghdr+4*i]))
	}
	return n
}

// resetSignals takes the runtime's handlers off. What is ignored stays so, as it
// does for any child of a Go program.
//
//go:nosplit
//go:norace
func (h *helper) resetSignals() {
	const ignored = 1 // SIG_IGN
	for sig := uintptr(1); sig <= 64; sig++ {
		raw(syscall.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&h.action)), 8, 0, 0)
		if h.action[0] != ignored {
			h.setDefault(sig)
		}
	}
}

// admitSignals unblocks all signals. In the first process of a PID namespace none
// is ignored that asks to end: the kernel does not deliver to it what has no
// handler, and a child has the default action.
//
//go:nosplit
//go:norace
func (h *helper) admitSignals(first bool) {
	for sig := uintptr(1); sig <= 64 && first; sig++ {
		if asksToEnd(sig) {
			h.setDefault(sig)
		}
	}
	h.mask = 0
	raw(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&h.mask)), 0, 8, 0, 0)
}

//go:nosplit
//go:norace
func (h *helper) setDefault(sig uintptr) {
	h.action = [4]uintptr{}
	raw(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&h.action)), 0, 8, 0, 0)
}

// asksToEnd reports whether a process is asked to end by a signal.
//
//go:nosplit
func asksToEnd(sig uintptr) bool {
	switch syscall.Signal(sig) {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return true
	}
	return false
}

// run makes the system calls.
//
//go:nosplit
//go:norace
func (h *helper) run(at, count uintptr) {
	for i := range count {
		c := (*call)(unsafe.Add(h.image, at+i*unsafe.Sizeof(call{})))
		h.resolve(c)
		result, errno := raw(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		switch {
		case errno == 0:
			h.slots[c.keep%Slots] = result
			if c.send {
				h.send(h.done+uint32(i), result)
			}
		case errno >= errnos || c.ignore[errno/64]&(1<<(errno%64)) == 0:
			h.fail(h.done+uint32(i), errno)
		case c.keep != 0:
			h.slots[c.keep%Slots] = ^uintptr(0) // no descriptor
		}
	}
}

// resolve replaces slots and offsets among a call's arguments.
//
//go:nosplit
//go:norace
func (h *helper) resolve(c *call) {
	for i := range c.args {
		bit := uint8(1) << i
		if c.slots&bit != 0 {
			c.args[i] = h.slots[c.args[i]%Slots]
		}
		if c.filters&bit != 0 {
			h.relocate(c.args[i] + unsafe.Sizeof(uintptr(0)))
		}
		if c.offsets&bit != 0 {
			c.args[i] += uintptr(h.image)
		}
	}
}

// relocate turns the offset that is stored at an offset into a pointer.
//
//go:nosplit
//go:norace
func (h *helper) relocate(at uintptr) (end bool) {
	word := (*uintptr)(unsafe.Add(h.image, at))
	if *word == 0 {
		return true
	}
	*word += uintptr(h.image)
	return false
}

// exec runs the command's program instead of this one.
//
//go:nosplit
//go:norace
func (h *helper) exec(start *head) syscall.Errno {
	for at := start.args; !h.relocate(at); at += unsafe.Sizeof(at) {
	}
	for at := start.env; !h.relocate(at); at += unsafe.Sizeof(at) {
	}
	base := uintptr(h.image)
	_, errno := raw(syscall.SYS_EXECVE, base+start.path, base+start.args, base+start.env, 0, 0, 0)
	return errno
}

// reap waits for the command and reports its end, then for the other side to
// close the socket, if there are still others. With the end of the helper
// everything in its PID namespace ends.
//
//go:nosplit
//go:norace
func (h *helper) reap(command uintptr) {
	status := uintptr(unsafe.Pointer(&h.status))
	for {
		pid, errno := raw(syscall.SYS_WAIT4, ^uintptr(0), status, 0, 0, 0, 0)
		if errno == 0 && pid == command {
			break
		}
		if errno != 0 && errno != syscall.EINTR {
			h.fail(StepStart, errno)
		}
	}
	ended, others := uint32(h.status), uint32(1)
	for others == 1 {
		pid, errno := raw(syscall.SYS_WAIT4, ^uintptr(0), 0, syscall.WNOHANG, 0, 0, 0)
		if errno == syscall.ECHILD {
			others = 0
		} else if pid == 0 {
			break
		}
	}
	h.report(FD, Message{Exited, ended, others})
	for others == 1 {
		n, errno := raw(syscall.SYS_READ, FD, uintptr(unsafe.Pointer(&h.text)), 1, 0, 0, 0)
		if n == 0 || errno != 0 && errno != syscall.EINTR {
			break
		}
	}
	h.exit(0)
}

// send passes a socket on.
//
//go:nosplit
//go:norace
func (h *helper) send(step uint32, fd uintptr) {
	Message{Kind: Listening}.encode(&h.text)
	h.prepare(uintptr(unsafe.Pointer(&h.text)), MessageSize)
	header := (*syscall.Cmsghdr)(unsafe.Pointer(&h.control[0]))
	header.Level, header.Type, header.Len = syscall.SOL_SOCKET, syscall.SCM_RIGHTS, syscall.SizeofCmsghdr+4
	*(*uint32)(unsafe.Pointer(&h.control[syscall.SizeofCmsghdr])) = uint32(fd)
	h.message.Controllen = syscall.SizeofCmsghdr + 8
	if _, errno := raw(syscall.SYS_SENDMSG, FD, uintptr(unsafe.Pointer(&h.message)), syscall.MSG_NOSIGNAL, 0, 0, 0); errno != 0 {
		h.fail(step, errno)
	}
}

// report sends a message.
//
//go:nosplit
//go:norace
func (h *helper) report(fd uint32, m Message) {
	m.encode(&h.text)
	raw(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&h.text)), MessageSize, syscall.MSG_NOSIGNAL, 0, 0)
}

// fail reports the step that failed, and ends the process.
//
//go:nosplit
//go:norace
func (h *helper) fail(step uint32, errno syscall.Errno) {
	h.report(FD, Message{Failed, step, uint32(errno)})
	h.exit(exitFailed)
}

//go:nosplit
//go:norace
func (h *helper) exit(code uintptr) {
	for {
		raw(syscall.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
	}
}

//go:nosplit
//go:norace
func (h *helper) closeRange(from, flags uintptr) {
	raw(sysCloseRange, from, ^uintptr(0)>>1, flags, 0, 0, 0)
}
