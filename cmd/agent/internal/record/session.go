package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/creack/pty"
	"golang.org/x/tools/txtar"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// recordSession returns a picture of an interactive session: a plan, a
// permission request, the review of an edit, and passing tests.
func recordSession(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "agent-record-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &session{binary: filepath.Join(dir, "agent"), home: filepath.Join(dir, "home"), workspace: filepath.Join(dir, "slug")}
	// Without the VCS stamp the picture is the same at every commit.
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", s.binary, "./cmd/agent")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	url, stop, err := modeltest.NewChat(sessionTurns(s.workspace)...).Start()
	if err != nil {
		return nil, err
	}
	defer stop()
	rows, err := s.run(ctx, url)
	if err != nil {
		return nil, err
	}
	lines := []line{{{text: "$ agent", fill: blue}}}
	for _, cells := range rows {
		l := styled(cells)
		for i := range l {
			l[i].text = strings.ReplaceAll(l[i].text, s.workspace, "~/slug")
		}
		lines = append(lines, l)
	}
	for len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return picture("an interactive session of agent, with a scripted model: a plan, a permission request, the review of an edit, and a passing test", lines), nil
}

// sessionTurns are the answers of the model.
func sessionTurns(workspace string) []modeltest.Turn {
	n := 0
	call := func(name string, args map[string]any) modeltest.Call {
		n++
		text, _ := json.Marshal(args) // strings and lists of them
		return modeltest.Call{ID: fmt.Sprintf("call_%d", n), Name: name, Args: []string{string(text)}}
	}
	plan := func(statuses ...string) modeltest.Call {
		var steps []map[string]string
		for i, step := range []string{"Read the script and its test", "Run the test to see it fail", "Repair it", "Run the test again"} {
			steps = append(steps, map[string]string{"step": step, "status": statuses[i]})
		}
		return call("update_plan", map[string]any{"plan": steps})
	}
	file := func(name string) string { return filepath.Join(workspace, name) }
	test := map[string]any{"command": "sh slug_test.sh"}
	const done, now, later = "completed", "in_progress", "pending"
	return []modeltest.Turn{
		{Text: []string{"I'll read ", "the script first."}, Calls: []modeltest.Call{
			plan(now, later, later, later),
			call("read_file", map[string]any{"file_path": file("slug.sh")}),
			call("read_file", map[string]any{"file_path": file("slug_test.sh")}),
		}, Usage: modeltest.Usage{Prompt: 1900, Completion: 120}},
		{Calls: []modeltest.Call{call("shell", test)}, Usage: modeltest.Usage{Prompt: 2400, Completion: 40}},
		{
			Text: []string{"`tr` replaces every space; with `-s` it makes one dash of a run, ", "and `sed` drops those at the ends."},
			Calls: []modeltest.Call{call("edit_file", map[string]any{
				"file_path":  file("slug.sh"),
				"old_string": "tr ' ' '-'",
				"new_string": "tr -s ' ' '-' | sed 's/^-//; s/-$//'",
			})},
			Usage: modeltest.Usage{Prompt: 2700, Completion: 150},
		},
		{Calls: []modeltest.Call{plan(done, done, done, now), call("shell", test)}, Usage: modeltest.Usage{Prompt: 3000, Completion: 90}},
		{Text: []string{"The test **passes**. ", "`slug.sh` made a dash of every single space; ", "it now takes a run of spaces for one separator."}, Usage: modeltest.Usage{Prompt: 3200, Completion: 60}},
	}
}

// session is an agent with its own home and workspace.
type session struct {
	binary, home, workspace string
}

// prepare creates the workspace, the same as in the demo.
func (s *session) prepare() error {
	archive, err := txtar.ParseFile(filepath.Join("cmd", "agent", "internal", "cmd", "demo", "files", "workspace.txtar"))
	if err != nil {
		return err
	}
	for _, d := range []string{s.home, s.workspace} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(s.workspace, f.Name), f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run plays the user, and returns the terminal's lines before it quits. The review of
// the edit, which its answer replaces, is among them.
func (s *session) run(ctx context.Context, url string) (rows [][]vt.Cell, err error) {
	const height = 60
	cmd := exec.CommandContext(ctx, s.binary, "--provider", "local", "--model", "scripted", "--set", "providers.local.baseUrl="+url)
	cmd.Dir = s.workspace
	cmd.Env = append(os.Environ(), "HOME="+s.home, "TERM=xterm-256color", "COLORTERM=truecolor", "COLORFGBG=15;0", "AGENT_HOME=", "NO_COLOR=", "CI=")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: height})
	if err != nil {
		return nil, err
	}
	screen := vt.NewLive(columns, height)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(screen, master) }) // an error is the end of the program
	defer func() {
		ended := cmd.Wait()
		_ = master.Close()
		reading.Wait()
		if err == nil && ended != nil {
			err = fmt.Errorf("agent: %w", ended)
		}
	}()
	var review [][]vt.Cell
	for _, step := range []struct{ see, keys string }{
		{"/help", "The test fails. Please repair the script.\r"},
		{"Run `sh slug_test.sh", "s"},
		{"view in full", "y"},
		{"one separator.", ""},
		{"tool rounds", ""},
	} {
		if err := screen.Wait(ctx, step.see); err != nil {
			_ = cmd.Process.Kill()
			return nil, err
		}
		if step.keys == "y" {
			screen.See(func(v *vt.Terminal) { review = between(linesOf(v), "? Edit slug.sh?", "press a key") })
		}
		if _, err := master.WriteString(step.keys); err != nil {
			return nil, err
		}
	}
	screen.See(func(v *vt.Terminal) { rows = linesOf(v) })
	if at := lineWith(rows, "? Edit slug.sh? → yes, once"); at >= 0 {
		rows = slices.Insert(rows, at, append(review, nil)...)
	}
	_, err = master.WriteString("/quit\r")
	return rows, err
}

// linesOf returns the lines as they are now.
func linesOf(v *vt.Terminal) [][]vt.Cell {
	lines := slices.Clone(v.Lines())
	for i, cells := range lines {
		lines[i] = slices.Clone(cells)
	}
	return lines
}

// lineWith returns the first line with a text, or -1.
func lineWith(lines [][]vt.Cell, text string) int {
	return slices.IndexFunc(lines, func(cells []vt.Cell) bool {
		var b strings.Builder
		for _, c := range cells {
			b.WriteString(c.Text)
		}
		return strings.Contains(b.String(), text)
	})
}

// between returns the lines from one with a text to the next with another.
func between(lines [][]vt.Cell, first, last string) [][]vt.Cell {
	from := lineWith(lines, first)
	if from < 0 {
		return nil
	}
	return lines[from : from+lineWith(lines[from:], last)+1]
}
