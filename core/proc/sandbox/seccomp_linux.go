//go:build amd64 || arm64

package sandbox

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// The system call filter is a deny-list: an allow-list would break programs with
// every new kernel and libc. It blocks ways around the other protections, and
// parts of the kernel that are rarely needed and had many vulnerabilities.

// refused get EPERM: they act on other processes, on mounts and namespaces, or
// on the whole machine.
var refused = append([]uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}, refusedHere...)

// absent get ENOSYS, so that programs fall back: a filter cannot inspect the
// arguments of clone3 or the operations of io_uring.
var absent = []uintptr{
	unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// unowned get EPERM without mounts: Landlock has no rights for them.
var unowned = append([]uintptr{unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_FILE_SETATTR}, unownedHere...)

// unlabelled get ENOTSUP without mounts: programs that copy files then skip them.
var unlabelled = []uintptr{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

// sockets selects the sockets that a filter allows, besides pairs.
type sockets uint8

const (
	unixSockets   sockets = 1 << iota // AF_UNIX
	inetSockets                       // AF_INET, AF_INET6
	routeSockets                      // AF_NETLINK, but only NETLINK_ROUTE, for network interfaces
	servedSockets                     // AF_UNIX, but only streams, without connect
)

// newNamespaces are the flags that clone and unshare must not have.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// socketKinds are the bits of a socket's type without flags.
const socketKinds = 0xf

// Offsets in struct seccomp_data of little-endian machines.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// filter builds a BPF program.
type filter []unix.SockFilter

// access is how a process is confined to files.
type access uint8

const (
	mounted   access = iota // by mounts
	writes                  // by Landlock, with a broker for what is written
	writesAll               // the same, also for what is read
)

// seccompFilter returns the filter. Without mounts, it also denies changes of a
// file's owner and attributes, and hands calls over to the broker.
func seccompFilter(allowed sockets, files access) []unix.SockFilter {
	r := rules{}
	r.refuse(unix.EPERM, refused...)
	r.refuse(unix.ENOSYS, absent...)
	if files != mounted {
		r.refuse(unix.EPERM, unowned...)
		r.refuse(unix.ENOTSUP, unlabelled...)
		r.handOver(files)
	}
	for _, call := range []uintptr{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		var check filter
		check.load(offsetArgs)
		check.when(unix.BPF_JSET, newNamespaces, unix.EPERM)
		r.check(call, check)
	}
	var ioctl filter
	ioctl.load(offsetArgs + 8)
	ioctl.when(unix.BPF_JEQ, unix.TIOCSTI, unix.EPERM)
	ioctl.when(unix.BPF_JEQ, unix.TIOCLINUX, unix.EPERM)
	r.check(unix.SYS_IOCTL, ioctl)
	r.check(unix.SYS_SOCKET, socketCheck(allowed))
	if allowed&servedSockets != 0 {
		r.refuse(unix.EPERM, unix.SYS_CONNECT)
	}
	var f filter
	f.load(offsetArch)
	f.unless(unix.BPF_JEQ, auditArch, unix.ENOSYS)
	f.load(offsetNumber)
	f.when(unix.BPF_JGE, foreignCalls, unix.ENOSYS)
	return append(f, r.tree(slices.Sorted(maps.Keys(r)))...)
}

// rules are checks by system call. A check ends with a return.
type rules map[uintptr]filter

// check allows what a check does not return for.
func (r rules) check(call uintptr, check filter) {
	check.ret(unix.SECCOMP_RET_ALLOW)
	r[call] = check
}

func (r rules) refuse(errno unix.Errno, calls ...uintptr) {
	for _, call := range calls {
		var check filter
		check.ret(errnoResult(errno))
		r[call] = check
	}
}

// leafCalls is how many calls are compared one after the other.
const leafCalls = 8

// tree finds the rule of a loaded call, among sorted ones, by halving: for each
// filter, the kernel runs it for all calls to find those that are always allowed.
func (r rules) tree(calls []uintptr) filter {
	if len(calls) <= leafCalls {
		return r.leaf(calls)
	}
	middle := len(calls) / 2
	below, above := r.tree(calls[:middle]), r.tree(calls[middle:])
	var f filter
	f.jump(unix.BPF_JGE, uint32(calls[middle]), 0, 1)
	f = append(f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(below))})
	return slices.Concat(f, below, above)
}

