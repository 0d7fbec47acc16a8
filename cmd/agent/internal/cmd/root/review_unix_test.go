//go:build unix

package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInteractiveReview: before a file is written, the user sees the change, can
// edit it, reject it with a comment, and allow all edits.
func TestInteractiveReview(t *testing.T) {
	bin := t.TempDir()
	editor := "#!/bin/sh\nsed s/TWO/mine/ \"$1\" >\"$1.new\" && mv \"$1.new\" \"$1\"\n"
	if err := os.WriteFile(filepath.Join(bin, "vi"), []byte(editor), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	w := newWorld(t, `[
		{calls: [{name: read_file, args: {file_path: a.txt}}]},
		{calls: [{name: edit_file, args: {file_path: a.txt, old_string: two, new_string: TWO}}]},
		{calls: [{name: write_file, args: {file_path: b.txt, content: "new file"}}]},
		{calls: [{name: write_file, args: {file_path: c.txt, content: "see"}}]},
		{calls: [{name: write_file, args: {file_path: d.txt, content: "dee"}}]},
		{text: ["First answer."]}]`)
	file := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(w.workspace, name))
		return string(data)
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "a.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("Change it")
	s.answer("edit first", "")
	for _, want := range []string{"+1 −1", "-two", "+TWO", "view in full"} {
		if !strings.Contains(s.text(), want) {
			t.Errorf("%q is not in the review:\n%s", want, s.text())
		}
	}
	if file("a.txt") != "one\ntwo\nthree\n" {
		t.Error("the file was changed before it was approved")
	}
	s.answer("", "v")
	s.answer("q closes", "q")
	s.answer("", "e")
	s.answer("+mine", "y")
	s.answer("new file, 1 line", "r")
	s.answer("Reason?", "not this one\r")
	s.answer("c.txt", "m")
	s.answer("First answer.", "")
	s.answer("· accept-edits", "/quit\r")
	s.exits(0)
	if got := file("a.txt"); got != "one\nmine\nthree\n" {
		t.Errorf("a.txt is %q, want the user's version", got)
	}
	if file("b.txt") != "" || file("c.txt") != "see" || file("d.txt") != "dee" {
		t.Errorf("b.txt %q, c.txt %q, d.txt %q; want only the last two written", file("b.txt"), file("c.txt"), file("d.txt"))
	}
	last := string(w.chat.Requests()[5].Body)
	for _, want := range []string{"The user changed this edit before approving it", "+mine", "Permission denied: not this one"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model does not learn %q: %s", want, last[max(0, len(last)-3000):])
		}
	}
}

// TestInteractiveFailingEdit: the question about an edit that would fail says why.
func TestInteractiveFailingEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: edit_file, args: {file_path: a.txt, old_string: two, new_string: TWO}}]},
		{text: ["First answer."]}]`)
	if err := os.WriteFile(filepath.Join(w.workspace, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("Change it")
	s.answer("The call would fail; a yes tells the model why: a.txt was not changed: you have not", "n")
	s.answer("First answer.", "/quit\r")
	s.exits(0)
}
