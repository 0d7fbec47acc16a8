package bundle

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-009c0928/agent/core/invisible"
)

const (
	maxElement = 255  // bytes of a file's name
	maxPath    = 1024 // bytes of a path below the bundle's folder
	maxDepth   = 32   // elements of such a path
)

// RefusedError is a file that a bundle must not have, and why.
type RefusedError struct {
	Path   string // below the bundle's folder; "." if the archive exceeds a limit
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("%q refused: %s", e.Path, e.Reason) }

// escapes reports whether a path in an archive leads out of it, which does not
// happen by accident.
func escapes(name string) bool {
	slashed := strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(slashed, "/") || len(name) > 1 && name[1] == ':' {
		return true
	}
	for element := range strings.SplitSeq(slashed, "/") {
		if element == ".." {
			return true
		}
	}
	return false
}

// checkPath returns why a clean path with slashes is not valid on all systems;
// "" if it is.
func checkPath(name string) string {
	if len(name) > maxPath {
		return fmt.Sprintf("the path is longer than %d bytes", maxPath)
	}
	if strings.Count(name, "/") >= maxDepth {
		return fmt.Sprintf("more than %d folders deep", maxDepth)
	}
	for element := range strings.SplitSeq(name, "/") {
		if reason := checkElement(element); reason != "" {
			return reason
		}
	}
	return ""
}

func checkElement(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "the name is not valid UTF-8"
	case len(name) > maxElement:
		return fmt.Sprintf("the name is longer than %d bytes", maxElement)
	case strings.ContainsFunc(name, func(r rune) bool { return invisible.Is(r) || unicode.Is(unicode.Cf, r) }):
		return "the name has invisible characters"
	case strings.ContainsAny(name, `\:*?"<>|`):
		return `the name has one of \ : * ? " < > |, which not all systems allow`
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "the name ends in a dot or a space, which not all systems allow"
	case reserved(name):
		return "the name is reserved on Windows"
	}
	return ""
}

// reserved reports whether a name is that of a device on Windows.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	device, number := stem[:max(len(stem)-1, 0)], strings.TrimPrefix(strings.TrimPrefix(stem, "COM"), "LPT")
	return (device == "COM" || device == "LPT") && len(number) == 1 && number >= "0" && number <= "9"
}

// spellings holds paths, to find those that differ only in letter case or in
// the Unicode form of accents.
type spellings map[string]string

// add adds a clean path and returns how it conflicts with an earlier one; "" if
// it does not.
func (s spellings) add(name string) string {
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		part := name[:i]
		folded := strings.ToLower(strings.ToUpper(norm.NFC.String(part)))
		other, taken := s[folded]
		switch {
		case !taken:
			s[folded] = part
		case other != part:
			return fmt.Sprintf("on some systems the name is the same as %q", other)
		case part == name:
			return "it occurs twice"
		}
	}
	return ""
}