func (r rules) leaf(calls []uintptr) (f filter) {
	var checks filter
	begins := make([]int, len(calls)) // of the checks; equal ones stand there once
	for i, call := range calls {
		before := slices.IndexFunc(calls[:i], func(other uintptr) bool { return slices.Equal(r[other], r[call]) })
		if before >= 0 {
			begins[i] = begins[before]
			continue
		}
		begins[i] = len(checks)
		checks = append(checks, r[call]...)
	}
	for i, call := range calls {
		f.jump(unix.BPF_JEQ, uint32(call), uint8(len(calls)-i+begins[i]), 0)
	}
	f.ret(unix.SECCOMP_RET_ALLOW)
	return append(f, checks...)
}

// socketCheck allows the selected sockets.
func socketCheck(allowed sockets) filter {
	var f filter
	f.load(offsetArgs)
	switch {
	case allowed&unixSockets != 0:
		f.allow(unix.AF_UNIX)
	case allowed&servedSockets != 0: // datagrams reach others without connecting
		var kind filter
		kind.load(offsetArgs + 8)
		kind = append(kind, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketKinds})
		kind.unless(unix.BPF_JEQ, unix.SOCK_STREAM, unix.EPERM)
		f.only(unix.AF_UNIX, kind)
	default:
		f.when(unix.BPF_JEQ, unix.AF_UNIX, unix.EPERM)
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		if allowed&inetSockets != 0 {
			f.allow(family)
		} else {
			f.when(unix.BPF_JEQ, family, unix.EPERM)
		}
	}
	if allowed&routeSockets != 0 {
		f.unless(unix.BPF_JEQ, unix.AF_NETLINK, unix.EAFNOSUPPORT)
		f.load(offsetArgs + 16)
		f.allow(unix.NETLINK_ROUTE)
	}
	f.ret(errnoResult(unix.EAFNOSUPPORT))
	return f
}

func errnoResult(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

func (f *filter) load(offset uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (f *filter) ret(result uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: result})
}

// jump skips the next yes or no instructions.
func (f *filter) jump(test uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k})
}

// when fails with errno if the test is true for the loaded value.
func (f *filter) when(test uint16, k uint32, errno unix.Errno) {
	f.jump(test, k, 0, 1)
	f.ret(errnoResult(errno))
}

// unless fails with errno if the test is false.
func (f *filter) unless(test uint16, k uint32, errno unix.Errno) {
	f.jump(test, k, 1, 0)
	f.ret(errnoResult(errno))
}

// allow allows the call if the loaded value is k.
func (f *filter) allow(k uint32) {
	f.jump(unix.BPF_JEQ, k, 0, 1)
	f.ret(unix.SECCOMP_RET_ALLOW)
}

// handOver hands calls over to the broker; those that open a file to read it only if
// the broker is for these, too.
func (r rules) handOver(files access) {
	for call := range brokered {
		var check filter
		if flags, opens := openCalls[call]; opens && files == writes {
			check.load(offsetArgs + 8*uint32(flags))
			check.jump(unix.BPF_JSET, unix.O_WRONLY|unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 1, 0)
			check.ret(unix.SECCOMP_RET_ALLOW)
		}
		check.ret(unix.SECCOMP_RET_USER_NOTIF)
		r[call] = check
	}
}

// only runs check if the loaded value is k.
func (f *filter) only(k uint32, check filter) {
	check.ret(unix.SECCOMP_RET_ALLOW)
	f.jump(unix.BPF_JEQ, k, 0, uint8(len(check)))
	*f = append(*f, check...)
}
