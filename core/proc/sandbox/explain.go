package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Cause is the reason why a command failed in its sandbox.
type Cause struct {
	Path string // could not be written or read; the host, for the network; may be empty
	Kind CauseKind
}

// CauseKind is the kind of a cause.
type CauseKind uint8

// The causes.
const (
	Outside   CauseKind = iota // the path is not writable
	Protected                  // the path is protected, in a writable directory
	Hidden                     // the path is not readable
	NoNetwork
	// Beside: the directory Path contains something hidden, so that on level
	// Landlock programs that are new in it cannot be started.
	Beside
	Unserved // a server on this machine, at Path if that is known, cannot be reached
	Socket   // the Unix socket at Path cannot be reached
	Keys     // keys and sign-ins are hidden
	Process  // other processes are invisible
	Call     // a system call is refused
)

// maxCauses is the maximum number of causes of a failure.
const maxCauses = 4

// Explain searches the last output of a failed command, run in dir, for what the
// sandbox prevented. It knows the English messages of the C library and those of
// common language runtimes.
func (p *Profile) Explain(level Level, dir, output string) []Cause {
	var causes []Cause
	for line := range strings.Lines(output) {
		if len(causes) == maxCauses {
			break
		}
		c, ok := p.explainLine(level, dir, line)
		if ok && !slices.Contains(causes, c) {
			causes = append(causes, c)
		}
	}
	return causes
}

var (
	readOnlyText = lazy.Regexp(`(?i)read-only file system|EROFS`)
	busyText     = lazy.Regexp(`(?i)device or resource busy|EBUSY|cross-device link|EXDEV`)
	deniedText   = lazy.Regexp(`(?i)permission denied|EACCES|operation not permitted|EPERM`)
	networkText  = lazy.Regexp(`(?i)network is unreachable|ENETUNREACH|could not resolve host|temporary failure in name resolution|` +
		`name or service not known|no such host|ENOTFOUND|EAI_AGAIN|socket: operation not permitted`)
	unresolvedText = lazy.Regexp(`(?i)(?:could not resolve host:?|lookup|ENOTFOUND|EAI_AGAIN|unable to resolve host address) +[‘'"]?((?:[\w-]+\.)+[a-z][\w-]+)`)
	serverText     = lazy.Regexp(`(?i)connection refused|ECONNREFUSED|failed to connect|couldn't connect|could not connect|can't connect`)
	localText      = lazy.Regexp(`(?i)(localhost|127\.0\.0\.1|::1)\b(?:\]?(?::|,? port |" *\([^)]*\), port )(\d+))?`)
	socketText     = lazy.Regexp(`(?i)(?:unix(?:://|@| |:)|socket |through |at |")["']?(/[\w./-]*(?:sock|\.s\.PGSQL\.\d+)[\w./-]*)`)
	keysText       = lazy.Regexp(`(?i)permission denied \(publickey|host key verification failed|could not read (username|password)|terminal prompts disabled|authentication failed|no secret key|not logged in|unable to find a private key`)
	processText    = lazy.Regexp(`(?i)no such process|no process found`)
	callText       = lazy.Regexp(`(?i)\b(unshare|clone|ptrace|mount|setns|newuidmap|perf_event_open|bpf|chroot|user namespace)\w*\b.*operation not permitted`)
	quotedText     = lazy.Regexp(`'([^']+)'|"([^"]+)"|‘([^’]+)’`)
)

func (p *Profile) explainLine(level Level, dir, line string) (Cause, bool) {
	if networkText().MatchString(line) && !p.Network.Full {
		host := ""
		if m := unresolvedText().FindStringSubmatch(line); m != nil {
			host = m[1]
		}
		return Cause{host, NoNetwork}, true
	}
	if c, ok := p.explainService(level, line); ok {
		return c, true
	}
	for _, message := range [...]*regexp.Regexp{readOnlyText(), deniedText(), busyText()} {
		at := message.FindStringIndex(line)
		if at == nil {
			continue
		}
		for _, path := range candidates(line[:at[0]], line[at[1]:]) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			path = filepath.Clean(path)
			kind, held := p.judge(path)
			switch {
			case !held && level == Landlock && message == deniedText() && p.besideHidden(path):
				return Cause{filepath.Dir(path), Beside}, true
			case !held, kind == Hidden && message != deniedText():
			case kind == Outside && (message == busyText() || message == deniedText() && level == Namespace):
				// The sandbox is not the cause.
			default:
				return Cause{path, kind}, true
			}
		}
	}
	return Cause{}, false
}

// explainService explains a failure to reach a server, a process or a key.
func (p *Profile) explainService(level Level, line string) (Cause, bool) {
	switch {
	case keysText().MatchString(line):
		return Cause{Kind: Keys}, true
	case callText().MatchString(line):
		return Cause{Kind: Call}, true
	case level == Landlock && strings.TrimSpace(line) == "Permission denied":
		return Cause{"/tmp", Outside}, true // the likeliest path of programs that name none
	case level != Namespace:
	case processText().MatchString(line):
		return Cause{Kind: Process}, true
	case socketText().MatchString(line) && (serverText().MatchString(line) || deniedText().MatchString(line) || strings.Contains(line, "o such file") || strings.Contains(line, "annot connect")):
		return Cause{strings.TrimRight(socketText().FindStringSubmatch(line)[1], "."), Socket}, true
	case serverText().MatchString(line) && localText().MatchString(line) && !p.Network.Full:
		c := Cause{Kind: Unserved}
		if m := localText().FindStringSubmatch(line); m[2] != "" {
			c.Path = "localhost:" + m[2]
		}
		return c, true
	}
	return Cause{}, false
}

// besideHidden reports whether a writable path is in a directory that contains
// something hidden.
func (p *Profile) besideHidden(path string) bool {
	dir := filepath.Dir(path)
	return slices.ContainsFunc(p.Writable, func(w string) bool { return Below(w, dir) }) &&
		slices.ContainsFunc(p.Masked, func(m string) bool { return Below(dir, filepath.Clean(m)) })
}

// candidates returns the possible paths in a message, the most likely first:
// "cat: x: MESSAGE", "cannot move 'x' to 'y': MESSAGE", "MESSAGE: 'x'".
func candidates(before, after string) (paths []string) {
	quoted := func(text string) (found []string) {
		for _, m := range quotedText().FindAllStringSubmatch(text, -1) {
			found = append(found, m[1]+m[2]+m[3])
		}
		slices.Reverse(found)
		return found
	}
	paths = append(quoted(after), quoted(before)...)
	before = strings.TrimRight(before, ": ([")
	return append(paths, before[strings.LastIndexAny(before, " :\t=")+1:])
}

// judge returns how the profile restricts a path.
func (p *Profile) judge(path string) (kind CauseKind, held bool) {
	for _, m := range p.Masked {
		if Below(filepath.Clean(m), path) {
			return Hidden, true
		}
	}
	writable := slices.ContainsFunc(p.Writable, func(w string) bool { return Below(w, path) })
	for _, pin := range p.ReadOnly {
		if pin = filepath.Clean(pin); writable && Below(pin, path) && !slices.Contains(p.Writable, pin) {
			return Protected, true
		}
	}
	private := slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/dev", "/proc"}, func(dir string) bool { return Below(dir, path) }) &&
		!slices.ContainsFunc(p.Readable, func(dir string) bool { return Below(dir, path) })
	return Outside, !writable && !private
}
