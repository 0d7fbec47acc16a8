package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
)

// session calls the tools of a toolset as one session does.
type session struct {
	t     *testing.T
	id    string
	tools map[string]core.Tool
	where core.Environment
}

func newSessions(t *testing.T, opts tools.Options, files map[string]string) func(id string) *session {
	t.Helper()
	list, err := tools.Builtin(opts).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]core.Tool{}
	for _, tool := range list {
		byName[tool.Definition().Name] = tool
	}
	where := env.NewMemory("/w", files)
	return func(id string) *session { return &session{t, id, byName, where} }
}

func (s *session) call(tool string, in args) string {
	s.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	result, err := s.tools[tool].Run(s.t.Context(), &core.Call{Name: tool, Args: raw, Env: s.where, Session: core.SessionInfo{ID: s.id, Dir: "/w"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return model.Parts(result.Content).Text()
}

func (s *session) mustSay(tool string, in args, want string) {
	s.t.Helper()
	if got := s.call(tool, in); !strings.Contains(got, want) {
		s.t.Errorf("%s %v answers %q, want %q", tool, in, got, want)
	}
}

// TestReadBeforeWrite: a session does not overwrite files that it has not read,
// or that have changed since.
func TestReadBeforeWrite(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n", "d/e.txt": "e\n"}
	open := newSessions(t, tools.Options{}, files)
	s, other := open("1"), open("2")
	edit := func(from, to string) args { return args{"file_path": "a.txt", "old_string": from, "new_string": to} }
	const unread, changed = "you have not read it in this session", "it was modified since you read it"

	s.mustSay("edit_file", edit("one", "two"), unread)
	s.mustSay("write_file", args{"file_path": "/w/a.txt", "content": "x"}, unread)
	s.mustSay("apply_patch", patchOf("*** Update File: a.txt\n@@\n-one\n+two\n"), unread)
	s.mustSay("read_file", args{"file_path": "./a.txt", "limit": 1}, "one")
	other.mustSay("edit_file", edit("one", "two"), unread)
	s.mustSay("edit_file", edit("one", "two"), "Edited")
	s.mustSay("edit_file", edit("two", "three"), "Edited") // its own change is known
	s.mustSay("apply_patch", patchOf("*** Update File: a.txt\n@@\n-three\n+four\n"), "M a.txt")

	if err := s.where.Files().Write(context.Background(), "a.txt", strings.NewReader("four\nfive\n"), 0); err != nil {
		t.Fatal(err)
	}
	s.mustSay("edit_file", edit("four", "six"), changed)
	s.mustSay("read_file", args{"file_path": "a.txt"}, "five")
	s.mustSay("edit_file", edit("four", "six"), "Edited")

	// New files need not be read, and are known afterwards.
	s.mustSay("write_file", args{"file_path": "new.txt", "content": "x\n"}, "Created")
	s.mustSay("write_file", args{"file_path": "new.txt", "content": "y\n"}, "Overwrote")
	s.mustSay("apply_patch", patchOf("*** Add File: new2.txt\n+x\n"), "A new2.txt")
	s.mustSay("write_file", args{"file_path": "new2.txt", "content": "y\n"}, "Overwrote")

	// Patterns and moves.
	s.mustSay("read_many_files", args{"paths": []string{"d/*.txt", "b.txt"}}, "=== d/e.txt\n1 | e")
	s.mustSay("write_file", args{"file_path": "d/e.txt", "content": "E\n"}, "Overwrote")
	s.mustSay("apply_patch", patchOf("*** Update File: b.txt\n*** Move to: bb.txt\n"), "R b.txt → bb.txt")
	s.mustSay("write_file", args{"file_path": "bb.txt", "content": "BB\n"}, "Overwrote")
	s.mustSay("apply_patch", patchOf("*** Update File: bb.txt\n*** Move to: c.txt\n"), unread) // replaces it
	s.mustSay("apply_patch", patchOf("*** Add File: c.txt\n+x\n"), unread)
	s.mustSay("apply_patch", patchOf("*** Update File: c.txt\n*** Move to: cc.txt\n"), "R c.txt → cc.txt") // loses nothing
	s.mustSay("write_file", args{"file_path": "cc.txt", "content": "CC\n"}, unread)
	s.mustSay("apply_patch", patchOf("*** Delete File: cc.txt\n"), "D cc.txt")

	// The guard can be turned off.
	free := newSessions(t, tools.Options{Unguarded: true}, files)("1")
	free.mustSay("edit_file", edit("one", "two"), "Edited")
}

func TestReadManyFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.go": "package a\n", "sub/b.go": "package b\n", "sub/c.txt": "c\n", "bin": "\x00\x01\x00", ".gitignore": "gen\n", "gen/x.go": "package gen\n"}
	where := env.NewMemory("/w", files)
	for _, tt := range []struct {
		paths []string
		want  string
	}{
		{[]string{"**/*.go", "sub/c.txt", "a.go"}, "=== a.go\n1 | package a\n=== sub/b.go\n1 | package b\n=== sub/c.txt\n1 | c"},
		{[]string{"sub/*.go"}, "=== sub/b.go\n1 | package b"},
		{[]string{"*.md"}, "No files match."},
	} {
		if _, got := run(t, tools.ReadManyFiles(), where, args{"paths": tt.paths}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.paths, got, tt.want)
		}
	}
	_, got := run(t, tools.ReadManyFiles(), where, args{"paths": []string{"missing.go", "bin", "a.go"}})
	for _, want := range []string{"=== missing.go\nFile not found", "=== bin\n", "not a text file", "=== a.go\n1 | package a"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, bad := range [][]string{{}, {"a[.go"}} {
		if result, text := run(t, tools.ReadManyFiles(), where, args{"paths": bad}); result.Code != core.CodeValidation {
			t.Errorf("%q: (%s) %q", bad, result.Code, text)
		}
	}
}

// answering answers the questions of a call in order.
func answering(answers ...string) (func(context.Context, core.Question) (core.Answer, error), *[]core.Question) {
	var asked []core.Question
	return func(_ context.Context, q core.Question) (core.Answer, error) {
		asked = append(asked, q)
		a := answers[len(asked)-1]
		if a == "" {
			return core.Answer{Choice: core.ChoiceDeny}, nil
		}
		values, err := json.Marshal(map[string]string{"answer": a})
		return core.Answer{Values: values}, err
	}, &asked
}

func TestAskUser(t *testing.T) {
	t.Parallel()
	nonInteractive := func(context.Context, core.Question) (core.Answer, error) {
		return core.Answer{}, core.ErrNonInteractive
	}
	call := func(in string, ask func(context.Context, core.Question) (core.Answer, error)) (core.Result, string) {
		t.Helper()
		result, err := tools.AskUser().Run(t.Context(), &core.Call{Name: "ask_user", Args: json.RawMessage(in), Ask: ask})
		if err != nil {
			t.Fatal(err)
		}
		return result, model.Parts(result.Content).Text()
	}
	ask, asked := answering("the second")
	if _, got := call(`{"question":"Which one?\nThere are two."}`, ask); got != "The user answers: the second" {
		t.Errorf("answered %q", got)
	}
	if q := (*asked)[0]; q.Kind != core.QuestionForm || q.Title != "Which one?" || q.Detail != "There are two." || strings.Contains(string(q.Schema), "enum") {
		t.Errorf("asked %+v", q)
	}
	ask, asked = answering("something else", "neither")
	if _, got := call(`{"question":"Which?","options":["a","b"]}`, ask); got != "The user answers: neither" {
		t.Errorf("answered %q", got)
	}
	if len(*asked) != 2 || !strings.Contains(string((*asked)[0].Schema), `["a","b","something else"]`) {
		t.Errorf("asked %+v", *asked)
	}
	ask, _ = answering("")
	if _, got := call(`{"question":"Which?"}`, ask); !strings.Contains(got, "did not answer") {
		t.Errorf("answered %q", got)
	}
	if result, got := call(`{"question":"Which?"}`, nonInteractive); result.Code != core.CodeLLMAssist || !strings.Contains(got, "Decide yourself") {
		t.Errorf("answered (%s) %q", result.Code, got)
	}
	for _, bad := range []string{`{"question":" "}`, `{"question":"x","options":["a"," "]}`, `{"question":"x","options":["1","2","3","4","5","6","7","8","9"]}`, `{"question":"` + strings.Repeat("x", 5000) + `"}`} {
		if result, got := call(bad, nonInteractive); result.Code != core.CodeValidation {
			t.Errorf("%.40s: (%s) %q", bad, result.Code, got)
		}
	}
}
