package frontmatter

import (
	"regexp"
	"strings"
	"sync"
)

var keyLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([ \t]*)([A-Za-z_][A-Za-z0-9_.-]*):[ \t]+(\S.*)$`)
})

// repair quotes plain values that YAML would misread, including continuation
// lines, and replaces leading tabs by spaces. Line numbers do not change.
func repair(front string) string {
	lines := strings.Split(front, "\n")
	for i := range lines {
		text := strings.TrimLeft(lines[i], "\t")
		lines[i] = strings.Repeat("  ", len(lines[i])-len(text)) + text
	}
	for i := 0; i < len(lines); i++ {
		m := keyLine().FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		indent, value, end := len(m[1]), strings.TrimSpace(m[3]), i+1
		if !plain(value) {
			if value[0] == '|' || value[0] == '>' { // a block scalar: its lines are text
				for i+1 < len(lines) && continues(lines[i+1], indent) {
					i++
				}
			}
			continue
		}
		for end < len(lines) && continues(lines[end], indent) && strings.TrimSpace(lines[end]) != "" {
			value += " " + strings.TrimSpace(lines[end])
			end++
		}
		if !misread(value) {
			continue
		}
		lines[i] = m[1] + m[2] + ": '" + strings.ReplaceAll(value, "'", "''") + "'"
		for j := i + 1; j < end; j++ {
			lines[j] = ""
		}
		i = end - 1
	}
	return strings.Join(lines, "\n")
}

// continues reports whether a line belongs to the value of a key at indent.
func continues(line string, indent int) bool {
	text := strings.TrimLeft(line, " ")
	return text == "" || len(line)-len(text) > indent
}

// plain reports whether a value is meant as a plain scalar: not quoted, and not
// a block, list, mapping, anchor or tag.
func plain(value string) bool {
	switch value[0] {
	case '"', '\'', '|', '>', '{', '&', '!':
		return false
	case '[':
		return strings.IndexByte(value, ']') != len(value)-1
	case '*':
		return strings.ContainsAny(value, " \t*") && len(value) > 1 && strings.ContainsAny(value[1:], " *")
	}
	return true
}

// misread reports whether YAML reads a plain value as something else.
func misread(value string) bool {
	return strings.Contains(value, ": ") || strings.HasSuffix(value, ":") || strings.Contains(value, " #") || strings.ContainsAny(value[:1], "@`%*[]},?")
}
