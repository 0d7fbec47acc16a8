package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Cause is the reason why a command failed in its sandbox.
type Cause struct {
	Path string // could not be written or read; empty for the network
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
	readOnlyText = regexp.MustCompile(`(?i)read-only file system|EROFS`)
	busyText     = regexp.MustCompile(`(?i)device or resource busy|EBUSY|cross-device link|EXDEV`)
	deniedText   = regexp.MustCompile(`(?i)permission denied|EACCES|operation not permitted|EPERM`)
	networkText  = regexp.MustCompile(`(?i)network is unreachable|ENETUNREACH|could not resolve host|temporary failure in name resolution|` +
		`name or service not known|no such host|ENOTFOUND|EAI_AGAIN|socket: operation not permitted`)
	quotedText = regexp.MustCompile(`'([^']+)'|"([^"]+)"|‘([^’]+)’`)
)

func (p *Profile) explainLine(level Level, dir, line string) (Cause, bool) {
	if networkText.MatchString(line) && !p.Network.Full {
		return Cause{Kind: NoNetwork}, true
	}
	for _, message := range [...]*regexp.Regexp{readOnlyText, deniedText, busyText} {
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
			case !held && level == Landlock && message == deniedText && p.besideHidden(path):
				return Cause{filepath.Dir(path), Beside}, true
			case !held, kind == Hidden && message != deniedText:
			case kind == Outside && (message == busyText || message == deniedText && level == Namespace):
				// The sandbox is not the cause.
			default:
				return Cause{path, kind}, true
			}
		}
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
		for _, m := range quotedText.FindAllStringSubmatch(text, -1) {
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
