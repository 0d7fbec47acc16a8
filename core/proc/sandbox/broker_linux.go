//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A broker makes system calls for the processes of level Landlock. Its rules apply to
// directories with everything below, so that none can allow creating files in a
// directory with something protected or hidden, or changing modes. The system call
// filter hands such calls over to the broker. It makes those in writable directories
// itself, on the directory that it checked, since the process can change its memory
// meanwhile; all others continue, and are subject to the rules.
type broker struct {
	writable, held []string
	listener       *os.File
	done           chan struct{}
}

// newBroker returns a broker for a layout.
func newBroker(l *layout, tmp string) *broker {
	b := &broker{done: make(chan struct{})}
	for _, w := range append(slices.Clone(l.writable), tmp) {
		if w, _, ok := existing(w); ok && w != "/" {
			b.writable = append(b.writable, w)
		}
	}
	for _, m := range l.masked {
		b.held = append(b.held, m.path)
	}
	for _, p := range l.pins {
		b.held = append(b.held, p.path)
	}
	return b
}

// serve starts answering the calls that a filter hands over.
func (b *broker) serve(file *os.File) error {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.SetNonblock(fd, true) // so that Close interrupts a wait
	b.listener = os.NewFile(uintptr(fd), "seccomp")
	conn, err := b.listener.SyscallConn()
	if err != nil {
		return err
	}
	go b.run(conn)
	return nil
}

// close ends the service. Calls that are handed over from then on fail.
func (b *broker) close() {
	if b != nil && b.listener != nil {
		b.listener.Close()
		<-b.done
	}
}

// run answers calls until there are no processes, or the listener is closed.
func (b *broker) run(conn syscall.RawConn) {
	defer close(b.done)
	for {
		var events int16
		err := conn.Read(func(fd uintptr) bool {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if _, err := unix.Poll(poll, 0); err != nil {
				return errors.Is(err, unix.EINTR)
			}
			events = poll[0].Revents
			return events != 0
		})
		if err != nil || events&unix.POLLIN == 0 && events&(unix.POLLHUP|unix.POLLERR) != 0 {
			return
		}
		_ = conn.Control(func(fd uintptr) { b.next(fd) })
	}
}

// handover is struct seccomp_notif.
type handover struct {
	id          uint64
	pid, flags  uint32
	call        int32
	arch        uint32
	instruction uint64
	args        [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// newFile is struct seccomp_notif_addfd.
type newFile struct {
	id                      uint64
	flags, from, as, fdFlag uint32
}

// Requests of ioctl.
const (
	checkHandover = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	addFile       = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
)

func ioctl(fd, request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(arg))
	return errno
}

// next answers one call. A process that ended meanwhile needs no answer.
func (b *broker) next(fd uintptr) {
	h := &handover{}
	if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(h)) != 0 {
		return
	}
	c := &brokeredCall{broker: b, handover: h, form: brokered[uintptr(h.call)], valid: func() bool {
		return ioctl(fd, checkHandover, unsafe.Pointer(&h.id)) == 0
	}}
	r := &response{id: h.id}
	opened, err := c.form.make(c)
	c.close()
	errno := unix.Errno(0)
	switch {
	case errors.Is(err, errContinue) && c.form.unruled:
		r.errno = -int32(unix.EPERM)
	case errors.Is(err, errContinue):
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case errors.As(err, &errno):
		r.errno = -int32(errno)
	case err != nil:
		r.errno = -int32(unix.EACCES)
	case opened >= 0:
		defer unix.Close(opened)
		add := &newFile{id: h.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(opened), fdFlag: uint32(c.arg(c.form.flags)) & unix.O_CLOEXEC}
		if errno := ioctl(fd, addFile, unsafe.Pointer(add)); errno != unix.EMFILE {
			return // it was the answer
		}
		r.errno = -int32(unix.EMFILE)
	}
	ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
}

// errContinue says that the kernel is to make the call.
var errContinue = errors.New("the call continues")

// allows reports whether the file at a path may be created, changed and removed.
func (b *broker) allows(path string) bool {
	return slices.ContainsFunc(b.writable, func(w string) bool {
		return path != w && Below(w, path) &&
			!slices.ContainsFunc(b.held, func(h string) bool { return Below(w, h) && Below(h, path) })
	})
}

