package bundle

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxElement = 255  // bytes of a file's name
	maxPath    = 1024 // bytes of a path below the bundle's folder
	maxDepth   = 32   // elements of such a path
)

// RefusedError says what is not let in, and why.
type RefusedError struct {
	Path   string // below the bundle's folder; the archive itself where a limit is exceeded
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("%q is refused: %s", e.Path, e.Reason) }

// escapes reports whether a path in an archive leads out of it, which none does
// by accident.
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

// checkPath says why a clean path with slashes cannot be used on all systems;
// "" if it can.
func checkPath(name string) string {
	if len(name) > maxPath {
		return fmt.Sprintf("its path is longer than %d bytes", maxPath)
	}
	if strings.Count(name, "/") >= maxDepth {
		return fmt.Sprintf("it lies more than %d folders deep", maxDepth)
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
		return "its name is not valid UTF-8"
	case len(name) > maxElement:
		return fmt.Sprintf("its name is longer than %d bytes", maxElement)
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "its name has invisible characters"
	case strings.ContainsAny(name, `\:*?"<>|`):
		return `its name has one of \ : * ? " < > |, which not all systems can store`
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "its name ends in a dot or a space, which not all systems can store"
	case reserved(name):
		return "Windows reserves its name"
	}
	return ""
}

// reserved reports whether a name means a device to Windows.
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

// spellings remembers paths, to find those that are one where letter case or
// the form of accents does not count.
type spellings map[string]string

// add says what is wrong with a clean path beside the ones before; "" if
// nothing is.
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
			return fmt.Sprintf("on some systems its name is the same as that of %q", other)
		case part == name:
			return "it is there twice"
		}
	}
	return ""
}
