//go:build amd64 || arm64

package sandbox

import (
	"maps"

	"golang.org/x/sys/unix"
)

// brokered are the calls that a filter hands over to the broker.
var brokered = merged(map[uintptr]form{
	unix.SYS_OPENAT:    {make: (*brokeredCall).open, dir: 0, path: 1, dir2: none, path2: none, flags: 2, mode: 3},
	unix.SYS_MKDIRAT:   {make: (*brokeredCall).mkdir, dir: 0, path: 1, dir2: none, path2: none, flags: none, mode: 2},
	unix.SYS_UNLINKAT:  {make: (*brokeredCall).unlink, dir: 0, path: 1, dir2: none, path2: none, flags: 2, mode: none},
	unix.SYS_RENAMEAT:  {make: (*brokeredCall).rename, dir: 0, path: 1, dir2: 2, path2: 3, flags: none, mode: none},
	unix.SYS_RENAMEAT2: {make: (*brokeredCall).rename, dir: 0, path: 1, dir2: 2, path2: 3, flags: 4, mode: none},
	unix.SYS_LINKAT:    {make: (*brokeredCall).link, dir: 0, path: 1, dir2: 2, path2: 3, flags: 4, mode: none},
	unix.SYS_SYMLINKAT: {make: (*brokeredCall).symlink, dir: 1, path: 2, dir2: none, path2: none, flags: none, mode: none},
	unix.SYS_FCHMOD:    {make: (*brokeredCall).chmod, dir: none, path: none, dir2: none, path2: none, flags: none, mode: 1, unruled: true},
	unix.SYS_FCHMODAT:  {make: (*brokeredCall).chmod, dir: 0, path: 1, dir2: none, path2: none, flags: none, mode: 2, unruled: true},
	unix.SYS_FCHMODAT2: {make: (*brokeredCall).chmod, dir: 0, path: 1, dir2: none, path2: none, flags: 3, mode: 2, unruled: true},
}, brokeredHere)

// openCalls are those that open files, with the index of the flags.
var openCalls = merged(map[uintptr]int{unix.SYS_OPENAT: 2}, openCallsHere)

func merged[V any](all, more map[uintptr]V) map[uintptr]V {
	maps.Copy(all, more)
	return all
}