// moves reports whether what is at a path, with everything below, may be moved and
// removed.
func (b *broker) moves(path string) bool {
	in := func(p string) bool { return Below(path, p) }
	return b.allows(path) && !slices.ContainsFunc(b.held, in) && !slices.ContainsFunc(b.writable, in)
}

// form says which arguments a system call has: the index of each, or none.
type form struct {
	make        func(c *brokeredCall) (opened int, err error) // opened is -1, or a descriptor for the process
	dir, path   int
	dir2, path2 int
	flags, mode int
	unruled     bool // Landlock has no rules for it: it never continues
}

const none = -1

// brokeredCall is a call to answer.
type brokeredCall struct {
	*broker
	*handover
	form  form
	valid func() bool // the process is still waiting
	dirs  []int
}

func (c *brokeredCall) close() {
	for _, fd := range c.dirs {
		unix.Close(fd)
	}
}

// arg returns an argument, 0 for none.
func (c *brokeredCall) arg(i int) uint64 {
	if i == none {
		return 0
	}
	return c.args[i]
}

func (c *brokeredCall) proc(name string) string {
	return "/proc/" + strconv.Itoa(int(c.pid)) + "/" + name
}

// place is a file in an open directory.
type place struct {
	dir  int
	name string
	path string
	mode uint32 // of the file; 0 if there is none
}

// locate resolves a path of the process up to its last element.
func (c *brokeredCall) locate(dir, path int) (place, error) {
	text, err := c.text(c.args[path])
	if err != nil {
		return place{}, errContinue
	}
	name := filepath.Base(text)
	if text == "" || name == "." || name == ".." || name == "/" {
		return place{}, errContinue
	}
	base := "/"
	if !filepath.IsAbs(text) {
		base = c.proc("cwd")
		if fd := int32(c.arg(dir)); dir != none && fd != unix.AT_FDCWD {
			base = c.proc("fd/" + strconv.Itoa(int(fd)))
		}
	}
	parent, err := openParent(base, strings.TrimSuffix(strings.TrimRight(text, "/"), name))
	if err != nil {
		return place{}, errContinue
	}
	c.dirs = append(c.dirs, parent)
	at, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(parent))
	if err != nil || !c.valid() {
		return place{}, errContinue
	}
	p := place{dir: parent, name: name, path: filepath.Join(at, name)}
	if !c.allows(p.path) {
		return place{}, errContinue
	}
	var stat unix.Stat_t
	if unix.Fstatat(parent, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
		p.mode = stat.Mode
	}
	return p, nil
}

// openParent opens a directory below another one. The links of /proc, which are
// different for every process, are not followed.
func openParent(base, rel string) (int, error) {
	fd, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || rel == "" {
		return fd, err
	}
	defer unix.Close(fd)
	return unix.Openat2(fd, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
}

// text reads a string of the process.
func (c *brokeredCall) text(address uint64) (string, error) {
	var b []byte
	page := uint64(os.Getpagesize())
	for len(b) < unix.PathMax {
		at := address + uint64(len(b))
		chunk := make([]byte, page-at%page) // the next page may be missing
		n, err := unix.ProcessVMReadv(int(c.pid), []unix.Iovec{{Base: &chunk[0], Len: uint64(len(chunk))}},
			[]unix.RemoteIovec{{Base: uintptr(at), Len: len(chunk)}}, 0)
		if err != nil {
			return "", err
		}
		text, _, ended := strings.Cut(string(chunk[:n]), "\x00")
		if b = append(b, text...); ended {
			return string(b), nil
		}
	}
	return "", unix.ENAMETOOLONG
}

// newMode returns the mode of a new file, without the umask of the process.
func (c *brokeredCall) newMode() uint32 {
	umask := uint64(0o22)
	status, _ := os.ReadFile(c.proc("status")) // of a process that ends now
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "Umask:"); ok {
			if n, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32); err == nil {
				umask = n
			}
		}
	}
	return uint32(c.arg(c.form.mode)&^umask) & 0o1777
}

// Flags of open: those that are passed on, and those of other than regular files.
const (
	openFlags  = unix.O_ACCMODE | unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK | unix.O_SYNC | unix.O_DIRECT | unix.O_NOATIME
	otherFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_ASYNC
)

