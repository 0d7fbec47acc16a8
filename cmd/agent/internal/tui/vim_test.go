package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// vimTyped returns the box after keys; "⎋" is Esc.
func vimTyped(text string, keys string) *editor {
	e := newEditor(painter{}, []string{"an earlier message"})
	e.area.SetWidth(20) // so that lines wrap
	e.vim = &vim{}
	e.set(text)
	for _, r := range keys {
		if r == '⎋' {
			e.leaveInsert()
			continue
		}
		e.key(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return e
}

// TestVim checks the text after keys in normal mode, which begins at its first
// character, with a "|" typed at the end to show where the cursor is.
func TestVim(t *testing.T) {
	const line = "one two.three  four"
	for _, tt := range []struct{ text, keys, want string }{
		{line, "dw", "|two.three  four"},
		{line, "2dw", "|.three  four"},
		{line, "d3w", "|three  four"},
		{line, "wdw", "one |.three  four"},
		{line, "WdW", "one |four"},
		{line, "$db", "one two.three  |r"},
		{line, "$bb.", "one two.|three  four"},
		{line, "wcwzzz⎋", "one zz|z.three  four"},
		{line, "wcwzz⎋ww.", "one zz.z|z  four"},
		{line, "e", "on|e two.three  four"},
		{line, "de", "| two.three  four"},
		{line, "ft", "one |two.three  four"},
		{line, "dtt", "|two.three  four"},
		{line, "fo;", "one two.three  f|our"},
		{line, "fo;,", "one tw|o.three  four"},
		{line, "$Fo", "one two.three  f|our"},
		{line, "x3x", "|two.three  four"},
		{line, "wD", "one| "},
		{line, "wCx⎋", "one |x"},
		{line, "~~", "ON|e two.three  four"},
		{line, "3ra", "aa|a two.three  four"},
		{line, "wywP", "one tw|otwo.three  four"},
		{line, "wdiwix⎋", "one |x.three  four"},
		{line, "wdaW", "one |four"},
		{line, "dwu", "|one two.three  four"},
		{line, "0999l", "one two.three  fou|r"},
		{line, "dq", "|one two.three  four"},
		{line, "d⎋x", "|one two.three  four"},
		{`say "hello you" now`, `di"`, `say "|" now`},
		{`say "hello you" now`, `fhca"x⎋`, `say |x now`},
		{"f(a, g(b))", "fbdi(", "f(a, g(|))"},
		{"f(a, g(b))", "fgci(x⎋", "f(|x)"},
		{"a\nb\nc", "jdd", "a\n|c"},
		{"a\nb\nc", "Gdd", "a\n|b"},
		{"a\nb\nc", "2dd", "|c"},
		{"a\nb\nc", "yyjp", "a\nb\n|a\nc"},
		{"a\nb\nc", "Gggx", "|\nb\nc"},
		{"a\nb\nc", "2Gx", "a\n|\nc"},
		{"a\n  b", "jIx⎋", "a\n  |xb"},
		{"a\n  b", "J", "a| b"},
		{"a\nb", "ox⎋", "a\n|x\nb"},
		{"a\nb", "Ox⎋", "|x\na\nb"},
		{"a\nb", "A!⎋", "a|!\nb"},
		{"a very long line that wraps\nnext", "jx", "a very long line that wraps\n|ext"},
		{"", "/help", "/help"},
	} {
		e := vimTyped(tt.text, "⎋gg0"+tt.keys)
		if e.vim.normal {
			e.key(tea.KeyPressMsg{Code: 'i', Text: "i"})
			e.key(tea.KeyPressMsg{Code: '|', Text: "|"})
		}
		if got := e.text(); got != tt.want {
			t.Errorf("%q, %s: %q, want %q", tt.text, tt.keys, got, tt.want)
		}
	}
}

// TestVimHistory: k on the first line goes to the message before, and a message
// that was sent leaves insert mode for the next one.
func TestVimHistory(t *testing.T) {
	e := vimTyped("", "⎋k")
	if e.text() != "an earlier message" || !e.commanding() {
		t.Errorf("%q, %t", e.text(), e.commanding())
	}
	if e.remember(); e.commanding() {
		t.Error("the next message does not begin in insert mode")
	}
}

// TestVimScreen: Esc goes to normal mode before it does anything else, and the status
// line says so.
func TestVimScreen(t *testing.T) {
	u := newTypist(t)
	u.editor.vim = &vim{}
	u.press("a", "b", "esc")
	if text := u.frameText(); !u.editor.commanding() || u.escArmed || !strings.Contains(text, "normal mode") || !strings.Contains(text, "> ab") {
		t.Errorf("after Esc: %s", text)
	}
	u.press("x", "A", "c")
	if got := u.editor.text(); got != "ac" {
		t.Errorf("%q", got)
	}
}
