package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

func TestFuzzy(t *testing.T) {
	t.Parallel()
	files := []string{"cmd/agent/main.go", "core/model/model.go", "docs/my notes.md", "core/Makefile", "internal/tui/markdown.go", "größe.txt", "mm"}
	for _, tt := range []struct{ query, want string }{
		{"", "cmd/agent/main.go, core/model/model.go, docs/my notes.md, core/Makefile, internal/tui/markdown.go, größe.txt, mm"},
		{"main", "cmd/agent/main.go"},
		{"model", "core/model/model.go"},
		{"mm", "mm, core/model/model.go, internal/tui/markdown.go"},
		{"my no", "docs/my notes.md"},
		{"MAKE", ""},
		{"Make", "core/Makefile"},
		{"gö", "größe.txt"},
		{"tuimark", "internal/tui/markdown.go"},
		{"xyz", ""},
	} {
		var got []string
		for _, m := range fuzzy(tt.query, files) {
			got = append(got, files[m.at])
		}
		if tt.query == "mm" {
			got = got[:1]
			tt.want = "mm"
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%q: %s, want %s", tt.query, strings.Join(got, ", "), tt.want)
		}
	}
	if m := fuzzy("mg", files[:1]); len(m) != 1 || fmt.Sprint(m[0].on) != "[10 15]" {
		t.Errorf("matched characters: %v", m)
	}
}

// FuzzFuzzy: what matches has the characters of the query, in order.
func FuzzFuzzy(f *testing.F) {
	f.Add("ab c", "A_b/abc")
	f.Add("É", "éÉ")
	f.Fuzz(func(t *testing.T, query, text string) {
		runes := []rune(text)
		for _, m := range fuzzy(query, []string{text}) {
			var got []rune
			for _, i := range m.on {
				got = append(got, runes[i])
			}
			var want []rune
			for _, word := range strings.Fields(query) { // one by one: two halves would make a character
				want = append(want, []rune(word)...)
			}
			if !slices.EqualFunc(got, want, func(g, w rune) bool { return g == w || unicode.ToLower(g) == w }) {
				t.Errorf("%q in %q: %q", query, text, string(got))
			}
		}
	})
}

// aList is a list with more items than fit.
func aList() List {
	l := List{Title: "Which model?", At: 1, Preview: func(_ context.Context, at int) string { return fmt.Sprintf("# Model %d\n\nIts *price*.", at) }}
	for i := range 60 {
		l.Items = append(l.Items, Item{fmt.Sprintf("vendor/model-%d", i), fmt.Sprintf("%d k · $%d in, $%d out", i, i, 2*i)})
	}
	l.Items = append(l.Items, Item{Label: "a label that is so long that it does not fit into a narrow terminal, with \x1b[31mcolour", Detail: "detail"})
	return l
}

func TestPickerGolden(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		for named, bg := range map[string]background{"dark": darkBackground, "light": lightBackground} {
			s := newScene(painter{colors: true, look: &look{theme: newTheme("auto", colorprofile.TrueColor, bg)}}, size[0], "/w")
			p := newPicker(aList())
			for _, keys := range []string{"", "mod 5"} {
				for _, r := range keys {
					p.key(tea.KeyPressMsg{Code: r, Text: string(r)})
				}
				p.rows(s, size[0], size[1]-1)
				p.previews[p.chosen()] = p.Preview(t.Context(), p.chosen())
				rows, x, y := p.rows(s, size[0], size[1]-1)
				checkGolden(t, fmt.Sprintf("picker-%dx%d-%s%s", size[0], size[1], named, strings.ReplaceAll(keys, " ", "")), rows)
				if x != 4+len(keys) || y != 1 || len(rows) >= size[1] {
					t.Errorf("cursor at %d, %d of %d rows", x, y, len(rows))
				}
				for _, r := range rows {
					if w := ansi.StringWidth(r); w > size[0] {
						t.Errorf("a row is %d columns wide: %q", w, r)
					}
				}
			}
		}
	}
}

func TestPickerKeys(t *testing.T) {
	t.Parallel()
	p := newPicker(aList())
	p.rows(newScene(painter{}, 80, ""), 80, 23)
	press := func(keys ...tea.KeyPressMsg) (chosen int, done bool) {
		for _, k := range keys {
			chosen, done = p.key(k)
		}
		return chosen, done
	}
	key := func(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code} }
	for _, tt := range []struct {
		name string
		keys []tea.KeyPressMsg
		want int
	}{
		{"at first", nil, 1},
		{"up", []tea.KeyPressMsg{key(tea.KeyUp), key(tea.KeyUp)}, 0},
		{"down", []tea.KeyPressMsg{key(tea.KeyDown)}, 1},
		{"end", []tea.KeyPressMsg{key(tea.KeyEnd), key(tea.KeyDown)}, 60},
		{"home", []tea.KeyPressMsg{key(tea.KeyHome)}, 0},
		{"a page", []tea.KeyPressMsg{key(tea.KeyPgDown)}, 13},
		{"a query", []tea.KeyPressMsg{{Code: '7', Text: "7"}, {Code: '7', Text: "7"}, {Code: tea.KeyBackspace}}, 7},
		{"without it", []tea.KeyPressMsg{{Code: 'u', Mod: tea.ModCtrl}}, 0},
	} {
		if press(tt.keys...); p.chosen() != tt.want {
			t.Errorf("%s: item %d, want %d", tt.name, p.chosen(), tt.want)
		}
	}
	if chosen, done := press(key(tea.KeyEnter)); chosen != 0 || !done {
		t.Errorf("Enter: %d, %v", chosen, done)
	}
	press(tea.KeyPressMsg{Code: 'Z', Text: "ZZZ"})
	if chosen, done := press(key(tea.KeyEnter)); chosen != -1 || done {
		t.Errorf("Enter with no match: %d, %v", chosen, done)
	}
	if chosen, done := press(key(tea.KeyEscape)); chosen != -1 || !done {
		t.Errorf("Esc: %d, %v", chosen, done)
	}
}
