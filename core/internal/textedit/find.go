package textedit

import (
	"strings"
	"unicode"
)

// Tolerance is which differences between lines are ignored.
type Tolerance int

// The tolerances, in the order in which they are tried.
const (
	Exact       Tolerance = iota
	Trailing              // white space at the ends of lines
	Space                 // the amount of white space
	Punctuation           // and the form of quotes, dashes and the like
)

// String describes what was ignored.
func (t Tolerance) String() string {
	switch t {
	case Trailing:
		return "white space at line ends"
	case Space:
		return "white space"
	case Punctuation:
		return "white space and in the form of quotes, dashes or other punctuation"
	}
	return "nothing"
}

// Normal returns the form in which two lines are compared.
func (t Tolerance) Normal(line string) string {
	switch t {
	case Trailing:
		return strings.TrimRightFunc(line, unicode.IsSpace)
	case Space:
		return strings.Join(strings.Fields(line), " ")
	case Punctuation:
		return strings.Join(strings.Fields(plainPunctuation.Replace(line)), " ")
	}
	return line
}

// plainPunctuation replaces typographic characters with ASCII.
var plainPunctuation = strings.NewReplacer(
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "′", "'", "“", `"`, "”", `"`, "„", `"`, "‟", `"`, "″", `"`, "«", `"`, "»", `"`,
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "…", "...", "•", "*",
	"\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", BOM, "",
)

// find returns the indexes, from the given one on, where the wanted lines begin,
// at the lowest tolerance with a match.
func find(lines []Line, want []string, from int) (at []int, t Tolerance) {
	for t = Exact; t <= Punctuation; t++ {
		if at = t.find(lines, want, from); len(at) > 0 {
			return at, t
		}
	}
	return nil, Exact
}

func (t Tolerance) find(lines []Line, want []string, from int) []int {
	if len(want) > len(lines)-from {
		return nil
	}
	normal := make([]string, len(want))
	for i, w := range want {
		normal[i] = t.Normal(w)
	}
	have := make([]string, len(lines))
	for i := from; i < len(lines); i++ {
		have[i] = t.Normal(lines[i].Text)
	}
	var at []int
next:
	for i := from; i <= len(have)-len(normal); i++ {
		for j, n := range normal {
			if have[i+j] != n {
				continue next
			}
		}
		at = append(at, i)
	}
	return at
}
