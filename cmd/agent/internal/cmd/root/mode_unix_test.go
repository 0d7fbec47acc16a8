//go:build unix

package root

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInteractiveMode: Shift+Tab, /mode and /permissions switch the permission
// mode, and what it allows.
func TestInteractiveMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: write_file, args: {file_path: one.txt, content: one}}]}, {text: ["First answer."]},
		{calls: [{name: write_file, args: {file_path: two.txt, content: two}}]}, {text: ["Second answer."]}]`)
	if err := os.MkdirAll(filepath.Join(w.workspace, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.workspace, ".git", "HEAD"), []byte("ref: refs/heads/topic/one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal()
	s.answer("· default · topic/one", "\x1b[Z") // Shift+Tab
	s.answer("· accept-edits", "Write one\r")
	s.answer("First answer.", "/permissions read-only\r")
	s.answer("· read-only ·", "Write two\r")
	s.answer("Second answer.", "/mode nonsense\r")
	s.answer("unknown permission mode", "/cost please\r")
	s.answer("takes no arguments", "/mode workspace\r")
	s.answer("needs a trusted directory", "/quit\r")
	s.exits(0)
	if _, err := os.Stat(filepath.Join(w.workspace, "one.txt")); err != nil {
		t.Errorf("mode accept-edits did not write: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.workspace, "two.txt")); err == nil {
		t.Error("mode read-only wrote a file")
	}
}

// TestInteractiveResume: /resume offers the sessions of the directory, without
// those of subagents, and one is found by its prompt.
func TestInteractiveResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: spawn_agent, args: {task: "look around"}}]}, {text: ["Looked."]},
		{text: ["First answer."]}, {text: ["Second answer."]}]`)
	first := w.onTerminal("the first prompt")
	first.answer("1 tool round", "")
	first.idle()
	first.answer("", "/quit\r")
	first.exits(0)
	w.model(`[{text: ["Other answer."]}]`)
	s := w.onTerminal("another prompt")
	s.answer("Other answer.", "/resume\r")
	s.answer("Which session?", "")
	s.answer("  1/1", "")
	s.answer("1 input, 0 files changed", "first\r")
	s.answer("resumed session", "/quit\r")
	s.exits(0)
}
