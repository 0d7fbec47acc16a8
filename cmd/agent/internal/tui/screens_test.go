package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// goldenScreens draws a screen at the usual sizes, in a dark and a light theme.
func goldenScreens(t *testing.T, name string, show func(u *typist)) {
	t.Helper()
	for _, size := range sizes {
		for named, bg := range map[string]background{"dark": darkBackground, "light": lightBackground} {
			u := newTypist(t)
			p := painter{colors: true, look: &look{theme: newTheme("auto", colorprofile.TrueColor, bg)}}
			clock := u.scene.now
			u.scene = newScene(p, size[0], "/w")
			u.scene.now, u.scene.queue = clock, u.Queue
			u.editor = newEditor(p, nil)
			u.screen.width, u.screen.height = size[0], size[1]
			show(u)
			rows := u.frame()
			checkGolden(t, fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], named), rows)
			if len(rows) > size[1] {
				t.Errorf("%s: %d rows on a screen of %d", name, len(rows), size[1])
			}
			for _, r := range rows {
				if w := ansi.StringWidth(r); w > size[0] {
					t.Errorf("%s: a row is %d columns wide: %q", name, w, r)
				}
			}
		}
	}
}

// frame returns what is on the screen, without what is in the scrollback.
func (u *typist) frame() []string {
	if u.pager != nil {
		u.pager.layout(u.screen.width, u.screen.height)
		return u.pager.rows(u.scene.painter)
	}
	rows, _, _ := u.region()
	return rows
}

func (u *typist) frameText() string { return ansi.Strip(strings.Join(u.frame(), "\n")) }

// press presses keys by name.
func (u *typist) press(keys ...string) {
	for _, k := range keys {
		code, ok := map[string]rune{"enter": tea.KeyEnter, "up": tea.KeyUp, "down": tea.KeyDown, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace}[k]
		msg := tea.KeyPressMsg{Code: code}
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		u.Update(msg)
		u.clock = u.clock.Add(time.Second)
	}
}
