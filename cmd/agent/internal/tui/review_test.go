package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
)

// sizes are the terminals of the golden files.
var sizes = [][2]int{{80, 24}, {120, 40}, {200, 50}}

// TestReviewGolden draws the question about an edit at the usual sizes.
func TestReviewGolden(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 40 {
		fmt.Fprintf(&before, "line %d of the old file\n", i)
		fmt.Fprintf(&after, "line %d of the new file\n", i)
	}
	whole := Review{
		Changes: []preview.Change{
			{Path: "/w/main.go", At: "/w/main.go", Before: []byte("func main() {\n\trun(1)\n}\n"), After: []byte("func main() {\n\trun(2, \"größer\")\n}\n")},
			{Path: "new.txt", At: "/w/new.txt", After: []byte("first\nsecond \x1b[31mred\n")},
			{Path: "gone.bin", At: "/w/gone.bin", Before: []byte("\x00\x01")},
			{Path: "long.txt", At: "/w/long.txt", Before: []byte(before.String()), After: []byte(after.String())},
		},
		Amend: func([]preview.Change) {}, AcceptEdits: func() error { return nil },
	}
	question := core.Question{
		Kind: core.QuestionPermission, Tool: "edit_file", Title: "Write main.go, new.txt, gone.bin and long.txt?", Detail: "mode default asks before writing files",
		Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceAlways, core.ChoiceDeny}, Offers: []core.Offer{{Rules: []string{"edit_file(./main.go)"}}},
	}
	for _, size := range sizes {
		for name, p := range map[string]painter{"plain": {}, "colors": {colors: true}} {
			l := &lineScreen{driver: newDriver(newHost(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker()}), newScene(p, size[0], "/w")), screen: &screen{out: &safeBuffer{}, width: size[0], height: size[1]}, editor: newEditor(p, nil), at: -1}
			review := whole
			l.dialog = newDialog(&pending{Question: question, review: &review})
			l.syncDialog()
			rows, _, _ := l.region()
			checkGolden(t, fmt.Sprintf("review-%dx%d-%s", size[0], size[1], name), rows)
			if len(rows) >= size[1] {
				t.Errorf("%d rows on a screen of %d", len(rows), size[1])
			}
			for _, r := range rows {
				if w := ansi.StringWidth(r); w > size[0] {
					t.Errorf("a row is %d columns wide: %q", w, r)
				}
			}
			l.reviewTop = 1000
			rows, _, _ = l.region()
			if text := ansi.Strip(strings.Join(rows, "\n")); !strings.Contains(text, "line 39 of the new file") {
				t.Errorf("scrolled to the end, the review does not show it:\n%s", text)
			}
		}
	}
}

func TestMarkChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, after, removed, added string }{
		{"run(1)", "run(2)", "1", "2"},
		{"a := b", "a := b + c", "", " + c"},
		{"größe", "größer", "", "r"},
		{"x := \"é\"", "x := \"è\"", "é", "è"},
		{"one thing", "quite another", "", ""},
	} {
		rows := diffRows("--- a\n+++ b\n@@ -1,1 +1,1 @@\n-" + tt.before + "\n+" + tt.after + "\n")
		if got := rows[0].text[rows[0].from:rows[0].to]; got != tt.removed {
			t.Errorf("of %q %q is marked, want %q", tt.before, got, tt.removed)
		}
		if got := rows[1].text[rows[1].from:rows[1].to]; got != tt.added {
			t.Errorf("of %q %q is marked, want %q", tt.after, got, tt.added)
		}
	}
}

