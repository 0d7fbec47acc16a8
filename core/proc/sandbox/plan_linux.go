package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc/internal/early"
)

// plan builds a list of system calls. Each has a description for errors.
type plan struct {
	early.Plan
	what  []string
	slots uint8
	ahead *plan // was carried out before; nil for none
}

// do adds a system call. An argument is an integer, a slot, a string or bytes.
func (b *plan) do(what string, call uintptr, args ...any) *early.Step {
	s := early.Step{Call: call, Args: make([]early.Arg, len(args))}
	for i, a := range args {
		s.Args[i] = argument(a)
	}
	b.Steps = append(b.Steps, s)
	b.what = append(b.what, what)
	return &b.Steps[len(b.Steps)-1]
}

// slot is where a result is stored.
type slot uint8

// keep adds a system call whose result is stored.
func (b *plan) keep(what string, call uintptr, args ...any) slot {
	b.slots++
	b.do(what, call, args...).Keep = b.slots
	return slot(b.slots)
}

// failure is the error of a step that failed.
func (b *plan) failure(m early.Message) error {
	errno := syscall.Errno(m.B)
	switch {
	case m.A == early.StepStart:
		return &os.PathError{Op: "exec", Path: b.Path, Err: errno}
	case b.ahead != nil && int(m.A) < len(b.ahead.what):
		return b.ahead.failure(m)
	}
	at := int(m.A)
	if b.ahead != nil {
		at -= len(b.ahead.what)
	}
	if at < len(b.what) {
		return &stepError{b.what[at], errno}
	}
	return &stepError{"read the plan", errno}
}

// here is AT_FDCWD as an argument.
const here = ^uint64(99)

func argument(a any) early.Arg {
	switch a := a.(type) {
	case int:
		return early.Arg{Value: uint64(a)}
	case uint64:
		return early.Arg{Value: a}
	case slot:
		return early.Arg{Kind: early.Slot, Value: uint64(a)}
	case string:
		return early.Arg{Kind: early.Bytes, Data: append([]byte(a), 0)}
	case []byte:
		return early.Arg{Kind: early.Bytes, Data: a}
	case []unix.SockFilter:
		return early.Arg{Kind: early.Filter, Data: bytesOf(a...)}
	}
	panic("sandbox: an argument of an unknown type") // cannot happen: all calls are in this package
}

// bytesOf returns the memory of C structures.
func bytesOf[T any](values ...T) []byte {
	var b []byte
	for i := range values {
		b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&values[i])), unsafe.Sizeof(values[i]))...)
	}
	return b
}

// ignore adds errors to ignore.
func ignore(s *early.Step, errnos ...unix.Errno) {
	for _, e := range errnos {
		s.Ignore = append(s.Ignore, uint16(e))
	}
}

// clone returns the tree at a path as a detached mount. A symbolic link is an
// error.
func (b *plan) clone(path string) slot {
	dir, rel := b.original(path)
	return b.keep("open "+path, unix.SYS_OPEN_TREE, dir, rel,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH)
}

// original returns a directory, and a path relative to it, that lead to what is at a
// path outside the sandbox.
func (b *plan) original(path string) (dir any, rel string) {
	for i, covered := range replacedAhead {
		if b.ahead != nil && Below(covered, path) {
			return slot(1 + i), strings.TrimPrefix(path[len(covered):], "/")
		}
	}
	return here, path
}

// originalPath is original as one path, for what takes no directory: it leads through the
// descriptor, which is the first free one and those after it.
func (b *plan) originalPath(path string) string {
	dir, rel := b.original(path)
	if covered, ok := dir.(slot); ok {
		return fmt.Sprintf("/proc/self/fd/%d/%s", early.FD+int(covered), rel)
	}
	return path
}

// seal makes a detached tree read-only.
func (b *plan) seal(tree slot, what string) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	b.do("make "+what+" read-only", unix.SYS_MOUNT_SETATTR, tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, bytesOf(attr), unix.MOUNT_ATTR_SIZE_VER0)
}

// unseal makes one of the process's own mounts writable again.
func (b *plan) unseal(path string) {
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	b.do("make "+path+" writable", unix.SYS_MOUNT_SETATTR, here, path, 0, bytesOf(attr), unix.MOUNT_ATTR_SIZE_VER0)
}

// sealPath makes the mount at a path read-only.
func (b *plan) sealPath(path string, flags int) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	b.do("make "+path+" read-only", unix.SYS_MOUNT_SETATTR, here, path, flags, bytesOf(attr), unix.MOUNT_ATTR_SIZE_VER0)
}

// scratch is the slot for a result that only the next step needs.
const scratch slot = early.Slots - 1

