package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core/proc/internal/early"
)

// devices are the devices in /dev.
var devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

// runFiles are files of /run that systems need to find programs or, the last
// ones, name servers.
var runFiles = [...]string{"/run/current-system", "/run/booted-system", "/run/opengl-driver"}

var resolvers = [...]string{
	"/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf/resolv.conf",
	"/run/NetworkManager/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf",
}

// namespaceFlags are the new namespaces of a process.
func namespaceFlags(p *Profile) uintptr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if !p.Network.Full {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// tree is a detached mount and its target.
type tree struct {
	path  string
	slot  slot
	file  bool
	layer bool // may be missing
}

// replacedAhead are the replaced directories that are the same for all commands.
var replacedAhead = [...]string{"/dev", "/run", "/proc"}

// prepared is a plan that is the same for all commands, with its image.
type prepared struct {
	*plan
	image []byte
}

// aheadPlan is the beginning of the plan for level Namespace, which a spare helper
// carries out. The helper is the first process of its namespaces and has all
// capabilities in them; its mounts are those of the host, but changes are not visible
// outside. The first slots are the directories of replacedAhead as they were.
func aheadPlan(held bool) prepared {
	b := &plan{}
	b.Ahead = true
	for _, dir := range replacedAhead {
		b.keep("open "+dir, unix.SYS_OPENAT, here, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if !held {
		b.identities()
	}
	// Processes in the sandbox cannot open the memory of one that is not dumpable.
	b.prctl("hide the helper", unix.PR_SET_DUMPABLE, 0)
	b.do("keep mounts private", unix.SYS_MOUNT, "none", "/", "", unix.MS_REC|unix.MS_PRIVATE, 0)
	b.replaceDev(b.cloneDevices())
	b.mount("tmpfs", "/run", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m")
	b.mount("proc", "/proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	b.file(maskFile, 0)
	b.do("make a mask", unix.SYS_MKDIRAT, here, maskDir, 0)
	b.renounce()
	return prepared{b, b.Image()}
}

var (
	aheadOwn  = sync.OnceValue(func() prepared { return aheadPlan(false) })
	aheadHeld = sync.OnceValue(func() prepared { return aheadPlan(true) })
)

// ahead returns the plan for helpers with the flags, and whether there is one.
func ahead(flags uintptr) (p prepared, ok bool) {
	switch {
	case flags&unix.CLONE_NEWNS == 0:
		return prepared{}, false
	case flags&unix.CLONE_NEWUSER == 0:
		return aheadHeld(), true
	}
	return aheadOwn(), true
}

// namespacePlan adds the rest of the plan for level Namespace. If the helper is held,
// a holder has set up the network.
func namespacePlan(b *plan, p *Profile, l *layout, dir string, abi int, held bool) {
	b.limit(p.Limits, true, held)
	trees := b.cloneAll(p, l)
	var tmp slot
	if p.Tmp != "" {
		tmp = b.clone(p.Tmp)
	}
	if !l.all {
		b.sealPath("/", unix.AT_RECURSIVE)
		for _, own := range [...]string{"/dev", "/dev/shm", "/dev/pts", "/run"} {
			b.unseal(own)
		}
	}
	b.replaceTmp(tmp)
	for _, t := range trees {
		b.mountPoint(t)
		move := b.attach(t.slot, t.path)
		if t.layer {
			ignore(move, unix.EBADF)
		}
	}
	b.mask(l)
	b.sealPath("/run", 0)
	b.sealPath("/dev", 0)
	for i, dir := range replacedAhead {
		b.do("close "+dir, unix.SYS_CLOSE, slot(1+i))
	}
	if !held {
		b.network(p)
	}
	b.do("enter the working directory "+dir, unix.SYS_CHDIR, dir)
	if p.Network.Full && abi >= abiScopes {
		b.scope()
	}
	b.disarm(mountedFilter(), 0)
}

// mountedFilter is the filter of this level, which does not depend on the profile.
var mountedFilter = sync.OnceValue(func() []unix.SockFilter {
	return seccompFilter(unixSockets|inetSockets|routeSockets, mounted)
})

// cloneAll detaches all trees to be mounted, while they are still writable, in
// the order of mounting.
func (b *plan) cloneAll(p *Profile, l *layout) (trees []tree) {
	add := func(path string, seal, file bool) {
		t := tree{path: path, slot: b.clone(path), file: file}
		if seal {
			b.seal(t.slot, path)
		}
		trees = append(trees, t)
	}
	visible := slices.Concat(l.readable, runFiles[:])
	if p.Network.Full {
		visible = append(visible, resolvers[:]...)
	}
	for _, path := range visible {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 && isReplaced(path) {
			add(path, true, !info.IsDir())
		}
	}
	for _, path := range l.writable {
		if info, err := os.Lstat(path); err == nil && path != "/" {
			add(path, false, !info.IsDir())
		}
	}
	for _, s := range l.scratch {
		trees = append(trees, tree{path: s.path, slot: b.layer(s), layer: true})
	}
	for _, t := range l.tried {
		trees = append(trees, tree{path: t.path, slot: b.tried(t)})
	}
	for _, path := range l.holds {
		add(path, false, false)
	}
	for _, pin := range l.pins {
		add(pin.path, true, !pin.dir)
	}
	slices.SortStableFunc(trees, func(a, b tree) int { return strings.Compare(a.path, b.path) })
	return trees
}

// layer returns an overlay mount that makes a directory appear writable. If the
// file system does not support it, no step fails, and the slot is invalid.
func (b *plan) layer(s layer) slot {
	may := func(step *early.Step) {
		ignore(step, unix.EINVAL, unix.EPERM, unix.ENODEV, unix.EOPNOTSUPP, unix.EBUSY, unix.EACCES, unix.EBADF)
	}
	what := "make a layer on " + s.path
	fs := b.keep(what, unix.SYS_FSOPEN, "overlay", unix.FSOPEN_CLOEXEC)
	may(&b.Steps[len(b.Steps)-1])
	may(b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_SET_FLAG, "userxattr", 0, 0))
	for _, option := range [...][2]string{{"lowerdir", b.originalPath(s.path)}, {"upperdir", b.originalPath(s.upper)}, {"workdir", b.originalPath(s.work)}} {
		may(b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_SET_STRING, option[0], option[1], 0))
	}
	may(b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_CMD_CREATE, 0, 0, 0))
	mount := b.do(what, unix.SYS_FSMOUNT, fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	mount.Keep = uint8(fs)
	may(mount)
	return fs
}

// tried is [plan.layer] for changes that are thrown away: it must work, and need
// not survive the machine.
func (b *plan) tried(s layer) slot {
	what := "make a layer on " + s.path
	fs := b.keep(what, unix.SYS_FSOPEN, "overlay", unix.FSOPEN_CLOEXEC)
	b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_SET_FLAG, "userxattr", 0, 0)
	for _, option := range [...][2]string{{"lowerdir", b.originalPath(s.path)}, {"upperdir", b.originalPath(s.upper)}, {"workdir", b.originalPath(s.work)}} {
		b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_SET_STRING, option[0], option[1], 0)
	}
	ignore(b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_SET_FLAG, "volatile", 0, 0), unix.EINVAL)
	b.do(what, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	b.do(what, unix.SYS_FSMOUNT, fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV).Keep = uint8(fs)
	return fs
}

func (b *plan) cloneDevices() (nodes []tree) {
	for _, name := range devices {
		nodes = append(nodes, tree{path: "/dev/" + name, slot: b.clone("/dev/" + name), file: true})
	}
	return nodes
}

// replaceTmp mounts the process's own /tmp.
func (b *plan) replaceTmp(tmp slot) {
	for _, dir := range [...]string{"/tmp", "/var/tmp"} {
		info, err := os.Lstat(dir)
		switch {
		case err != nil || !info.IsDir(): // /var/tmp may be a link to /tmp
		case tmp == 0:
			b.mount("tmpfs", dir, unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
		case dir == "/tmp":
			b.attach(tmp, dir)
		default:
			b.do("mount "+dir, unix.SYS_MOUNT, "/tmp", dir, "", unix.MS_BIND, 0)
		}
	}
}

// replaceDev mounts a /dev with a few harmless devices: a process of root could
// open any other, including disks.
func (b *plan) replaceDev(nodes []tree) {
	b.mount("tmpfs", "/dev", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=1m")
	for _, n := range nodes {
		b.file(n.path, 0o666)
		b.attach(n.slot, n.path)
	}
	b.directory("/dev/shm")
	b.mount("tmpfs", "/dev/shm", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	b.directory("/dev/pts")
	b.mount("devpts", "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	b.link("pts/ptmx", "/dev/ptmx")
	b.link("/proc/self/fd", "/dev/fd")
	for i, name := range [...]string{"stdin", "stdout", "stderr"} {
		b.link("/proc/self/fd/"+string(rune('0'+i)), "/dev/"+name)
	}
}

// mountPoint creates the mount point of a tree in a replaced directory.
func (b *plan) mountPoint(t tree) {
	for _, dir := range replaced {
		if t.path == dir || !Below(dir, t.path) {
			continue
		}
		parent := t.path
		if t.file {
			parent = filepath.Dir(t.path)
		}
		for at := dir; at != parent; {
			next, _, _ := strings.Cut(parent[len(at)+1:], "/")
			at = filepath.Join(at, next)
			b.directory(at)
		}
		if t.file {
			b.file(t.path, 0o644)
		}
		return
	}
}

// The masks, until they are mounted.
const maskFile, maskDir = "/dev/.masked", "/dev/.masked.d"

// mask hides paths behind an empty file and directory that cannot be opened.
func (b *plan) mask(l *layout) {
	for _, m := range l.masked {
		if isReplaced(m.path) && !l.sees(m.path) {
			continue // not visible anyway
		}
		from := maskFile
		if m.dir {
			from = maskDir
		}
		cover := b.keep("open "+from, unix.SYS_OPEN_TREE, here, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		b.slots-- // no longer needed
		b.seal(cover, "a mask")
		first := len(b.Steps)
		b.attach(cover, m.path)
		for i := range b.Steps[first:] { // files removed since need not be hidden
			ignore(&b.Steps[first+i], unix.ENOENT, unix.ENOTDIR, unix.EBADF)
		}
		b.do("close a mask", unix.SYS_CLOSE, cover)
	}
	b.do("remove the mask", unix.SYS_UNLINKAT, here, maskFile, 0)
	b.do("remove the mask", unix.SYS_UNLINKAT, here, maskDir, unix.AT_REMOVEDIR)
}

// network sets up the loopback interface of a network namespace, and opens the
// port of the proxy.
func (b *plan) network(p *Profile) {
	if p.Network.Full {
		return
	}
	b.loopback()
	if len(p.Network.Hosts) == 0 {
		return
	}
	b.listen(proxyPort)
	for _, port := range forwarded(p.Network.Hosts) {
		b.listen(port)
	}
}

// loopback sets up the loopback interface.
func (b *plan) loopback() {
	ifreq := make([]byte, 40) // struct ifreq
	copy(ifreq, "lo")
	ifreq[unix.IFNAMSIZ] = unix.IFF_UP
	control := b.keep("open a socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	b.do("set up the loopback interface", unix.SYS_IOCTL, control, unix.SIOCSIFFLAGS, ifreq)
	b.do("close a socket", unix.SYS_CLOSE, control)
	b.slots-- // no longer needed
}

// listen opens a port of the loopback interface and passes it on to the agent.
func (b *plan) listen(port uint16) {
	address := bytesOf(unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port>>8 | port&0xff<<8, Addr: [4]byte{127, 0, 0, 1}})
	listener := b.keep("open a socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	b.do("bind a port", unix.SYS_BIND, listener, address, len(address))
	b.do("listen on a port", unix.SYS_LISTEN, listener, 128)
	// Any call that returns the descriptor can pass it on.
	handover := b.do("pass on a socket", unix.SYS_FCNTL, listener, unix.F_DUPFD_CLOEXEC, 3)
	handover.Keep, handover.Send = uint8(scratch), true
	b.do("close a socket", unix.SYS_CLOSE, scratch)
	b.do("close a socket", unix.SYS_CLOSE, listener)
	b.slots-- // no longer needed
}

// forwarded returns the ports of this machine in a list of hosts that a server
// listens on. The others are left to the process: it may start one itself.
func forwarded(hosts []string) (ports []uint16) {
	for _, text := range hosts {
		h, err := ParseHost(text)
		if err != nil || !h.loopback() {
			continue
		}
		candidates := []uint16{h.Port}
		if h.Port == 0 {
			candidates = []uint16{80, 443}
		}
		for _, port := range candidates {
			if port != proxyPort && !slices.Contains(ports, port) && Listens(int(port)) {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

// scope denies the process abstract sockets outside the sandbox: on the host
// network, it could connect to those of desktop services.
func (b *plan) scope() {
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	rules := b.keep("create Landlock rules", unix.SYS_LANDLOCK_CREATE_RULESET, bytesOf(attr), 24, 0)
	b.prctl("forbid new privileges", unix.PR_SET_NO_NEW_PRIVS, 1)
	b.do("enter the Landlock domain", unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0)
}
