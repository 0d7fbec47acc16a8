package textedit

import (
	"errors"
	"strings"
)

// Op is a line of a change.
type Op struct {
	Kind byte // ' ' unchanged, '-' removed, '+' added
	Line Line
}

// ErrIndentation is the error of a change whose old lines are indented so
// differently from the file that the place of its new lines is ambiguous.
var ErrIndentation = errors.New("the indentation of the old lines differs from the file's in such a way that the indentation of the new lines would be a guess")

// reindent changes the indentation of the added lines as that of the old lines
// differs from that of the found ones.
func reindent(ops []Op, found []Line) error {
	m := newIndents(ops, found)
	for i := range ops {
		o := &ops[i]
		if o.Kind != '+' || strings.TrimSpace(o.Line.Text) == "" {
			continue
		}
		from := indent(o.Line.Text)
		to, ok := m.of(from, i)
		if !ok {
			return ErrIndentation
		}
		o.Line.Text = to + o.Line.Text[len(from):]
	}
	return nil
}

func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indents maps the indentation of a change's old lines to that of the file.
type indents struct {
	ops    []Op
	at     []string            // of the file, per op; that of an added line is empty
	known  map[string][]string // the file's for each of the old lines'
	unit   int                 // smallest step of the change's indentation, in characters
	tabs   bool                // the file is indented with tabs
	spaces bool                // and the old lines with spaces
}

func newIndents(ops []Op, found []Line) *indents {
	m := &indents{ops: ops, at: make([]string, len(ops)), known: map[string][]string{}}
	n := 0
	for i, o := range ops {
		given := indent(o.Line.Text)
		if len(given) > 0 && (m.unit == 0 || len(given) < m.unit) && strings.TrimSpace(o.Line.Text) != "" {
			m.unit = len(given)
		}
		if o.Kind == '+' {
			continue
		}
		m.at[i] = indent(found[n].Text)
		if n++; strings.TrimSpace(o.Line.Text) == "" {
			continue
		}
		m.tabs = m.tabs || strings.Contains(m.at[i], "\t")
		m.spaces = m.spaces || strings.Contains(given, " ")
		seen := false
		for _, to := range m.known[given] {
			seen = seen || to == m.at[i]
		}
		if !seen {
			m.known[given] = append(m.known[given], m.at[i])
		}
	}
	return m
}

// of returns the indentation in the file of an added line, given that in the
// change; ok is false if it is ambiguous.
func (m *indents) of(given string, op int) (to string, ok bool) {
	switch all := m.known[given]; {
	case len(all) == 1:
		return all[0], true
	case len(all) > 1:
		return m.inContext(given, op)
	case m.tabs && m.spaces && given != "" && strings.Trim(given, "\t") == "":
		return given, true // as in the file already
	}
	return m.extrapolate(given)
}

// inContext decides by the neighbours: the line that an added line replaces, or
// old lines with the same indentation on both sides.
func (m *indents) inContext(given string, op int) (string, bool) {
	first, last := op, op // the lines that change together
	for first > 0 && m.ops[first-1].Kind != ' ' {
		first--
	}
	for last < len(m.ops)-1 && m.ops[last+1].Kind != ' ' {
		last++
	}
	var removed []int
	added, nth := 0, 0
	for i := first; i <= last; i++ {
		switch m.ops[i].Kind {
		case '-':
			removed = append(removed, i)
		case '+':
			if i == op {
				nth = added
			}
			added++
		}
	}
	if added == len(removed) && indent(m.ops[removed[nth]].Line.Text) == given {
		return m.at[removed[nth]], true
	}
	if len(removed) > 0 || first == 0 || last == len(m.ops)-1 {
		return "", false
	}
	before, after := first-1, last+1
	same := m.at[before] == m.at[after] && indent(m.ops[before].Line.Text) == given && indent(m.ops[after].Line.Text) == given
	return m.at[before], same
}

// extrapolate derives an indentation that no old line has from the nearest one
// that an old line has.
func (m *indents) extrapolate(given string) (string, bool) {
	near := ""
	distance := -1
	for known, to := range m.known {
		d := max(len(given)-len(known), len(known)-len(given))
		if len(to) == 1 && (distance < 0 || d < distance || d == distance && len(known) < len(near)) {
			near, distance = known, d
		}
	}
	if distance < 0 {
		return "", false
	}
	to := m.known[near][0]
	if near == given[:min(len(near), len(given))] && len(given) > len(near) {
		return m.deeper(to, given[len(near):])
	}
	step, ok := m.deeper("", near[min(len(given), len(near)):])
	if !ok || !strings.HasPrefix(near, given) || !strings.HasSuffix(to, step) {
		return "", false
	}
	return strings.TrimSuffix(to, step), true
}

// deeper adds to an indentation, with tabs if the file uses them.
func (m *indents) deeper(to, extra string) (string, bool) {
	if !m.tabs || strings.Contains(extra, "\t") {
		if per, ok := m.scale(); ok {
			extra = strings.Repeat(" ", int(float64(len(extra))*per))
		} else if per, ok := m.perTab(); ok && strings.Trim(extra, "\t") == "" {
			extra = strings.Repeat(" ", len(extra)*per)
		}
		return to + extra, true
	}
	if m.unit == 0 || len(extra)%m.unit != 0 {
		return to + extra, true // alignment
	}
	return to + strings.Repeat("\t", len(extra)/m.unit), true
}

// scale returns how many spaces the file uses for a space or tab of the change,
// if two old lines tell.
func (m *indents) scale() (float64, bool) {
	least, most := "", ""
	first := true
	for known, to := range m.known {
		mixed := strings.Contains(known, "\t") && strings.Contains(known, " ")
		if len(to) != 1 || mixed || strings.Contains(to[0], "\t") {
			return 0, false
		}
		if first || len(known) < len(least) {
			least = known
		}
		if first || len(known) > len(most) {
			most = known
		}
		first = false
	}
	d := len(most) - len(least)
	if d == 0 {
		return 0, false
	}
	scale := float64(len(m.known[most][0])-len(m.known[least][0])) / float64(d)
	return scale, scale > 0
}

// perTab returns how many spaces the file uses for a tab of the change.
func (m *indents) perTab() (int, bool) {
	if m.tabs {
		return 0, false
	}
	for known, to := range m.known {
		if n := strings.Count(known, "\t"); n > 0 && n == len(known) && len(to) == 1 && len(to[0]) > 0 && len(to[0])%n == 0 {
			return len(to[0]) / n, true
		}
	}
	return 0, false
}
