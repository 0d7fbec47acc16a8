package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Cause is why a command failed in its sandbox.
type Cause struct {
	Path string // that was not to be written or read; empty for the network
	Kind CauseKind
}

// CauseKind tells causes apart.
type CauseKind uint8

// The causes.
const (
	Outside   CauseKind = iota // the path may be read but not written
	Protected                  // the path, in a writable directory, stays as it is
	Hidden                     // the path may not even be read
	NoNetwork
)

// maxCauses bounds what is said of one command.
const maxCauses = 4

// Explain looks in the last output of a command that failed for what the
// sandbox did not let it do. It knows the messages of the C library, in
// English, and of the common languages' runtimes. The command ran in dir.
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
	// pathText matches what may be a path, in quotes or without.
	pathText = regexp.MustCompile(`'([^']+)'|"([^"]+)"|([^\s:,'"\[\]()]+)`)
)

func (p *Profile) explainLine(level Level, dir, line string) (Cause, bool) {
	readOnly, denied, busy := readOnlyText.MatchString(line), deniedText.MatchString(line), busyText.MatchString(line)
	if networkText.MatchString(line) && !p.Network.Full {
		return Cause{Kind: NoNetwork}, true
	}
	if !readOnly && !denied && !busy {
		return Cause{}, false
	}
	found, ok := Cause{}, false
	for _, m := range pathText.FindAllStringSubmatch(line, -1) {
		path := m[1] + m[2] + m[3]
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		kind, held := p.judge(filepath.Clean(path))
		switch {
		case !held, kind == Hidden && !denied, kind == Outside && (busy || level == Namespace && !readOnly):
			continue // something else is the cause
		}
		found, ok = Cause{filepath.Clean(path), kind}, true // the last one: programs name themselves first
	}
	return found, ok
}

// judge says how the profile holds a path back.
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
	private := Below("/tmp", path) || Below("/var/tmp", path) || Below("/dev", path) || Below("/proc", path)
	return Outside, !writable && !private
}
