package tools

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// matchingLines returns the numbers of the lines that match, counted from 0.
func matchingLines(t *testing.T, m *lineMatcher, text string) []int {
	t.Helper()
	var lines []int
	for found := range m.scanner().all([]byte(text)) {
		lines = append(lines, strings.Count(text[:found.start], "\n"))
	}
	scanner, counted := m.scanner(), 0
	scanner.anywhere = true
	for range scanner.all([]byte(text)) {
		counted++
	}
	if counted != len(lines) {
		t.Errorf("%s in %q: %d lines counted, %d found", m.re, text, counted, len(lines))
	}
	return lines
}

func TestRequiredLiterals(t *testing.T) {
	tests := []struct {
		pattern string
		texts   string
		fold    bool
	}{
		{"needle", "needle", false},
		{"a.*needle.b", "needle", false},
		{"(?:x|needle)+y", "xy needley", false},
		{"foo|bar", "foo bar", false},
		{"(foo|bar)baz", "foobaz barbaz", false},
		{"(foo|bar)+baz", "foobaz barbaz", false},
		{".(foo|bar)+baz", "baz", false},
		{"[ab]c[de].", "acd ace bcd bce", false},
		{"needle[ab]", "needle", false},
		{`[a-z]\bne(e|d)dle$`, "neddle needle", false},
		{"x*", "", false},
		{"(needle)?", "", false},
		{"a{2,}needle{2}", "needl", false},
		{"foo|.*", "", false},
		{"(?i)Needle", "needle", true},
		{"(?i)task", "task", true},
		{"(?i)ks", "ks", true},
		{"FOO|(?i:bar)", "foo bar", true},
		{"(?i)é", "", false},
		{"é", "é", false},
		{"\uFFFD", "", false},
		{`\x{D800}`, "", false},
	}
	for _, tt := range tests {
		m, err := newLineMatcher(tt.pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(m.literals.texts, " "); got != tt.texts || m.literals.fold != tt.fold {
			t.Errorf("%s: %q fold %v, want %q fold %v", tt.pattern, got, m.literals.fold, tt.texts, tt.fold)
		}
	}
}

// FuzzLineMatcher: the matching lines of a text are those that match alone.
func FuzzLineMatcher(f *testing.F) {
	const text = "one needle\n\ntwo\nthree Needle needle\nTASK \u212A \u017F\nlast"
	for _, pattern := range []string{
		"needle", "^", "$", "^$", `\s`, `\S+$`, `[^x]*`, "(?s).*", `\Aone`, `last\z`, "(?i)needle|TWO", "(?i)task", `(?i)\bk\b`, "(?i)s", "x*", "n{2}|e{2}",
		"(?-m:^two$)", `o\b`, "T|t", "(foo|thr)ee", `\x{FFFD}`, "a|b|c|d|e", "(?U)n.*e",
	} {
		f.Add(pattern, text, false)
		f.Add(pattern, text+"\n", true)
	}
	f.Add("a", "\xff\na\xff", false)
	const long = "the mask of a sticky key, and a Sticky Key in a MASK, of which there are a few in this text\nsticKY\nma\u017Fk\nneedle, needled\n"
	for _, pattern := range []string{
		"sticky key|mask", "needle", ".*needle.*", "(of|in|a)+ .*(key|mask)", "mask|key|text|few|this", "(?i)mask|key|text|few|this", "[mt][ae][sx]", "e", "(a|b)*x|(?:key)+",
		`\bneedle\b`, `\w*\bkey,?`, "(x*|key)needle", "(key|x*)", `\x{D800}|needle`, "a{2,}|ke{1,3}y", "^needle", "mask$", "naïve|世界",
	} {
		f.Add(pattern, long, false)
		f.Add(pattern, long+long, true)
	}
	const wide = "Привет, мир\n読み込み\xe8\xaa\nσς Σ ß ſ \U0001F600\xf0\x9f\x98\n\xc0\x80é\n"
	for _, pattern := range []string{
		`\p{Greek}+`, `^\P{L}`, `[а-я]+$`, `(?i)ΣΣ`, `(?i)[а-я]+ М`, `a.*b|.{5}`, `^.{3}$`, `[^ -~]{4}`, `\x{FFFD}.`, `(a|b)*é`, `м.р\b`, `\w+\s+\w+`, `\B.`,
	} {
		f.Add(pattern, wide, false)
		f.Add(pattern, wide+"a b", true)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, caseInsensitive bool) {
		if len(pattern) > 100 || len(text) > 1_000 {
			return
		}
		m, err := newLineMatcher(pattern, caseInsensitive)
		if err != nil {
			return
		}
		flags := ""
		if caseInsensitive {
			flags = "(?i)"
		}
		alone, err := regexp.Compile(flags + pattern)
		if err != nil {
			t.Fatalf("%q is accepted, but not by regexp: %v", pattern, err)
		}
		var want []int
		for i, line := range slices.Collect(strings.Lines(text)) {
			if alone.MatchString(strings.TrimSuffix(line, "\n")) {
				want = append(want, i)
			}
		}
		if got := matchingLines(t, m, text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: lines %v, want %v", pattern, text, got, want)
		}
	})
}
