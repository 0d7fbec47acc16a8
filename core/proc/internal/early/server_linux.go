package early

import (
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
	serve()
}

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

// serve forks a helper for each request, until the other side is gone. It does
// not allocate, so that a server that lives for days stays as small as it was.
func serve() {
	h := &helper{}
	h.closeRange(FD, cloexec)
	for h.next() {
		socket := h.files[0]
		pid, errno := h.fork(h.word, socket)
		h.report(socket, Message{Forked, uint32(pid), uint32(errno)})
		_ = syscall.Close(int(socket))
	}
	h.exit(0)
}

// next waits for a request: flags, and a socket that is the first of the files.
func (h *helper) next() bool {
	for {
		h.receiveWord()
		// Not raw: the runtime's monitor would try to get the processor back.
		n, _, errno := syscall.Syscall(syscall.SYS_RECVMSG, FD, uintptr(unsafe.Pointer(&h.message)), recvCloexec)
		switch {
		case errno == syscall.EINTR:
		case errno != 0 || n != unsafe.Sizeof(h.word):
			return false
		default:
			return h.received() == 1
		}
	}
}
