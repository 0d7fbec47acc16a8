//go:build unix

package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInteractivePlanMode: the model explores, its plan is sent back with a
// comment, edited, and approved; only then are files written.
func TestInteractivePlanMode(t *testing.T) {
	bin := t.TempDir()
	editor := "#!/bin/sh\nprintf '\\n2. Mine\\n' >>\"$1\"\n"
	if err := os.WriteFile(filepath.Join(bin, "vi"), []byte(editor), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	w := newWorld(t, `[
		{calls: [{name: write_file, args: {file_path: early.txt, content: x}}]},
		{calls: [{name: submit_plan, args: {plan: "# Plan\n\n1. Write **a.txt**"}}]},
		{calls: [{name: submit_plan, args: {plan: "# Better\n\n1. Write a.txt first"}}]},
		{calls: [{name: write_file, args: {file_path: a.txt, content: done}}]},
		{text: ["First answer."]}, {text: ["Second answer."]}]`)
	s := w.onTerminal()
	s.answer("· default", "\x1b[Z\x1b[Z") // Shift+Tab
	s.answer("· plan", "Write a.txt\r")
	s.answer("Carry out this plan?", "")
	for _, want := range []string{"approve, and ask before each change (mode default)", "approve, and accept all edits (mode accept-edits)", "1. Write a.txt"} {
		s.answer(want, "")
	}
	s.answer("r send it back, with comments", "")
	s.answer("view in full", "r")
	s.answer("Comments?", "say when\r")
	s.answer("Better", "e")
	s.answer("Mine", "2")
	s.answer("First answer.", "")
	s.answer("· accept-edits", "again\r")
	s.answer("Second answer.", "/quit\r")
	s.exits(0)
	if _, err := os.Stat(filepath.Join(w.workspace, "early.txt")); err == nil {
		t.Error("a file was written in mode plan")
	}
	if data, err := os.ReadFile(filepath.Join(w.workspace, "a.txt")); err != nil || string(data) != "done" {
		t.Errorf("the plan was not carried out: %q, %v", data, err)
	}
	plans, _ := filepath.Glob(filepath.Join(w.home, ".agent", "plans", "*.md"))
	if len(plans) != 1 {
		t.Fatalf("the plans are %q", plans)
	}
	if data, _ := os.ReadFile(plans[0]); !strings.Contains(string(data), "1. Write a.txt first\n2. Mine") {
		t.Errorf("the saved plan is %q", data)
	}
	requests := w.chat.Requests()
	for i, want := range []string{"Plan mode is on", "mode plan denies", "The user sends the plan back: say when", "The user changed it to:", "", ""} {
		if body := string(requests[i].Body); !strings.Contains(body, want) {
			t.Errorf("request %d lacks %q: %s", i, want, body[max(0, len(body)-2000):])
		}
	}
	if body := string(requests[4].Body); strings.Contains(body, `"name":"submit_plan","description"`) {
		t.Error("the tool is offered after the plan was approved")
	}
}
