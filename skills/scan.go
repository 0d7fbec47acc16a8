package skills

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/invisible"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/sensitive"
)

// scanRule is something that a user should review before installing a skill.
type scanRule struct {
	message string
	pattern func() *regexp.Regexp
}

// scanRules only warn: they are easy to evade.
var scanRules = []scanRule{
	{"downloads and runs a program", lazy.Regexp(`(?i)\b(curl|wget|fetch|iwr|irm|invoke-webrequest|invoke-restmethod)\b[^\n|;]{0,300}\|\s*(sudo\s+)?(ba|z|da|k|fi)?sh\b|(?im)\b(curl|wget|iwr|irm)\b[^\n|;]{0,300}\|\s*(sudo\s+)?(iex\b|invoke-expression\b|(python3?|node|perl|ruby)(\s+-[uBEsSI]+)*(\s+-(\s|$)|[ \t]*($|[|;&)"'\x60])))|(?i)\b((ba|z|da|k|fi)?sh|eval|source)\b([ \t]+-c)?[ \t]*["']?(\$\(|<[ \t]*\(|\x60)[ \t]*(curl|wget)\b|(?i)\b(iex|invoke-expression)\b[ \t]*["']?\$?\(+[ \t]*(curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b`)},
	{"sends a variable that may be a secret over the network", lazy.Regexp(`(?i)\b(curl|wget|nc|ncat)\b[^\n]{0,200}\$\{?[A-Z_]*(TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL)[A-Z_]*\}?[^\n]{0,80}https?://|(?i)\b(printenv|env|set)\b\s*\|\s*(curl|wget|nc|base64)\b`)},
	{"contains a long block of encoded data", lazy.Regexp(`[A-Za-z0-9+/]{400,}={0,2}|(?:\\x[0-9a-fA-F]{2}){60,}`)},
	{"decodes and runs data", lazy.Regexp(`(?i)base64\s+(-d|--decode|-D)\b[^\n]{0,80}\|\s*(sudo\s+)?(ba|z)?sh\b|(?i)\b(eval|exec)\b[^\n]{0,40}\b(b64decode|atob|frombase64string)\b`)},
	{"tells the model to ignore its instructions or to hide something from the user", lazy.Regexp(`(?i)\b(ignore|disregard|forget)\b (all |any )?(of )?(the |your )?(previous|prior|above|earlier|system) (instructions?|prompts?|rules|messages?)|(?i)\b(do not|don't|never) (tell|inform|mention (this|it) to|show|reveal (this|it) to) (this to )?(the )?(user|person|human)\b`)},
	{"disables a protection", lazy.Regexp(`(?i)--dangerously-skip-permissions|--no-sandbox\b|\bchmod\b\s+(-R\s+)?0?777\b|Set-ExecutionPolicy\s+(Bypass|Unrestricted)`)},
}

// Bounds of the scan.
const (
	maxScanned  = 1 << 20 // bytes of a file
	maxFindings = 50
)

// scan looks for what a user should review before installing a skill: hidden
// characters, programs downloaded and run, paths of credentials, encoded data,
// prompt injection, overly broad triggers. A scan without findings is no proof
// that the skill is safe.
func (s *Skill) scan() []Diagnostic {
	r := &report{}
	scanTriggers(r, s)
	_ = fs.WalkDir(s.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || len(r.list) >= maxFindings {
			return fs.SkipAll
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := readFile(s.Files, name, maxScanned)
		if err != nil {
			return nil // the installer reports unreadable files
		}
		r.file = strings.TrimSuffix(s.File, path.Base(s.File)) + name
		ScanFile(name, data, func(line int, message string) { r.add(Warning, line, 1, "%s", message) })
		return nil
	})
	return r.list
}

// ScanFile scans one file of a skill and reports the first finding of each kind
// with its line.
func ScanFile(name string, data []byte, found func(line int, message string)) {
	lineOf := func(at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }
	if program(data) {
		if !strings.HasPrefix(name, "toolsets/") {
			found(1, "is a binary program")
		}
		return
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return // not text, such as an image
	}
	text := string(data)
	start := 0
	if strings.HasPrefix(text, "\ufeff") {
		start = len("\ufeff")
	}
	if at := strings.IndexFunc(text[start:], func(r rune) bool { return !strings.ContainsRune("\r\n\t\f", r) && invisible.Is(r) }); at >= 0 {
		n := 0
		for _, r := range text[start:] {
			if !strings.ContainsRune("\r\n\t\f", r) && invisible.Is(r) {
				n++
			}
		}
		found(lineOf(start+at), fmt.Sprintf("contains %d invisible characters (control, bidirectional, zero-width or tag)", n))
	}
	for _, rule := range scanRules {
		if at := rule.pattern().FindStringIndex(text); at != nil {
			found(lineOf(at[0]), fmt.Sprintf("%s: %q", rule.message, cut(strings.Join(strings.Fields(text[at[0]:at[1]]), " "), 80)))
		}
	}
	for _, at := range paths().FindAllStringIndex(text, -1) {
		if e, ok := sensitive.Match(plainPath(text[at[0]:at[1]]), 0); ok && e.Class == sensitive.Secret && e.Scope != sensitive.Anywhere {
			found(lineOf(at[0]), fmt.Sprintf("refers to a file with %s: %q", e.Reason, cut(text[at[0]:at[1]], 80)))
			return
		}
	}
}

// paths finds paths below a home directory or of the system, and names of keys.
var paths = lazy.Regexp(`(?i)(?:(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%)[/\\]|/(?:home|root|users|etc|proc|run|var)/|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|login\.keychain)[\w.@~+*/\\-]*`)

// plainPath makes such a path one that the list of sensitive paths knows.
func plainPath(p string) string {
	p = strings.ReplaceAll(strings.TrimRight(p, "."), `\`, "/")
	switch {
	case strings.HasPrefix(p, "id_"):
		return "/.ssh/" + p
	case strings.HasPrefix(p, "login."):
		return "/Library/Keychains/" + p
	case !strings.HasPrefix(p, "/"):
		_, p, _ = strings.Cut(p, "/")
		return "/" + p
	}
	return p
}

// program reports whether a file is a binary program, by its magic number (ELF,
// PE, Mach-O).
func program(data []byte) bool {
	for _, magic := range []string{"\x7fELF", "MZ\x90", "\xcf\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xca\xfe\xba\xbe\x00\x00\x00"} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return true
		}
	}
	return false
}

// Plausible numbers of triggers.
const (
	plausibleKeywords = 60
	plausibleVerbs    = 30
)

var baits = lazy.Regexp(`(?i)\b(always (use|activate|load|invoke) this skill|use this skill for (every|any|all) (task|request|question|message|prompt)s?|must be used for (every|all))\b`)

// scanTriggers looks for overly broad triggers.
func scanTriggers(r *report, s *Skill) {
	r.file = s.File
	t := s.Triggers
	if len(t.Keywords) > plausibleKeywords || len(t.Verbs) > plausibleVerbs {
		r.add(Warning, 1, 1, "has unusually many triggers: %d keywords and %d verbs", len(t.Keywords), len(t.Verbs))
	}
	if demoted := s.Demoted(); len(demoted) > 3 {
		r.add(Warning, 1, 1, "has overly broad triggers: %d of them match ordinary inputs", len(demoted))
	}
	if at := baits().FindString(s.Description + "\n" + s.WhenToUse); at != "" {
		r.add(Warning, 1, 1, "the description asks to use the skill for everything: %q", cut(at, 80))
	}
}
