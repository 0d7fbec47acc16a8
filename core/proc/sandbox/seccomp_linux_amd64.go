package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // calls of the x32 ABI
)

var refusedHere = []uintptr{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE,
	unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
}

var unownedHere = []uintptr{unix.SYS_CHOWN, unix.SYS_LCHOWN}

// brokeredHere are the older forms of calls, with paths relative to the working
// directory.
var brokeredHere = map[uintptr]form{
	unix.SYS_OPEN:    {make: (*brokeredCall).open, dir: none, path: 0, dir2: none, path2: none, flags: 1, mode: 2},
	unix.SYS_CREAT:   {make: (*brokeredCall).open, dir: none, path: 0, dir2: none, path2: none, flags: none, mode: 1},
	unix.SYS_MKDIR:   {make: (*brokeredCall).mkdir, dir: none, path: 0, dir2: none, path2: none, flags: none, mode: 1},
	unix.SYS_UNLINK:  {make: (*brokeredCall).unlink, dir: none, path: 0, dir2: none, path2: none, flags: none, mode: none},
	unix.SYS_RMDIR:   {make: (*brokeredCall).unlink, dir: none, path: 0, dir2: none, path2: none, flags: none, mode: none},
	unix.SYS_RENAME:  {make: (*brokeredCall).rename, dir: none, path: 0, dir2: none, path2: 1, flags: none, mode: none},
	unix.SYS_LINK:    {make: (*brokeredCall).link, dir: none, path: 0, dir2: none, path2: 1, flags: none, mode: none},
	unix.SYS_SYMLINK: {make: (*brokeredCall).symlink, dir: none, path: 1, dir2: none, path2: none, flags: none, mode: none},
	unix.SYS_CHMOD:   {make: (*brokeredCall).chmod, dir: none, path: 0, dir2: none, path2: none, flags: none, mode: 1, unruled: true},
}

var openCallsHere = map[uintptr]int{unix.SYS_OPEN: 1}

const rmdirCall = unix.SYS_RMDIR
