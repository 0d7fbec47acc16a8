package skills_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/skills"
)

// call is a conversation with a tool call.
func call(args string) []model.Message {
	return []model.Message{{Role: model.RoleAssistant, Parts: model.Parts{model.ToolCall{ID: "1", Name: "any", Args: args}}}}
}

// TestPaths checks which files of inputs and calls are recognized. It uses a
// skill with Paths whose trigger is in every input.
func TestPaths(t *testing.T) {
	t.Parallel()
	const web = "web/**/*.{ts,tsx}, *.css"
	for _, tt := range []struct {
		name, paths, say string
		past             []model.Message
		want             bool
	}{
		{"nothing named", web, "", nil, false},
		{"a path", web, "in web/ui/app.tsx", nil, true},
		{"a path in punctuation", web, "see (`web/app.ts`).", nil, true},
		{"with a line number", web, "web/app.ts:12: error", nil, true},
		{"an absolute path", web, "/work/web/app.ts", nil, true},
		{"with a dot", web, "./web/app.ts", nil, true},
		{"from Windows", web, `web\ui\app.tsx`, nil, true},
		{"the second file", web, "go.mod web/app.ts", nil, true},
		{"a new file", web, "make web/new.ts", nil, true},
		{"another folder", web, "api/web/app.ts", nil, false},
		{"another extension", web, "web/app.tsv", nil, false},
		{"outside", web, "/elsewhere/web/app.ts", nil, false},
		{"a parent folder", web, "../web/app.ts", nil, false},
		{"a glob without a slash matches only at the top", web, "web/main.css", nil, false},
		{"a file at the top", web, "main.css", nil, true},
		{"with a period", web, "main.css.", nil, true},
		{"a bare name of a missing file", web, "gone.css", nil, false},
		{"a URL", web, "https://example.test/web/app.ts", nil, false},
		{"a name with a dot", "**/*.js", "with Node.js", nil, false},
		{"alternatives with a slash", "client/**", "client/server", nil, false},
		{"an existing folder", "src/", "look at src/lib", nil, true},
		{"all of a folder", "/src/", "src/a/b.c", nil, true},
		{"case", "**/*.md", "docs/README.MD", nil, false},
		{"read_file", web, "", call(`{"file_path": "web/app.ts"}`), true},
		{"read_many_files", web, "", call(`{"paths": ["go.mod", "web/app.ts"]}`), true},
		{"a pattern is not a file", web, "", call(`{"paths": ["web/**/*.ts"]}`), false},
		{"apply_patch", web, "", call(`{"patch": "*** Begin Patch\n*** Update File: web/app.ts\n@@\n-a\n+b\n*** End Patch"}`), true},
		{"content of a patch", web, "", call(`{"patch": "*** Begin Patch\n*** Add File: a.txt\n+web/app.ts\n*** End Patch"}`), false},
		{"shell", web, "", call(`{"command": "sed -n 1,9p web/app.ts"}`), true},
		{"content of a file", web, "", call(`{"file_path": "a.txt", "content": "web/app.ts"}`), false},
		{"arguments of another type", web, "", call(`{"file_path": 1, "paths": "x", "command": ["cat", "web/app.ts"]}`), false},
		{"no arguments", web, "", call("{"), false},
		{"in an earlier input", web, "", []model.Message{{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "open web/app.ts"}}}}, true},
		{"attached to an earlier input", web, "", []model.Message{{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "<file path=\"web/app.ts\">\nx\n</file>"}}}}, true},
		{"inside an attached file", web, "", []model.Message{{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "<file path=\"a.txt\">\nweb/app.ts\n</file>"}}}}, false},
		{"in a context block", web, "", []model.Message{{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "<context source=\"x\" trusted=true>\nweb/app.ts\n</context>"}}}}, false},
		{"in a model's text", web, "", []model.Message{{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: "web/app.ts"}}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			write(t, dir, map[string]string{"skills/ui/SKILL.md": skillText("ui", "How the interface is built.", fmt.Sprintf("triggers: {keywords: [house style]}\npaths: %q\n", tt.paths), "Rounded corners.")})
			source := skills.NewSource(skills.SourceOptions{
				Library:      homeLibrary(dir),
				Conversation: func() []model.Message { return tt.past },
				Exists: func(_ context.Context, path string) bool {
					return slices.Contains([]string{"main.css", "src/lib"}, path)
				},
			})
			req := core.ContextRequest{Session: core.SessionInfo{Dir: "/work"}, Input: core.TextInput("Mind the house style " + tt.say).Content}
			blocks, err := source.Context(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got := sources(blocks) == "skill ui"; got != tt.want || !got && len(blocks) > 0 {
				t.Errorf("blocks %q, want the skill: %v", sources(blocks), tt.want)
			}
		})
	}
}

