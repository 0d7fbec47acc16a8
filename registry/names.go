package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxName   = 64
	separator = "__" // between source and tool
	hashChars = 8
)

// cleanName returns a name with invalid characters replaced, and whether it is
// unchanged.
func cleanName(name string) (clean string, same bool) {
	clean = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		clean = "tool"
	}
	return clean, clean == name
}

// plainName returns the name of a tool without its source; empty if it must be
// qualified.
func plainName(source, tool string) string {
	clean, _ := cleanName(tool)
	if len(clean) > maxName {
		return ""
	}
	if own, _ := cleanName(source); strings.Contains(clean, separator) && !strings.HasPrefix(clean, own+separator) {
		return "" // looks like another source's
	}
	return clean
}

// qualifiedName returns source__tool, which is unique except for hash collisions.
func qualifiedName(source, tool string) string {
	s, same := cleanName(source)
	t, sameTool := cleanName(tool)
	name := s + separator + t
	plain := same && sameTool && len(name) <= maxName &&
		!strings.Contains(s, separator) && !strings.Contains(t, separator) &&
		!strings.HasSuffix(s, "_") && !strings.HasPrefix(t, "_")
	if plain && !looksHashed(t) {
		return name
	}
	return hashedName(escape(s)+separator+escape(t), source, tool)
}

// hashedName truncates a name and appends a hash of source and tool.
func hashedName(name, source, tool string) string {
	sum := sha256.Sum256([]byte(source + "\x00" + tool))
	if most := maxName - hashChars - 1; len(name) > most {
		name = name[:most]
	}
	return name + "_" + hex.EncodeToString(sum[:])[:hashChars]
}

// looksHashed reports whether a name ends like one from hashedName.
func looksHashed(name string) bool {
	i := len(name) - hashChars - 1
	return i >= 0 && name[i] == '_' && strings.Trim(name[i+1:], "0123456789abcdef") == ""
}

// escape breaks up double underscores.
func escape(part string) string {
	for strings.Contains(part, separator) {
		part = strings.ReplaceAll(part, separator, "_-_")
	}
	return part
}
