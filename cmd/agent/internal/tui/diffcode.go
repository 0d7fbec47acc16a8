package tui

import "strings"

// highlightDiff highlights the lines of a diff: hunk by hunk, those before the
// change together, and those after it.
func (s *scene) highlightDiff(rows []diffRow) {
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && rows[end].sign != 0 && rows[i].sign != 0 && rows[end].file == rows[i].file {
			end++
		}
		if hunk := rows[i:end]; hunk[0].sign != 0 && s.look != nil {
			if language := s.look.code.Language(hunk[0].file); s.highlights(language) {
				s.highlightHunk(language, hunk, '-')
				s.highlightHunk(language, hunk, '+')
			}
		}
		i = end
	}
}

// highlightHunk highlights the lines of one side.
func (s *scene) highlightHunk(language string, hunk []diffRow, side byte) {
	var at []int
	var code strings.Builder
	for i, r := range hunk {
		if r.sign == side || r.sign == ' ' {
			at = append(at, i)
			code.WriteString(r.text + "\n")
		}
	}
	lines := s.code(language, code.String())
	if len(lines) != len(at) {
		return
	}
	for n, i := range at {
		hunk[i].spans = lines[n]
	}
}

// cells returns the sign and the text of a line. On its own background, its
// text has the colours of code.
func (r diffRow) cells(tinted bool) []cell {
	st, line, word := plain, plain, plain
	switch r.sign {
	case '+':
		st, line, word = green, addedLine, addedWord
	case '-':
		st, line, word = red, removedLine, removedWord
	}
	spans := r.spans
	if spans == nil || r.sign != ' ' && !tinted {
		spans, tinted = []span{{r.text, st}}, false
	}
	cells := []cell{{string(r.sign), 1, st.and(line)}}
	at := 0
	for _, s := range spans {
		for rest := s.text; rest != ""; {
			c, width := cluster(rest)
			own := s.style
			if at >= r.from && at < r.to {
				own = own.and(word)
			} else {
				own = own.and(line)
			}
			if c == "\t" {
				width = len(untab(c))
			}
			cells, rest, at = append(cells, cell{untab(c), width, own}), rest[len(c):], at+len(c)
		}
	}
	return cells
}
