package tools

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRandomExpressions compares expressions made of all kinds of parts, on texts
// made of what they are about, with package regexp.
func TestRandomExpressions(t *testing.T) {
	atoms := []string{
		"a", "b", "ab", "k", "s", ".", `\w`, `\W`, `\d`, `\s`, `\b`, `\B`, "^", "$", "[a-c]", "[^a]", "[а-я]", `\p{Greek}`, `\P{L}`, `[^\x00-\x7f]`,
		"я", "世", "σ", "😀", `\x{FFFD}`, "(?i:k)", "(?i:ς)", "(?i:Я)", "(a|я)", "(?:ab|世界)",
		"abc", "(?i:ask)", "(ab|bc|ca|世)", "(?i:ab|kb|ss|1)", ".*", "(?:abc)+",
	}
	repeats := []string{"", "", "", "*", "+", "?", "{2}", "{2,}", "{1,3}", "*?"}
	pieces := []string{"a", "b", "c", "ab", "K", "\u212A", "ſ", "S", " ", "1", "_", "\n", "\n", "я", "Я", "ж", "σ", "ς", "Σ", "世", "世界", "😀", "é", "\xff", "\xd1", "\xe4\xb8", "\xf0\x9f", "\x80", "\uFFFD", "\u0080", "\U0010FFFF"}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for range 1500 {
		var pattern strings.Builder
		for range 1 + random.IntN(5) {
			pattern.WriteString(pick(atoms))
			if last := pattern.String(); !strings.HasSuffix(last, "^") && !strings.HasSuffix(last, "$") && !strings.HasSuffix(strings.ToLower(last), `\b`) {
				pattern.WriteString(pick(repeats))
			}
			if random.IntN(8) == 0 {
				pattern.WriteString("|")
			}
		}
		m, err := newLineMatcher(pattern.String(), false)
		if err != nil {
			continue
		}
		alone := regexp.MustCompile(pattern.String())
		for range 3 {
			var text strings.Builder
			for range random.IntN(80) {
				text.WriteString(pick(pieces))
			}
			var want []int
			for i, line := range slices.Collect(strings.Lines(text.String())) {
				if alone.MatchString(strings.TrimSuffix(line, "\n")) {
					want = append(want, i)
				}
			}
			if got := matchingLines(t, m, text.String()); !slices.Equal(got, want) {
				t.Fatalf("%q in %q: lines %v, want %v", pattern.String(), text.String(), got, want)
			}
		}
	}
}