// attach mounts a detached tree at a path, which must not contain a symbolic
// link: an earlier command could have created it.
func (b *plan) attach(tree slot, path string) (move *early.Step) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	b.do("find "+path, unix.SYS_OPENAT2, here, path, bytesOf(how), unix.SizeofOpenHow).Keep = uint8(scratch)
	b.do("mount "+path, unix.SYS_MOVE_MOUNT, tree, "", scratch, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	b.do("close "+path, unix.SYS_CLOSE, scratch)
	return &b.Steps[len(b.Steps)-2]
}

// mount mounts a new file system.
func (b *plan) mount(kind, path string, flags int, options string) {
	b.do("mount a "+kind+" at "+path, unix.SYS_MOUNT, kind, path, kind, flags, options)
}

// directory creates a directory, unless it exists.
func (b *plan) directory(path string) {
	ignore(b.do("create the directory "+path, unix.SYS_MKDIRAT, here, path, 0o755), unix.EEXIST)
}

// file creates an empty file, unless it exists.
func (b *plan) file(path string, mode int) {
	ignore(b.do("create the file "+path, unix.SYS_MKNODAT, here, path, unix.S_IFREG|mode, 0), unix.EEXIST)
}

func (b *plan) link(target, path string) {
	b.do("create the link "+path, unix.SYS_SYMLINKAT, target, here, path)
}

// identities make a process in a new user namespace keep its user and group.
func (b *plan) identities() {
	b.identity("/proc/self/setgroups", "deny")
	b.identity("/proc/self/uid_map", fmt.Sprintf("%d %[1]d 1", os.Getuid()))
	b.identity("/proc/self/gid_map", fmt.Sprintf("%d %[1]d 1", os.Getgid()))
}

// identity writes a file that determines who a process is in its user namespace.
func (b *plan) identity(file, text string) {
	fd := b.keep("open "+file, unix.SYS_OPENAT, here, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	b.do("write "+file, unix.SYS_WRITE, fd, []byte(text), len(text))
	b.do("close "+file, unix.SYS_CLOSE, fd)
	b.slots-- // no longer needed
}

// prctl sets an attribute of the process.
func (b *plan) prctl(what string, option, value int) *early.Step {
	return b.do(what, unix.SYS_PRCTL, option, value, 0, 0, 0)
}

// renounce prevents the process's programs from getting capabilities.
func (b *plan) renounce() {
	b.prctl("forbid new privileges", unix.PR_SET_NO_NEW_PRIVS, 1)
	ignore(b.prctl("clear the ambient capabilities", unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL), unix.EINVAL)
	for c := range unix.CAP_LAST_CAP + 1 { // without CAP_SETPCAP there are none to drop
		ignore(b.prctl("drop a capability", unix.PR_CAPBSET_DROP, c), unix.EINVAL, unix.EPERM)
	}
}

// disarm drops all capabilities, and blocks dangerous system calls. Flags are more
// flags for loading the filter. The process must have renounced others.
func (b *plan) disarm(filter []unix.SockFilter, flags int) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	b.do("drop all capabilities", unix.SYS_CAPSET, bytesOf(head), bytesOf(make([]unix.CapUserData, 2)...))
	b.do("load the system call filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC|flags, filter)
}

// limit bounds what the process uses. A namespace for processes has its own limit
// since Linux 6.14; before, the file is that of the machine.
func (b *plan) limit(l Limits, namespace, held bool) {
	set := func(what string, resource int, soft, hard uint64) {
		b.do("limit "+what, unix.SYS_PRLIMIT64, 0, resource, bytesOf(unix.Rlimit{Cur: soft, Max: hard}), 0)
	}
	if n := uint64(l.Memory); l.Memory > 0 {
		set("the memory", unix.RLIMIT_DATA, n, n)
	}
	if n := uint64(max(1, l.CPU/time.Second)); l.CPU > 0 {
		set("the processor time", unix.RLIMIT_CPU, n, n+1) // SIGXCPU, then SIGKILL
	}
	if l.Processes <= 0 || !namespace {
		return
	}
	if os.Getuid() != 0 { // counted in the user namespace
		n := uint64(l.Processes)
		if held {
			n += 2 // the holder and a spare helper
		}
		set("the processes", unix.RLIMIT_NPROC, n, n)
	}
	if kernelAtLeast(6, 14) {
		const reserved = 301 // the kernel's minimum
		text := strconv.Itoa(reserved + l.Processes)
		dir, rel := b.original("/proc/sys/kernel/pid_max")
		fd := b.keep("open the limit of processes", unix.SYS_OPENAT, dir, rel, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		ignore(&b.Steps[len(b.Steps)-1], unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOENT)
		ignore(b.do("limit the processes", unix.SYS_WRITE, fd, []byte(text), len(text)), unix.EBADF, unix.EPERM, unix.EINVAL)
		ignore(b.do("close the limit of processes", unix.SYS_CLOSE, fd), unix.EBADF)
	}
}

// kernelAtLeast reports whether the kernel has at least a version.
func kernelAtLeast(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
