package env

import "golang.org/x/sys/unix"

// stamp identifies the state of a file. The change time cannot be set by a program.
type stamp struct {
	inode     uint64
	sec, nsec int64
}

func stampOf(path string) (stamp, bool) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return stamp{}, false
	}
	return stamp{s.Ino, s.Ctim.Sec, s.Ctim.Nsec}, true
}

// now is the time by the clock of the file system.
func now() stamp {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t); err != nil {
		return stamp{}
	}
	return stamp{sec: t.Sec, nsec: t.Nsec}
}

func (s stamp) before(t stamp) bool { return s.sec < t.sec || s.sec == t.sec && s.nsec < t.nsec }

// born reports whether a file was created since then.
func born(path string, since stamp) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &s)
	return err != nil || s.Mask&unix.STATX_BTIME == 0 || !stamp{0, s.Btime.Sec, int64(s.Btime.Nsec)}.before(since)
}
