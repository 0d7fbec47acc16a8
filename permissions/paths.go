package permissions

import (
	"path"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// slashed returns a path with forward slashes.
func slashed(p string) string {
	if runtime.GOOS == "windows" {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}

// isAbs reports whether a slashed path is absolute on any operating system: the
// environment of a call may run another one than this process.
func isAbs(p string) bool {
	return strings.HasPrefix(p, "/") || hasDrive(p) && len(p) > 2 && p[2] == '/'
}

// hasDrive reports whether a path begins with a drive letter.
func hasDrive(p string) bool {
	return len(p) >= 2 && p[1] == ':' && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
}

// isVolumeRoot reports whether a slashed path is the root of a file system.
func isVolumeRoot(p string) bool {
	return p == "/" || hasDrive(p) && (len(p) == 2 || p[2:] == "/")
}

// cleanPath returns an absolute path in slashed form. It is false for a path that
// is not clean, which could be another than it seems.
func cleanPath(p string) (string, bool) {
	p = slashed(p)
	if !isAbs(p) || strings.IndexByte(p, 0) >= 0 {
		return "", false
	}
	if isVolumeRoot(p) {
		return p, true
	}
	rest := p
	if strings.HasPrefix(p, "//") { // \\server\share
		rest = p[1:]
	}
	return p, path.Clean(rest) == rest
}

// under reports whether p is dir or below it.
func under(p, dir string) bool {
	if !strings.HasPrefix(p, dir) {
		return false
	}
	return len(p) == len(dir) || strings.HasSuffix(dir, "/") || p[len(dir)] == '/'
}

// fold maps names that a file system may treat as equal to one spelling: it
// ignores case and the characters that some systems ignore in names.
func fold(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.Map(foldRune, normalize(s))
		}
	}
	return s
}

func foldRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return unicode.ToLower(r)
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}

// wild reports whether a name matches a pattern in which only * is special.
func wild(pattern, name string) bool {
	star, mark, p, n := -1, 0, 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
