//go:build amd64 || arm64

package early

// vfork makes a child that shares this process's memory, and its stack, until it has
// executed a program or ended: this process stands still meanwhile. It returns twice,
// 0 in the child, and in the parent the child's process ID or an error number below 0.
// No page table is copied. As in the function of that kind in package syscall, the
// return address is kept in a register.
//
//go:noescape
//go:nosplit
func vfork() (result uintptr)