// TestReviewShowsWholeLines: nothing of what is approved is behind the right border,
// neither in the question nor in what v, Ctrl-O and the choice of hunks show.
func TestReviewShowsWholeLines(t *testing.T) {
	t.Parallel()
	long := "\tx := run(" + strings.Repeat("漢字, ", 60) + "theEnd)"
	c := preview.Change{Path: "/w/main.go", At: "/w/main.go", Before: []byte("package main\n"), After: []byte("package main\n" + long + "\n")}
	s := newScene(painter{colors: true}, 40, "/w")
	whole := *s
	whole.full = true
	for name, rows := range map[string][]string{
		"question": s.review(&Review{Changes: []preview.Change{c}}),
		"full":     (&more{text: c.Diff(), diff: true}).lines(s, 40),
		"hunks":    whole.diff(c.Diff(), 0),
	} {
		text := ""
		for _, r := range rows {
			if w := ansi.StringWidth(r); w > 40 {
				t.Errorf("%s: a row is %d columns wide: %q", name, w, r)
			}
			text += strings.TrimSpace(ansi.Strip(r))
		}
		if strings.Count(text, "漢字") != 60 || !strings.HasSuffix(text, "theEnd)") {
			t.Errorf("%s: the line is cut:\n%s", name, strings.Join(rows, "\n"))
		}
	}
}

// TestReviewOnALowScreen: the question, the change and the selected answer are seen
// together where the answers do not all fit.
func TestReviewOnALowScreen(t *testing.T) {
	t.Parallel()
	const width, height = 40, 10
	l := &lineScreen{driver: newDriver(newHost(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker()}), newScene(painter{}, width, "/w")), screen: &screen{out: &safeBuffer{}, width: width, height: height}, editor: newEditor(painter{}, nil), at: -1}
	l.dialog = newDialog(&pending{Question: core.Question{
		Kind: core.QuestionPermission, Title: "Edit a.txt?", Detail: "mode default asks before writing files",
		Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceAlways, core.ChoiceDeny},
		Offers:  []core.Offer{{Rules: []string{"fs-write(/home/user/projects/one/a.txt)"}}, {Rules: []string{"fs-write(/home/user/projects/one/**)"}}},
	}, review: &Review{
		Changes: []preview.Change{{Path: "/w/a.txt", At: "/w/a.txt", Before: []byte("old\n"), After: []byte("new\n")}},
		Amend:   func([]preview.Change) {}, AcceptEdits: func() error { return nil },
	}})
	l.syncDialog()
	for i, o := range l.dialog.options {
		l.selected = i
		rows, _, y := l.region()
		text := strings.Join(rows, "\n")
		label, _, _ := strings.Cut(o.label, ":")
		label = label[:min(len(label), 20)]
		if len(rows) >= height || !strings.Contains(text, "? Edit a.txt?") || !strings.Contains(text, "a.txt · +1 −1") || !strings.HasPrefix(rows[y], "› "+string(o.key)+" "+label) {
			t.Errorf("answer %c, row %d of\n%s", o.key, y, text)
		}
	}
}

// TestReviewStays: the changes are shown while a comment is typed, and again when a
// terminal that was too small for them has room.
func TestReviewStays(t *testing.T) {
	t.Parallel()
	u := newTypist(t)
	u.Asker.Review = func(context.Context, core.Question) *Review {
		return &Review{Changes: []preview.Change{{Path: "a.txt", At: "/w/a.txt", Before: []byte("old\n"), After: []byte("new\n")}}}
	}
	question := permission("Edit a.txt?")
	question.Detail = "mode default asks before writing files"
	u.asks(question)
	u.sized(tea.WindowSizeMsg{Width: 16, Height: 8})
	if text := u.frameText(); strings.Contains(text, "+new") || !strings.Contains(text, "yes, once") {
		t.Fatalf("on a tiny screen:\n%s", text)
	}
	if text := strings.Join(u.scene.take(), " "); !strings.Contains(text, "writing") {
		t.Errorf("the whole question is not in the scrollback: %s", text)
	}
	u.sized(tea.WindowSizeMsg{Width: 80, Height: 24})
	for _, want := range []string{"mode default asks", "-old", "+new", "v view in full"} {
		if text := u.frameText(); !strings.Contains(text, want) {
			t.Errorf("%q is missing after the screen has grown:\n%s", want, text)
		}
	}
	u.press("r")
	u.types("why?", time.Second)
	for _, want := range []string{"-old", "+new", "Reason?", "> why?"} {
		if text := u.frameText(); !strings.Contains(text, want) {
			t.Errorf("%q is missing while the comment is typed:\n%s", want, text)
		}
	}
}
