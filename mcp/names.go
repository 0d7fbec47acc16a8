package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxToolName = 64
	separator   = "__"
	hashChars   = 8
)

// ToolName returns the name of a server's tool for the model: SERVER__TOOL, at
// most 64 letters, digits, _ and -. Where replacing, truncating or underscores
// would make it ambiguous, a short hash of both names is appended, so that names
// are unique except for hash collisions.
func ToolName(server, tool string) string {
	s, t := cleanName(server), cleanName(tool)
	name := s + separator + t
	plain := s == server && t == tool && len(name) <= maxToolName &&
		!strings.Contains(t, separator) && !strings.HasSuffix(s, "_") && !strings.HasPrefix(t, "_") && !looksHashed(t)
	if plain {
		return name
	}
	for strings.Contains(t, separator) {
		t = strings.ReplaceAll(t, separator, "_-_")
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	name = s + separator + t
	if most := maxToolName - hashChars - 1; len(name) > most {
		name = name[:most]
	}
	return name + "_" + hex.EncodeToString(sum[:])[:hashChars]
}

// cleanName replaces characters that are invalid in a tool name.
func cleanName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// looksHashed reports whether a name ends in what looks like ToolName's hash.
func looksHashed(name string) bool {
	i := len(name) - hashChars - 1
	return i >= 0 && name[i] == '_' && strings.Trim(name[i+1:], "0123456789abcdef") == ""
}
