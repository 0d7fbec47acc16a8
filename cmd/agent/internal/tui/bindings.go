package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// action is what a key does. A binding stands for the action's own key.
type action struct{ name, key, what string }

// actions are what keys can be bound to.
func actions() []action {
	return []action{
		{"newline", "alt+enter", "begin a new line"},
		{"edit-queued", "alt+up", "edit the last queued message"},
		{"history-back", "up", "the line above, or the message before"},
		{"history-forward", "down", "the line below, or the message after"},
		{"history-search", "ctrl+r", "search the history"},
		{"complete", "tab", "complete commands and @files"},
		{"commands", "ctrl+k", "search the commands, in an empty input box; otherwise delete to the end of the line"},
		{"editor", "ctrl+g", "edit the message in $VISUAL or $EDITOR"},
		{"paste-image", "ctrl+v", "paste the image in the clipboard"},
		{"undo", "ctrl+_", "undo a change in the input box"},
		{"yank", "ctrl+y", "insert what was deleted last"},
		{"line-start", "ctrl+a", "go to the start of the line"},
		{"line-end", "ctrl+e", "go to the end of the line"},
		{"word-back", "alt+b", "go back a word"},
		{"word-forward", "alt+f", "go forward a word"},
		{"delete-word-back", "ctrl+w", "delete the word before the cursor"},
		{"delete-word", "alt+d", "delete the word after the cursor"},
		{"delete-to-start", "ctrl+u", "delete to the start of the line"},
		{"mode", "shift+tab", "next permission mode"},
		{"expand", "ctrl+o", "show the last truncated output, diff or reasoning in full"},
		{"transcript", "ctrl+t", "show the conversation in full"},
		{"stop", "esc", "stop the agent after the current step"},
		{"quit", "ctrl+d", "quit, if the input box is empty"},
		{"redraw", "ctrl+l", "redraw"},
		{"suspend", "ctrl+z", "suspend"},
	}
}

// noAction is the binding of a key that does nothing.
const noAction = "none"

// Keys are key bindings of the user.
type Keys struct{ to map[string]string } // from keys to names of actions, commands or noAction

// ParseKeys returns the bindings of keys, such as "ctrl+x" or "f5", to actions, slash
// commands or "none". The error names the first binding that is invalid.
func ParseKeys(bindings map[string]string) (Keys, error) {
	keys := Keys{to: map[string]string{}}
	var names []string
	for _, a := range actions() {
		names = append(names, a.name)
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		to := bindings[name]
		k, err := parseKey(name)
		if err != nil {
			return Keys{}, fmt.Errorf("key %q: %w", name, err)
		}
		switch {
		case strings.HasPrefix(to, "/") && len(to) > 1, to == noAction, slices.Contains(names, to):
		case jsonpos.Nearest(to, names) != "":
			return Keys{}, fmt.Errorf("key %q: unknown action %q; did you mean %q?", name, to, jsonpos.Nearest(to, names))
		default:
			return Keys{}, fmt.Errorf("key %q: unknown action %q: expected a /command, none, or one of %s", name, to, strings.Join(names, ", "))
		}
		if was, ok := keys.to[k.String()]; ok {
			return Keys{}, fmt.Errorf("key %q is bound twice, to %s and %s", k.String(), was, to)
		}
		keys.to[k.String()] = to
	}
	return keys, nil
}

// namedKeys are the keys that are no characters.
func namedKeys() map[string]rune {
	keys := map[string]rune{
		"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "space": tea.KeySpace, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
		"insert": tea.KeyInsert, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	for i := range 12 {
		keys[fmt.Sprintf("f%d", i+1)] = tea.KeyF1 + rune(i)
	}
	return keys
}

// keyNamed returns the key with a name such as ctrl+alt+x.
func keyNamed(name string) (k tea.KeyPressMsg, err error) {
	parts := strings.Split(strings.ToLower(name), "+")
	base := parts[len(parts)-1]
	for _, p := range parts[:len(parts)-1] {
		mod, ok := map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[p]
		if !ok {
			return k, fmt.Errorf("unknown modifier %q: expected ctrl, alt or shift", p)
		}
		k.Mod |= mod
	}
	code, named := namedKeys()[base]
	switch r := []rune(base); {
	case named:
		k.Code = code
	case len(r) == 1 && k.Mod&(tea.ModCtrl|tea.ModAlt) == 0:
		return k, errors.New("a character is typed: add ctrl or alt")
	case len(r) == 1 && k.Mod&tea.ModShift != 0:
		return k, errors.New("terminals do not tell shift from the character: leave it out")
	case len(r) == 1:
		k.Code = r[0]
	default:
		return k, fmt.Errorf("unknown key %q: expected a character, or one of %s", base, strings.Join(slices.Sorted(maps.Keys(namedKeys())), ", "))
	}
	return k, nil
}

// parseKey is keyNamed for a key that can be bound.
func parseKey(name string) (tea.KeyPressMsg, error) {
	k, err := keyNamed(name)
	if err != nil {
		return k, err
	}
	switch k.String() {
	case "enter", "esc", "ctrl+c", "space", "backspace":
		return k, fmt.Errorf("%s cannot be bound", k.String())
	case "ctrl+m", "ctrl+i", "ctrl+[":
		return k, fmt.Errorf("terminals do not tell it from %s", map[string]string{"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+[": "esc"}[k.String()])
	}
	return k, nil
}

// bound returns the key that a key stands for. It runs the command of a binding, and
// reports whether that was all.
func (l *lineScreen) bound(msg tea.KeyPressMsg) (key tea.KeyPressMsg, done bool) {
	to, ok := l.Keys.to[msg.String()]
	switch {
	case !ok:
		return msg, false
	case to == noAction:
		return msg, true
	case strings.HasPrefix(to, "/"):
		if l.pager == nil && l.picking() == nil && l.dialog == nil && l.steps == nil {
			l.enter(to)
		}
		return msg, true
	}
	for _, a := range actions() {
		if a.name == to {
			return a.press(), false
		}
	}
	return msg, false
}

// press returns the action's own key.
func (a action) press() tea.KeyPressMsg {
	k, _ := keyNamed(a.key) // a test parses all
	return k
}

// cmdKeys lists the actions with their keys.
func (h *host) cmdKeys(context.Context, string) (Result, error) {
	var b strings.Builder
	b.WriteString("| action | keys | |\n|---|---|---|\n")
	for _, a := range actions() {
		var keys []string
		if _, taken := h.Keys.to[a.press().String()]; !taken {
			keys = append(keys, a.key)
		}
		for _, k := range slices.Sorted(maps.Keys(h.Keys.to)) {
			if h.Keys.to[k] == a.name {
				keys = append(keys, k)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.name, strings.Join(keys, ", "), a.what)
	}
	for _, k := range slices.Sorted(maps.Keys(h.Keys.to)) {
		if to := h.Keys.to[k]; to == noAction || strings.HasPrefix(to, "/") {
			fmt.Fprintf(&b, "| `%s` | %s | |\n", to, k)
		}
	}
	b.WriteString("\n`keys.json` in the agent's directory binds others, such as `{\"f5\": \"/diff\", \"ctrl+x\": \"editor\"}`.\n")
	return Result{Text: b.String()}, nil
}
