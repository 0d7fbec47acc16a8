package tools

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/internal/charset"
)

// places returns where any of the literals begins, found one after another.
func places(l literals, text string) []int {
	f := newLiteralFinder(l)
	f.reset()
	var list []int
	for pos := f.next([]byte(text), 0); pos >= 0; pos = f.next([]byte(text), pos+1) {
		list = append(list, pos)
	}
	return list
}

func slowPlaces(l literals, text string) []int {
	var list []int
	for pos := range len(text) {
		for _, t := range l.texts {
			if at := text[pos:]; strings.HasPrefix(at, t) || l.fold && strings.HasPrefix(strings.ToLower(at), t) {
				list = append(list, pos)
				break
			}
		}
	}
	return list
}

// TestLiteralFinder compares it with looking at each position, for few and many
// literals of all lengths, in texts of few and of many different bytes.
func TestLiteralFinder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	of := func(alphabet string, most int) string {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteByte(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 3000 {
		alphabet := []string{"ab", "abcABC_", "eknrst KS\n", "\xd0\xd1\x80\xbfa", strings.Repeat(" ", 60) + "xyz"}[random.IntN(5)]
		l := literals{fold: random.IntN(2) == 0 && alphabet[0] < 0x80}
		for range 1 + random.IntN(12) {
			text := of(alphabet, 6)
			if l.fold {
				text = lowerASCII(text)
			}
			l.texts = append(l.texts, text)
		}
		l.texts = l.texts[:1+random.IntN(len(l.texts))]
		text := of(alphabet, 400)
		if got, want := places(l, text), slowPlaces(l, text); !slices.Equal(got, want) {
			t.Fatalf("%q, fold %v, in %q: at %v, want %v", l.texts, l.fold, text, got, want)
		}
	}
}

// FuzzAbsent: what the bytes of a file rule out is not in its text either, however
// it is encoded.
func FuzzAbsent(f *testing.F) {
	for _, text := range []string{
		"a needle\n", "n\x00e\x00e\x00d\x00l\x00e\x00", "\xff\xfen\x00e\x00", "\xfe\xff\x00n\x00e", "caf\xe9 needle", "caf\xe9 Needl\xe9",
		"\x90\xdd\x92\xe8\x83t\x83@\x83C\x83\x8b needle \x83n\x83e", "\xc9\xe8\xb6\xa8 needle", "\x81\x30\x81\x30needle\xd2\xbb", "\x1b$Bneedle\x1b(B\xe9",
	} {
		f.Add([]byte(text), "needle")
		f.Add([]byte(text), "(?i)NE|xy")
	}
	f.Fuzz(func(t *testing.T, data []byte, pattern string) {
		if len(pattern) > 100 || len(data) > 2_000 {
			return
		}
		m, err := newLineMatcher(pattern, false)
		if err != nil {
			return
		}
		if s := m.scanner(); !s.absent(data) {
			return
		}
		if e, ok := charset.Detect(data); ok {
			for range m.scanner().all(e.Decode(data)) {
				t.Fatalf("%q in %q, %s: found", pattern, data, e)
			}
		}
	})
}
