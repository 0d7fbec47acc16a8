package tui

import (
	"encoding/json"
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// TestThemesGolden shows code, a diff and a failure at the usual sizes, in both
// themes.
func TestThemesGolden(t *testing.T) {
	t.Parallel()
	diff, _ := json.Marshal("--- a/x.go\n+++ b/x.go\n@@ -1,3 +1,3 @@\n package x\n-func F() string { return \"old\" } // a comment that is rather long, so that it is cut off somewhere\n+func F() string { return \"new\" } // a comment that is rather long, so that it is cut off somewhere\n // end\n")
	for _, size := range sizes {
		for named, bg := range map[string]background{"dark": darkBackground, "light": lightBackground} {
			s := newScene(painter{colors: true, look: &look{theme: newTheme("auto", colorprofile.TrueColor, bg)}}, size[0], "/w")
			for _, e := range []event.Event{
				{Body: event.Message{Content: model.TextParts("# Title\n\nSome `code`, [a link](https://example.org).\n\n" + codeSample())}},
				{Call: "1", Body: event.ToolUse{Name: "edit_file", Args: `{"file_path":"/w/x.go"}`}},
				{Call: "1", Body: event.ToolResult{Name: "edit_file", Content: model.TextParts("edited"), Meta: map[string]json.RawMessage{"diff": diff}}},
				{Body: event.Error{Code: "NETWORK_ERROR", Message: "no connection"}},
				{Body: event.Warning{Message: "careful"}},
			} {
				s.apply(e)
			}
			lines := s.take()
			checkGolden(t, fmt.Sprintf("theme-%dx%d-%s", size[0], size[1], named), lines)
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("a line is %d columns wide: %q", w, l)
				}
			}
		}
	}
}

// TestThemes: each theme has a colour for each role, in the depth of the terminal.
func TestThemes(t *testing.T) {
	t.Parallel()
	for _, named := range Themes() {
		for _, bg := range []background{unknownBackground, darkBackground, lightBackground} {
			for depth, want := range map[colorprofile.Profile]string{colorprofile.ANSI: "", colorprofile.ANSI256: "8;5;", colorprofile.TrueColor: "8;2;"} {
				th := newTheme(named, depth, bg)
				if named == "ansi" || named == "auto" && bg == unknownBackground {
					want = ""
				}
				for _, role := range []style{red, green, keyword, removedWord, addedLine} {
					if got := th.sgr(role); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "8;") {
						t.Errorf("%s, depth %v, background %v: %s is %q", named, depth, bg, role, got)
					}
				}
			}
		}
	}
	for family, both := range palettes {
		roles := slices.Sorted(maps.Keys(palettes["auto"][0]))
		for _, p := range both {
			if got := slices.Sorted(maps.Keys(p)); !slices.Equal(got, roles) {
				t.Errorf("%s has the roles %v, want %v", family, got, roles)
			}
		}
	}
	if got := newTheme("dark", colorprofile.TrueColor, lightBackground).sgr(bold + ";" + red); got != "1;38;2;248;81;73" {
		t.Errorf("bold red is %q", got)
	}
}

func TestBackgroundOfEnvironment(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]background{
		"15;0": darkBackground, "0;15": lightBackground, "0;default;7": lightBackground, "12;8": darkBackground, "": unknownBackground, "15;default": unknownBackground, "0;99": unknownBackground, "7": unknownBackground,
	} {
		if got := backgroundOf(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// TestBackgroundAnswer: the answer about the background may come at any time.
func TestBackgroundAnswer(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}
	p := painter{colors: true, look: newLook(func(name string) string { return env[name] }, "auto")}
	l := &lineScreen{driver: newDriver(newHost(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker()}), newScene(p, 80, "/w")), screen: &screen{out: &safeBuffer{}, width: 80, height: 24}, editor: newEditor(p, nil), at: -1}
	if got := l.scene.paint(red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("before the answer: %q", got)
	}
	l.editor.set("typed")
	l.Update(tea.BackgroundColorMsg{Color: color.White})
	if got := l.scene.paint(red, "x"); got != "\x1b[38;2;207;34;46mx\x1b[0m" {
		t.Errorf("on white: %q", got)
	}
	l.Update(tea.BackgroundColorMsg{Color: color.Black})
	if got := l.scene.paint(red, "x"); got != "\x1b[38;2;248;81;73mx\x1b[0m" || l.editor.text() != "typed" {
		t.Errorf("on black: %q, %q", got, l.editor.text())
	}
	l.setTheme("ansi")
	if got := l.scene.paint(red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("theme ansi: %q", got)
	}
}