// TestPathsCandidate checks what happens to skills with Paths, with and without
// a matching file.
func TestPathsCandidate(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	const about = "paths: ['**/*.go']\n"
	write(t, dir, map[string]string{
		"skills/errors/SKILL.md": skillText("errors", "Wraps errors as they are wrapped here.", about, "Wrap them."),
		"skills/naming/SKILL.md": skillText("naming", "Names things as they are named here.", about+"triggers: {keywords: [name things]}\n", "Name them."),
		"skills/poems/SKILL.md":  skillText("poems", "Writes poems about errors.", "", "Rhyme."),
	})
	k := newConversation(t, dir)
	list := func(blocks []core.Block) string {
		if sources(blocks) != "skills" {
			return sources(blocks)
		}
		return blocks[0].Text
	}
	if got := list(k.send("Wraps errors as they are wrapped here, and name things")); !strings.Contains(got, "poems") || strings.Contains(got, "errors:") || strings.Contains(got, "naming") {
		t.Errorf("without a file: %s", got)
	}
	res := k.source.Match(t.Context(), core.ContextRequest{Input: core.TextInput("name things").Content})
	if len(res.HeldBack) != 1 || res.HeldBack[0].HeldBack != "no file in the conversation matches its paths: **/*.go" || len(res.Activated) != 0 {
		t.Errorf("held %+v", res.HeldBack)
	}
	for _, m := range res.Shortlist {
		if m.Skill.Name != "poems" {
			t.Errorf("%s is on the shortlist", m.Skill.Name)
		}
	}
	if got := sources(k.send("/naming")); got != "skill naming" {
		t.Errorf("named: %s", got)
	}
	if got := list(k.send("Look at cmd/main.go")); !strings.Contains(got, "- errors: ") || strings.Contains(got, "poems") {
		t.Errorf("with a file: %s", got)
	}
	if got := k.send("and again"); len(got) != 0 {
		t.Errorf("listed again: %s", list(got))
	}
	k.messages = nil // as after compaction: the file is still known
	if got := sources(k.send("name things")); got != "skill naming, skills" {
		t.Errorf("after compaction: %s", got)
	}
	other := newConversation(t, dir)
	if got := list(other.send("Which skills do you have?")); !strings.Contains(got, "errors: ") || !strings.Contains(got, "naming") {
		t.Errorf("asked for the skills: %s", got)
	}
}

// TestPathsOfProjects checks that a project's globs are relative to the folder
// that contains its skills, not to the working directory.
func TestPathsOfProjects(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	text := func(name string) string {
		return skillText(name, "Of "+name+".", "triggers: {keywords: [house style]}\npaths: web/*.ts\n", "x")
	}
	write(t, dir, map[string]string{".git/HEAD": "", ".agent/skills/top/SKILL.md": text("top"), "web/.claude/skills/inner/SKILL.md": text("inner")})
	work := filepath.Join(dir, "web")
	for say, want := range map[string]string{"app.ts": "skill top", "web/app.ts": "skill inner", "../web/app.ts": "skill top", filepath.Join(work, "app.ts"): "skill top", "../app.ts": ""} {
		source := skills.NewSource(skills.SourceOptions{
			Library: skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Dir: work, Trusted: true})}),
			Exists:  func(context.Context, string) bool { return true },
		})
		req := core.ContextRequest{Session: core.SessionInfo{Dir: work}, Input: core.TextInput("house style of " + say).Content}
		if blocks, err := source.Context(t.Context(), req); err != nil || sources(blocks) != want {
			t.Errorf("%s: %q, %v; want %q", say, sources(blocks), err, want)
		}
	}
}
