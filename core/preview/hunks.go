package preview

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Hunk is a part of a change that can be taken alone.
type Hunk struct {
	Diff string // with its head

	start, count int // of the lines before, from 0
	after        string
}

var hunkHead = lazy.Regexp(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@`)

// Hunks returns the parts of the change; one that cannot be taken apart has none. A
// new or deleted file is one part.
func (c Change) Hunks() []Hunk {
	diff := c.Diff()
	if c.Before == nil || c.After == nil {
		return []Hunk{{Diff: diff}}
	}
	var hunks []Hunk
	lines := strings.SplitAfter(diff, "\n")
	for i, line := range lines {
		if m := hunkHead().FindStringSubmatch(line); m != nil {
			h := Hunk{count: 1}
			h.start, _ = strconv.Atoi(m[1])
			if m[2] != "" {
				h.count, _ = strconv.Atoi(m[2])
			}
			if h.count > 0 {
				h.start--
			}
			hunks = append(hunks, h)
		}
		if len(hunks) == 0 {
			continue
		}
		h := &hunks[len(hunks)-1]
		h.Diff += line
		if line == "" || line[0] != ' ' && line[0] != '+' {
			continue
		}
		text := line[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], `\ No newline`) {
			text = strings.TrimSuffix(text, "\n")
		}
		h.after += text
	}
	all, none := make([]bool, len(hunks)), make([]bool, len(hunks))
	for i := range all {
		all[i] = true
	}
	if !bytes.Equal(c.take(hunks, all), c.After) || !bytes.Equal(c.take(hunks, none), c.Before) {
		return nil // such as text in another encoding
	}
	return hunks
}

// Take returns the change with only some of its Hunks.
func (c Change) Take(chosen []bool) Change {
	hunks := c.Hunks()
	if c.Before == nil || c.After == nil {
		if !chosen[0] {
			c.After = c.Before
		}
		return c
	}
	c.After = c.take(hunks, chosen)
	return c
}

func (c Change) take(hunks []Hunk, chosen []bool) []byte {
	lines := strings.SplitAfter(string(c.Before), "\n")
	var b strings.Builder
	at := 0
	for i, h := range hunks {
		if !chosen[i] || h.start < at || h.start+h.count > len(lines) {
			continue
		}
		b.WriteString(strings.Join(lines[at:h.start], ""))
		b.WriteString(h.after)
		at = h.start + h.count
	}
	b.WriteString(strings.Join(lines[at:], ""))
	return orEmpty([]byte(b.String()))
}
