//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilter runs the filters for all system calls: what is refused is, whatever its
// place in the tree, and everything else is allowed.
func TestFilter(t *testing.T) {
	for _, kind := range []struct {
		sockets sockets
		files   access
	}{{unixSockets | inetSockets | routeSockets, mounted}, {servedSockets | inetSockets, writes}, {servedSockets, writesAll}} {
		run := machine(t, seccompFilter(kind.sockets, kind.files))
		want := func(call uintptr) uint32 {
			switch {
			case slices.Contains(refused, call), call == unix.SYS_CONNECT && kind.sockets&servedSockets != 0,
				kind.files != mounted && slices.Contains(unowned, call):
				return errnoResult(unix.EPERM)
			case slices.Contains(absent, call):
				return errnoResult(unix.ENOSYS)
			case kind.files != mounted && slices.Contains(unlabelled, call):
				return errnoResult(unix.ENOTSUP)
			case call == unix.SYS_SOCKET: // of family 0
				return errnoResult(unix.EAFNOSUPPORT)
			}
			_, opens := openCalls[call]
			if _, handed := brokered[call]; handed && kind.files != mounted && !(opens && kind.files == writes) {
				return unix.SECCOMP_RET_USER_NOTIF
			}
			return unix.SECCOMP_RET_ALLOW
		}
		for call := range uintptr(1024) {
			if got := run(auditArch, uint32(call)); got != want(call) {
				t.Errorf("%v: call %d has the result %#x, want %#x", kind, call, got, want(call))
			}
		}
		for call, flag := range map[uintptr]uint64{unix.SYS_CLONE: unix.CLONE_NEWUSER, unix.SYS_UNSHARE: unix.CLONE_NEWNET} {
			if got := run(auditArch, uint32(call), flag); got != errnoResult(unix.EPERM) {
				t.Errorf("%v: call %d with new namespaces has the result %#x", kind, call, got)
			}
		}
		if got := run(auditArch, unix.SYS_IOCTL, 0, unix.TIOCSTI); got != errnoResult(unix.EPERM) {
			t.Errorf("%v: TIOCSTI has the result %#x", kind, got)
		}
		for name, got := range map[string]uint32{"another architecture": run(auditArch+1, unix.SYS_READ), "a foreign call": run(auditArch, foreignCalls)} {
			if got != errnoResult(unix.ENOSYS) {
				t.Errorf("%v: %s has the result %#x", kind, name, got)
			}
		}
	}
}

// machine returns a function that runs a filter for a call with arguments.
func machine(t *testing.T, f []unix.SockFilter) func(arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	var program []bpf.Instruction
	for _, i := range f {
		program = append(program, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return func(arch, call uint32, args ...uint64) uint32 {
		// struct seccomp_data; the machine reads words in network byte order.
		data := make([]byte, 64)
		word := func(at int, value uint32) { binary.BigEndian.PutUint32(data[at:], value) }
		word(offsetNumber, call)
		word(offsetArch, arch)
		for i, arg := range args {
			word(offsetArgs+8*i, uint32(arg))
			word(offsetArgs+8*i+4, uint32(arg>>32))
		}
		result, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(result)
	}
}
