package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock.
const (
	abiTruncate = 3 // the minimum: before it, any file can be truncated
	abiIoctl    = 5
	abiScopes   = 6 // signals and abstract sockets
)

// Rights on files.
const (
	rightsToRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsToWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsToNodes = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// landlockABI returns the version of Landlock, 0 if there is none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// landlockFD is the file descriptor of the helper's rules.
const landlockFD = 4

// landlockPlan adds the plan for level Landlock. The rules are created in this
// process, which can inspect the file system, and entered by the helper.
func landlockPlan(b *plan, p *Profile, dir string, files access) {
	b.do("enter the working directory "+dir, unix.SYS_CHDIR, dir)
	b.limit(p.Limits, false, false)
	b.renounce()
	b.do("enter the Landlock domain", unix.SYS_LANDLOCK_RESTRICT_SELF, landlockFD, 0)
	allowed := sockets(0)
	switch {
	case p.Network.Full && p.Network.Serve:
		allowed = inetSockets | routeSockets | unixSockets
	case p.Network.Full:
		allowed = inetSockets | routeSockets
	case p.Network.Serve:
		allowed = servedSockets
	}
	b.disarm(seccompFilter(allowed, files), unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH|unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	listener := &b.Steps[len(b.Steps)-1]
	listener.Keep, listener.Send = uint8(scratch), true
}

// brokeredFiles returns what the broker is for: also for reading if something in a
// writable directory is hidden.
func brokeredFiles(l *layout) access {
	for _, m := range l.masked {
		if l.rootOf(m.path) != "" {
			return writesAll
		}
	}
	return writes
}

// ruleset is a set of Landlock rules.
type ruleset struct {
	file *os.File
	abi  int
}

// newRuleset creates the rules of a profile.
func newRuleset(p *Profile, l *layout, abi int) (*os.File, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rightsToRead | rightsToWrite | rightsToNodes}
	size := uintptr(8)
	if abi >= abiIoctl {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= abiScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = 24
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("sandbox: create Landlock rules: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	r := &ruleset{file: os.NewFile(fd, "landlock"), abi: abi}
	if err := r.fill(p, l); err != nil {
		r.file.Close()
		return nil, err
	}
	return r.file, nil
}

// fill adds the rules. Landlock can only allow, and applies a rule for a directory
// to everything below: an exception means allowing everything around it.
func (r *ruleset) fill(p *Profile, l *layout) error {
	hidden := make([]string, len(l.masked))
	for i, m := range l.masked {
		hidden[i] = m.path
	}
	held := slices.Clone(hidden)
	for _, p := range l.pins {
		held = append(held, p.path)
	}
	if err := r.add("/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	// Without mounts, a process of root could read disks in /dev.
	if err := r.around("/", append(slices.Clone(hidden), "/dev"), rightsToRead); err != nil {
		return err
	}
	for _, w := range l.writable {
		if err := r.around(w, held, rightsToRead|rightsToWrite); err != nil {
			return err
		}
	}
	for _, name := range devices {
		if err := r.add("/dev/"+name, rightsToRead|rightsToWrite|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV); err != nil {
			return err
		}
	}
	return r.add(p.Tmp, rightsToRead|rightsToWrite)
}

// around allows rights on path and everything below, except the exceptions.
func (r *ruleset) around(path string, except []string, rights uint64) error {
	if slices.Contains(except, path) {
		return nil
	}
	inside := slices.DeleteFunc(slices.Clone(except), func(e string) bool { return !Below(path, e) })
	if len(inside) == 0 {
		return r.add(path, rights)
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sandbox: read %s: %w", path, err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			continue // its target has its own rule
		}
		if err := r.around(filepath.Join(path, e.Name()), inside, rights); err != nil {
			return err
		}
	}
	return nil
}

// add allows rights on path and everything below. A missing path needs none.
func (r *ruleset) add(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sandbox: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("sandbox: open %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	if r.abi < abiIoctl {
		rights &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.file.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("sandbox: allow %s: %w", path, errno)
	}
	return nil
}
