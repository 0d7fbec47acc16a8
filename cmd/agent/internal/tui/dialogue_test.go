package tui

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
)

// TestDialogueGolden draws the screens of the dialogue that no other test draws.
func TestDialogueGolden(t *testing.T) {
	t.Parallel()
	goldenScreens(t, "first-model", func(u *typist) {
		u.steps = func(context.Context, func(string)) error { return nil }
		go func() {
			_, _ = u.Asker.Choose(context.Background(), List{Title: "Which model?", Items: []Item{
				{"openai/gpt-5-mini", "OPENAI_API_KEY is set"},
				{"ollama/qwen3:8b", "at http://localhost:11434/v1"},
				{"Another provider", "enter its key or address: agent providers setup"},
				{"Not now", "agent demo shows a session without a model"},
			}})
		}()
		eventually(t, func() string { return "no list" }, func() bool { return u.Asker.front() != nil })
		u.Update(askMsg{})
		u.Update(sayMsg("**agent** works with a model of your choice."))
	})
	goldenScreens(t, "first-trust", func(u *typist) {
		u.steps = func(context.Context, func(string)) error { return nil }
		u.asks(core.Question{Kind: core.QuestionConfirm, Title: "Do you trust /w?", Detail: "Yes: its settings are used, and the agent writes files in it, and runs commands in a sandbox, without asking each time.\nNo: nothing of that is used, and the agent asks before it writes or runs anything.\n\nIt has .agent/settings.json"})
	})
	goldenScreens(t, "plan-review", func(u *typist) {
		u.Asker.Review = func(context.Context, core.Question) *Review {
			return &Review{Markdown: true, Changes: []preview.Change{{Path: "plan.md", At: "plan.md", After: []byte("# Plan\n\n1. Write **c.txt**\n2. Run `make test`\n\n```go\nfunc main() {}\n```\n")}}}
		}
		u.asks(core.Question{
			Kind: core.QuestionConfirm, Title: "Carry out this plan?", Detail: "~/.agent/plans/2026-01-01.md",
			Choices: []core.Choice{"yes, in mode default", "yes, in mode accept-edits", core.ChoiceDeny},
		})
	})
	goldenScreens(t, "demo", func(u *typist) {
		u.Status = func() Status { return Status{Model: "a script", Mode: "default"} }
		u.asks(core.Question{
			Kind: core.QuestionPermission, Title: "Call web_fetch of plugin web: http://127.0.0.1:1/slugs?", Detail: "mode default asks before using the network",
			Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny}, Offers: []core.Offer{{Rules: []string{"network(127.0.0.1)"}}},
		})
	})
	goldenScreens(t, "question-command", func(u *typist) { // a line longer than the screen
		u.asks(permission("Run `" + strings.Repeat("printf '%s' 日本語 && ", 20) + "make install`?"))
	})
	goldenScreens(t, "question-choice", func(u *typist) {
		u.asks(core.Question{Kind: core.QuestionForm, Title: "Which colour?", Schema: json.RawMessage(
			`{"type":"object","properties":{"answer":{"type":"string","title":"answer","enum":["red","green","` + strings.Repeat("a long answer ", 12) + `"]}},"required":["answer"]}`)})
	})
	goldenScreens(t, "files", func(u *typist) {
		u.editor.set("see @ma")
		u.Update(suggestMsg{"@ma", []string{"@main.go", "@\"my main.txt\"", "@docs/markdown.md"}})
	})
	goldenScreens(t, "history-search", func(u *typist) {
		u.editor.history = []string{"first message", "second message", "third"}
		u.Update(tea.KeyPressMsg{Code: 'r', Mod: tea.ModCtrl})
		u.press("m", "e", "s")
	})
	goldenScreens(t, "commands", func(u *typist) { u.openPalette() })
	status := Status{
		Model: "anthropic/claude-sonnet-4-5", Mode: "accept-edits", Effort: "high", Branch: "topic/a-long-name-of-a-branch", Dirty: true,
		Used: 42, Tokens: 123456, Cost: 1.2345, Priced: true,
	}
	goldenScreens(t, "status", func(u *typist) {
		u.Status = func() Status { return status }
		withWork(u)
		u.editor.set("a message")
	})
	goldenScreens(t, "status-busy", func(u *typist) {
		u.Status = func() Status { return status }
		u.work = work{busy: true, since: u.clock.Add(-83 * time.Second)}
	})
	goldenScreens(t, "status-vim", func(u *typist) {
		u.Status = func() Status { return status }
		u.editor.vim = &vim{normal: true}
	})
}

// TestDiffGolden draws the diff that a command shows.
func TestDiffGolden(t *testing.T) {
	t.Parallel()
	goldenScreens(t, "diff", func(u *typist) {
		u.scene.markdown("**#1** Change it\n\n- changed main.go (+1 -1)\n\n```diff\n--- a/main.go\n+++ b/main.go\n@@ -1,3 +1,3 @@\n package main\n \n-func old() int { return 1 }\n+func renamed() int { return 1 }\n```\n")
		lines := u.scene.take()
		u.openPager(&pager{title: "diff", render: func(int) []string { return lines }})
	})
}
