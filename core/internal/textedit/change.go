package textedit

import "strings"

// Edit applies changes of whole lines to a text, from its top to its end.
type Edit struct {
	text *Text
	out  builder
	at   int // lines before it are done
}

// Edit starts an edit.
func (t *Text) Edit() *Edit { return &Edit{text: t, out: builder{of: t}} }

// Next returns the index of the first line that was not passed.
func (e *Edit) Next() int { return e.at }

// Find returns the indexes, from the given one on, where the wanted lines begin,
// at the lowest tolerance with a match.
func (e *Edit) Find(want []string, from int) ([]int, Tolerance) {
	return find(e.text.Lines, want, from)
}

// Change changes the lines that begin at an index and match the ops' old lines.
// If white space was ignored to find them, the added lines are indented as the
// file is; the error is [ErrIndentation].
func (e *Edit) Change(at int, ops []Op, t Tolerance) error {
	if t >= Space {
		n := 0
		for _, o := range ops {
			if o.Kind != '+' {
				n++
			}
		}
		if err := reindent(ops, e.text.Lines[at:at+n]); err != nil {
			return err
		}
	}
	e.out.keep(e.text.Lines[e.at:at]...)
	e.at = at
	for len(ops) > 0 {
		if ops[0].Kind == ' ' {
			e.out.keep(e.text.Lines[e.at]) // of the file, which may differ
			e.at++
			ops = ops[1:]
			continue
		}
		var old, added []Line
		for ; len(ops) > 0 && ops[0].Kind != ' '; ops = ops[1:] {
			if ops[0].Kind == '+' {
				added = append(added, ops[0].Line)
				continue
			}
			old = append(old, e.text.Lines[e.at])
			e.at++
		}
		e.out.replace(old, added)
	}
	return nil
}

// finish keeps the rest of the file and returns the text.
func (e *Edit) finish() string {
	e.out.keep(e.text.Lines[e.at:]...)
	e.at = len(e.text.Lines)
	return e.out.String()
}

// String keeps the rest of the file, and whether its last line is finished, and
// returns the text.
func (e *Edit) String() string {
	e.out.keep(e.text.Lines[e.at:]...)
	e.at = len(e.text.Lines)
	if n, last := len(e.out.lines), len(e.text.Lines); n > 0 && last > 0 {
		switch l := &e.out.lines[n-1]; {
		case e.text.Lines[last-1].End == "":
			l.End = ""
		case l.End == "":
			l.End = e.text.usual
		}
	}
	return e.out.String()
}

// compare returns the change from old to added lines.
func compare(old, added []Line) []Op {
	same := func(a, b Line) bool {
		return Trailing.Normal(a.Text) == Trailing.Normal(b.Text) && (a.End == "") == (b.End == "")
	}
	var head, tail []Op
	for len(old) > 0 && len(added) > 0 && same(old[0], added[0]) {
		head = append(head, Op{' ', old[0]})
		old, added = old[1:], added[1:]
	}
	for len(old) > 0 && len(added) > 0 && same(old[len(old)-1], added[len(added)-1]) {
		tail = append(tail, Op{' ', old[len(old)-1]})
		old, added = old[:len(old)-1], added[:len(added)-1]
	}
	head = append(head, compareMiddle(old, added, same)...)
	for i := len(tail) - 1; i >= 0; i-- {
		head = append(head, tail[i])
	}
	return head
}

// compareMiddle compares by the longest common subsequence, unless that would
// take too long.
func compareMiddle(old, added []Line, same func(a, b Line) bool) []Op {
	var ops []Op
	if len(old)*len(added) > 250_000 {
		for _, l := range old {
			ops = append(ops, Op{'-', l})
		}
		for _, l := range added {
			ops = append(ops, Op{'+', l})
		}
		return ops
	}
	longest := make([][]int, len(old)+1)
	for i := range longest {
		longest[i] = make([]int, len(added)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(added) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if strings.TrimSpace(old[i].Text) != "" && same(old[i], added[j]) {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(added) {
		switch {
		case i < len(old) && j < len(added) && strings.TrimSpace(old[i].Text) != "" && same(old[i], added[j]):
			ops = append(ops, Op{' ', old[i]})
			i, j = i+1, j+1
		case i < len(old) && (j == len(added) || longest[i+1][j] >= longest[i][j+1]):
			ops = append(ops, Op{'-', old[i]})
			i++
		default:
			ops = append(ops, Op{'+', added[j]})
			j++
		}
	}
	return ops
}