// open opens a regular file, or creates one.
func (c *brokeredCall) open() (int, error) {
	flags := int(c.arg(c.form.flags))
	if c.form.flags == none {
		flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	}
	p, err := c.locate(c.form.dir, c.form.path)
	if err != nil {
		return none, err
	}
	if flags&otherFlags != 0 || p.mode&unix.S_IFMT != unix.S_IFREG && (p.mode != 0 || flags&unix.O_CREAT == 0) {
		return none, errContinue
	}
	// A pipe that takes the file's place must not block.
	fd, err := unix.Openat(p.dir, p.name, flags&openFlags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, c.newMode())
	if err != nil {
		return none, err
	}
	if flags&unix.O_NONBLOCK == 0 {
		err = unix.SetNonblock(fd, false)
	}
	return fd, err
}

func (c *brokeredCall) mkdir() (int, error) {
	p, err := c.locate(c.form.dir, c.form.path)
	if err != nil {
		return none, err
	}
	return none, unix.Mkdirat(p.dir, p.name, c.newMode())
}

func (c *brokeredCall) unlink() (int, error) {
	p, err := c.locate(c.form.dir, c.form.path)
	if err != nil {
		return none, err
	}
	if !c.moves(p.path) {
		return none, errContinue
	}
	flags := int(c.arg(c.form.flags)) & unix.AT_REMOVEDIR
	if uintptr(c.call) == rmdirCall {
		flags = unix.AT_REMOVEDIR
	}
	return none, unix.Unlinkat(p.dir, p.name, flags)
}

// pair resolves both paths.
func (c *brokeredCall) pair() (from, to place, err error) {
	if from, err = c.locate(c.form.dir, c.form.path); err != nil {
		return from, to, err
	}
	if to, err = c.locate(c.form.dir2, c.form.path2); err == nil && !(c.moves(from.path) && c.moves(to.path)) {
		err = errContinue
	}
	return from, to, err
}

func (c *brokeredCall) rename() (int, error) {
	from, to, err := c.pair()
	if err != nil {
		return none, err
	}
	flags := uint(c.arg(c.form.flags))
	if flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return none, errContinue
	}
	return none, unix.Renameat2(from.dir, from.name, to.dir, to.name, flags)
}

func (c *brokeredCall) link() (int, error) {
	from, to, err := c.pair()
	if err != nil {
		return none, err
	}
	if c.arg(c.form.flags) != 0 || from.mode&unix.S_IFMT != unix.S_IFREG {
		return none, errContinue
	}
	return none, unix.Linkat(from.dir, from.name, to.dir, to.name, 0)
}

func (c *brokeredCall) symlink() (int, error) {
	target, err := c.text(c.args[0])
	if err != nil {
		return none, errContinue
	}
	p, err := c.locate(c.form.dir, c.form.path)
	if err != nil {
		return none, err
	}
	return none, unix.Symlinkat(target, p.dir, p.name)
}

// chmod changes the mode of a file or directory, by its path or descriptor.
func (c *brokeredCall) chmod() (int, error) {
	name := c.proc("fd/" + strconv.Itoa(int(int32(c.args[0]))))
	if c.form.path != none {
		p, err := c.locate(c.form.dir, c.form.path)
		if err != nil {
			return none, err
		}
		name = "/proc/self/fd/" + strconv.Itoa(p.dir) + "/" + p.name
	}
	how := unix.O_PATH | unix.O_CLOEXEC
	if c.form.path != none {
		how |= unix.O_NOFOLLOW
	}
	fd, err := unix.Open(name, how, 0)
	if err != nil {
		return none, err
	}
	defer unix.Close(fd)
	self := "/proc/self/fd/" + strconv.Itoa(fd)
	var stat unix.Stat_t
	path, err := os.Readlink(self)
	if err != nil || !c.valid() || !c.allows(path) || unix.Fstat(fd, &stat) != nil {
		return none, errContinue
	}
	mode := uint32(c.arg(c.form.mode))
	if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR || mode&0o6000 != 0 {
		return none, errContinue
	}
	return none, unix.Chmod(self, mode)
}
