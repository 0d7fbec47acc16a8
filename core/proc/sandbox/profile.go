package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level is the sandbox level of a child process.
type Level uint8

// The levels.
const (
	// None: the process is not confined.
	None Level = iota
	// Landlock: Linux without namespaces. Landlock rules restrict files, a seccomp
	// filter restricts system calls. See docs/sandbox.md for its limits.
	Landlock
	// Seatbelt: macOS, with a profile for sandbox-exec.
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

// Mode selects a level.
type Mode string

// The modes. The zero value is ModeAuto.
const (
	ModeAuto      Mode = "auto"      // the best working level; if none works, no sandbox and a warning
	ModeRequire   Mode = "require"   // the best working level; if none works, an error
	ModeNamespace Mode = "namespace" // this level or an error
	ModeLandlock  Mode = "landlock"  // this level or an error
	ModeOff       Mode = "off"       // no sandbox
)

// Modes returns all modes.
var modes = [...]Mode{ModeAuto, ModeRequire, ModeNamespace, ModeLandlock, ModeOff}

// Valid reports whether m is a mode or empty.
func (m Mode) Valid() bool { return m == "" || slices.Contains(modes[:], m) }

// ErrUnavailable is wrapped by the error for a required level that does not work
// on this machine.
var ErrUnavailable = errors.New("the sandbox does not work on this machine")

// Profile defines what a child process may do. All paths are absolute. The zero
// value allows reading all files, writing only in its own /tmp, and no network. A
// process never gains privileges, and other processes are invisible (level
// Namespace) or inaccessible (Landlock).
type Profile struct {
	// Mode chooses the level.
	Mode Mode
	// Writable are files and directories that the process may write, including
	// everything below. Missing ones are ignored.
	Writable []string
	// Readable are visible paths in /tmp, /var/tmp, /run and /dev, which are
	// otherwise replaced with the process's own.
	Readable []string
	// ReadOnly are protected paths below writable ones: they cannot be written,
	// removed or renamed, and the directories leading to them cannot be renamed.
	// On level Namespace a missing one can be created, but is renamed after the
	// process has ended: its name gets [AsideSuffix]. If the path ends in a
	// slash, it cannot be created: there is an empty directory in its place while
	// the process runs.
	ReadOnly []string
	// Masked are paths that can be neither read nor written. Missing ones are
	// ignored. On level Landlock names below them can be listed.
	Masked []string
	// Tmp is a directory to use as /tmp and /var/tmp, which several processes can
	// share; empty means a new one in memory. Where /tmp cannot be replaced
	// (Landlock, Seatbelt), TMPDIR is set to it.
	Tmp string
	// Scratch are directories, such as caches, that the process may write
	// without changing them: level Namespace stores the changes in Layers, a
	// directory that further processes can share. On other levels, and on file
	// systems that do not support it, they are read-only; on other levels
	// variables move the common caches to Tmp.
	Scratch []string
	Layers  string
	// Tried are directories that the process may write without changing them, on
	// level Namespace: the changes of each go to [TriedIn] of Try, an empty
	// directory that exists, and [ReadChanges] lists them. Where that is
	// impossible, the process does not start. ReadOnly applies to what exists.
	Tried []string
	Try   string
	// Network is the network access of the process.
	Network Network
	// Limits bound what the process uses.
	Limits Limits
}

// Limits bound what a process uses, on Linux. Zero is no limit.
type Limits struct {
	Memory int64 // bytes of data, for each process
	// Processes counts threads, too. On level Landlock, and for root before Linux
	// 6.14, it is not enforced.
	Processes int
	CPU       time.Duration // processor time of each process
}

// AsideSuffix is the suffix for files that were created at a path that should
// have stayed missing.
const AsideSuffix = ".from-sandbox"

// Network is the network access of a process. The zero value is none, except, on
// level Namespace, its own loopback interface.
type Network struct {
	// Full gives the process the host network.
	Full bool
	// Hosts can be reached through a proxy, named by HTTP_PROXY, HTTPS_PROXY and
	// ALL_PROXY; see [ParseHost] for the format. They need level Namespace: on
	// other levels, a process with Hosts has no network.
	Hosts []string
	// Serve lets the process serve Unix sockets in writable directories. On level
	// Namespace it always can, and other processes' sockets are hidden. On level
	// Landlock they cannot be distinguished: its sockets cannot connect or, with
	// the Full network, can connect to any socket that its user may.
	Serve bool
	// Refused is called with each host that the proxy refused, as "name:port". It
	// must not block and must be safe for concurrent use. It may be nil.
	Refused func(host, reason string)
}

// Check validates the profile.
func (p *Profile) Check() error {
	if !p.Mode.Valid() {
		return fmt.Errorf("unknown sandbox mode %q: use auto, require, namespace, landlock or off", p.Mode)
	}
	for _, list := range [][]string{p.Writable, p.Readable, p.ReadOnly, p.Masked, p.Scratch, p.Tried} {
		for _, path := range list {
			if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
				return fmt.Errorf("sandbox: %q is not an absolute path", path)
			}
		}
	}
	for _, dir := range []string{p.Tmp, p.Layers, p.Try} {
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

// Status tells whether a level works on this machine.
type Status struct {
	Level  Level
	Works  bool
	Reason string // why it does not work, and what to do
}
