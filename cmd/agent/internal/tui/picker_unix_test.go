//go:build unix

package tui

import (
	"context"
	"strings"
	"testing"
)

// choosing returns commands of which one lets the user choose.
func choosing(asker *Asker, l List) func() []Command {
	return func() []Command {
		return []Command{
			{Name: "choose", Summary: "choose one", Run: func(ctx context.Context, _ string) (Result, error) {
				at, err := asker.Choose(ctx, l)
				if err != nil || at < 0 {
					return Result{Text: "took nothing"}, err
				}
				return Result{Text: "chosen: " + strings.ReplaceAll(l.Items[at].Label, "/", " of ")}, nil
			}},
			{Name: "other", Args: "NAME", Summary: "needs a name"},
		}
	}
}

// TestLinePick chooses from a list with keys, searches it, and opens the palette.
func TestLinePick(t *testing.T) {
	t.Parallel()
	asker := NewAsker()
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: newFakeSession(), Asker: asker, Commands: choosing(asker, aList())})
	c.wait(">")
	c.send("/choose\r")
	c.wait("? Which model?  61/61", "› vendor/model-1 ", "Its price.")
	c.send(keyDown + keyDown)
	c.wait("› vendor/model-3 ", "Model 3")
	c.send("mod 42")
	c.wait("6/61", "/ mod 42", "› vendor/model-42")
	c.send("\r")
	c.wait("chosen: vendor of model-42")
	c.send("\x0b") // Ctrl-K
	c.wait("? Commands", "/choose", "/other", "/help", "/quit")
	c.send("oth\r")
	c.wait("> /other")
	c.send(keyCtrlC + "\x0bchoo\r")
	c.wait("? Which model?")
	c.send(keyEsc)
	c.wait("took nothing")
	c.gone("Which model?")
	r.quit(c)
}

// TestPlainPick chooses line by line: by number, and by a part of the label.
func TestPlainPick(t *testing.T) {
	t.Parallel()
	asker := NewAsker()
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: newFakeSession(), Asker: asker, Commands: choosing(asker, aList()), Env: testEnv(map[string]string{"TERM": "dumb"})})
	c.wait(">")
	if !asker.Listing() || asker.Copying() {
		t.Errorf("line by line, lists are asked: %t, and there is a clipboard: %t", asker.Listing(), asker.Copying())
	}
	for _, tt := range []struct{ enter, want string }{
		{"7", "chosen: vendor of model-6"}, {"model-17", "chosen: vendor of model-17"}, {"model-4\rvendor/model-4", "chosen: vendor of model-4"}, {"nothing\r", "took nothing"},
	} {
		before := c.length()
		c.send("/choose\r")
		eventually(t, c.screen, func() bool { return strings.Contains(c.since(before), "Number or name (an empty line: none):") })
		c.send(tt.enter + "\r")
		c.wait(tt.want)
	}
	if all := c.all(); !strings.Contains(all, "11 items have that in their name") && !strings.Contains(all, "no item has that name") || !strings.Contains(all, "  … and 31 more") {
		t.Errorf("the screen is\n%s", all)
	}
	c.send("/quit\r")
	if next, err := r.wait(t); err != nil || next.Kind != NextQuit {
		t.Errorf("Run = %+v, %v", next, err)
	}
}
