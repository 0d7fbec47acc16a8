package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Level is how well a child process is confined.
type Level uint8

// The levels.
const (
	// None: the process may do what its user may.
	None Level = iota
	// Landlock: Linux without namespaces. Files are opened by Landlock rules,
	// system calls by a seccomp filter. See docs/sandbox.md for what it lacks.
	Landlock
	// Seatbelt: macOS, by a profile for sandbox-exec.
	Seatbelt
	// Namespace: Linux, with user, mount, net, pid and ipc namespaces.
	Namespace
)

var levelNames = [...]string{"none", "landlock", "seatbelt", "namespace"}

// String returns the level's name in settings.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// Mode is what a person wants of the levels.
type Mode string

// The modes. The zero value is ModeAuto.
const (
	ModeAuto      Mode = "auto"      // the best level that works; none, with a warning, where none does
	ModeRequire   Mode = "require"   // the best level that works, an error where none does
	ModeNamespace Mode = "namespace" // this level or an error
	ModeLandlock  Mode = "landlock"  // this level or an error
	ModeOff       Mode = "off"       // no sandbox
)

// Modes are all modes.
var modes = [...]Mode{ModeAuto, ModeRequire, ModeNamespace, ModeLandlock, ModeOff}

// Valid reports whether m is one of the modes, or empty.
func (m Mode) Valid() bool { return m == "" || slices.Contains(modes[:], m) }

// ErrUnavailable is wrapped by the error for a level that was asked for and
// does not work here.
var ErrUnavailable = errors.New("the sandbox does not work here")

// Profile says what a child process may do. All paths are absolute. The zero
// value reads all files, writes none but those of its own /tmp, and has no
// network. A process never gains privileges, and sees no processes but its own
// (level Namespace) or cannot touch them (Landlock).
type Profile struct {
	// Mode chooses the level.
	Mode Mode
	// Writable are files and directories that the process may write, with all
	// that lies below. What does not exist is left out.
	Writable []string
	// Readable are paths that the process sees although they lie in /tmp,
	// /var/tmp, /run or /dev, in whose place it gets its own.
	Readable []string
	// ReadOnly are paths below writable ones that stay as they are: they are
	// neither written, removed nor renamed, and the directories on the way to
	// them are not renamed. One that is missing can be made on level Namespace,
	// but is set aside when the process has ended: it gets the name that
	// [AsideSuffix] ends. If the path ends in a slash, it cannot be made at all:
	// for the time of the process an empty directory stands there.
	ReadOnly []string
	// Masked are paths that can be neither read nor written. What does not
	// exist is left out. On level Landlock names below them can be listed.
	Masked []string
	// Tmp is a directory that the process has for /tmp and /var/tmp, so that
	// several processes can share it; empty is a new one in memory. Where /tmp
	// cannot be replaced (Landlock, Seatbelt), TMPDIR says where it is.
	Tmp string
	// Scratch are directories, such as caches, that the process may write
	// without anybody seeing it: level Namespace puts what it writes into
	// Layers, a directory on which further processes can build. At other
	// levels, and with a file system that cannot do it, it may only read them;
	// at other levels variables lead the common caches into Tmp.
	Scratch []string
	Layers  string
	// Network is what the process may reach.
	Network Network
}

// AsideSuffix ends the names of what was made at a path that was to stay
// missing.
const AsideSuffix = ".from-sandbox"

// Network is what a process may reach of the network. The zero value is
// nothing but, on level Namespace, a loopback interface of its own.
type Network struct {
	// Full gives the process the network of this machine.
	Full bool
	// Hosts are reached through a proxy that HTTP_PROXY, HTTPS_PROXY and
	// ALL_PROXY name; see [ParseHost] for their form. They need level
	// Namespace: at other levels, a process with Hosts has no network.
	Hosts []string
	// Serve lets the process serve sockets in the file system, where it can
	// write. On level Namespace it can do so anyway, and those of others are
	// covered. On level Landlock they cannot be told apart: it gets sockets that
	// cannot connect, or, with the Full network, such that can connect to those
	// of others, too, as far as its user may.
	Serve bool
	// Refused is told of a host, as "name:port", that the proxy refused. It
	// must not block and is called from several goroutines. It may be nil.
	Refused func(host, reason string)
}

// Check reports what is wrong with the profile.
func (p *Profile) Check() error {
	if !p.Mode.Valid() {
		return fmt.Errorf("unknown sandbox mode %q: use auto, require, namespace, landlock or off", p.Mode)
	}
	for _, list := range [][]string{p.Writable, p.Readable, p.ReadOnly, p.Masked, p.Scratch} {
		for _, path := range list {
			if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
				return fmt.Errorf("sandbox: %q is not an absolute path", path)
			}
		}
	}
	for _, dir := range []string{p.Tmp, p.Layers} {
		if dir != "" && !filepath.IsAbs(dir) {
			return fmt.Errorf("sandbox: %q is not an absolute path", dir)
		}
	}
	for _, h := range p.Network.Hosts {
		if _, err := ParseHost(h); err != nil {
			return err
		}
	}
	return nil
}

// Status says whether a level works here.
type Status struct {
	Level  Level
	Works  bool
	Reason string // why it does not work, and what to do
}
