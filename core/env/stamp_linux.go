package env

import "golang.org/x/sys/unix"

// stamp identifies the state of a file. The change time cannot be set by a program.
type stamp struct {
	dev, inode uint64
	sec, nsec  int64
}

func stampOf(path string) (stamp, bool) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return stamp{}, false
	}
	return stamp{uint64(s.Dev), s.Ino, s.Ctim.Sec, s.Ctim.Nsec}, true
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

func (s stamp) device() uint64 { return s.dev }

// settled reports whether any later change of the file shows in its stamp: clocks of
// file systems tick, some every two seconds.
func (s stamp) settled(now stamp) bool { return s.sec+2 < now.sec }

// steady reports whether a directory's stamp changes with its entries, as on all local
// file systems: others may report one stamp for ever, or what they last asked for.
func steady(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	const zfs, bcachefs = 0x2fc12fc1, 0xca451a4e
	switch int64(s.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs, bcachefs:
		return true
	}
	return false
}

// born reports whether a file was created since then.
func born(path string, since stamp) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &s)
	return err != nil || s.Mask&unix.STATX_BTIME == 0 || !stamp{sec: s.Btime.Sec, nsec: int64(s.Btime.Nsec)}.before(since)
}
