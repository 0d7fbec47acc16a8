package compaction_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/internal/compaction"
	"github.com/seed-009c0928/agent/core/model"
)

func text(role model.Role, s string) model.Message {
	return model.Message{Role: role, Parts: model.TextParts(s)}
}

func conversation() []model.Message {
	return []model.Message{
		text(model.RoleUser, "Repair it."),
		{Role: model.RoleAssistant, Parts: model.Parts{
			model.Reasoning{Text: "secret thoughts"}, model.Text{Text: "I look."}, model.ToolCall{ID: "1", Name: "shell", Args: `{"command":"make"}`},
		}},
		{Role: model.RoleTool, Parts: model.Parts{
			model.ToolResult{CallID: "1", Name: "shell", Content: model.TextParts(strings.Repeat("é", 4_000)), IsError: true},
		}},
		text(model.RoleAssistant, "Done."),
		text(model.RoleUser, "And now?"),
		text(model.RoleAssistant, "All is well."),
	}
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	got := compaction.Transcript(conversation())
	for _, want := range []string{
		"[user]\nRepair it.", "[assistant]\nI look.", "[call of shell]\n{\"command\":\"make\"}", "[failure of shell]\néé", "bytes left out …]\né", "[assistant]\nAll is well.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret thoughts") || len(got) > 3_000 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, or thoughts, or half a character:\n%s", len(got), got)
	}
}

func TestRequestIsBounded(t *testing.T) {
	t.Parallel()
	var long []model.Message
	for i := range 1_000 {
		long = append(long, text(model.RoleUser, fmt.Sprintf("message %d. %s", i, strings.Repeat("x", 1_000))))
	}
	req := compaction.Request("m", long, 5_000, " keep the tests ")
	body := req.Messages[0].Parts.Text()
	if len(body) > 21_000 || !strings.Contains(body, "message 0.") || !strings.Contains(body, "message 999.") || !strings.HasSuffix(body, "The user adds: keep the tests") {
		t.Errorf("%d bytes: %.200s … %s", len(body), body, body[len(body)-200:])
	}
	if req.Model != "m" || req.System == "" || len(req.Tools) != 0 {
		t.Errorf("request %+v", req)
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	m := conversation()
	for tokens, want := range map[int]int{0: 0, 3: 1, 5: 2, 6: 3, 500: 3, 2_001 + 10: 3, 1_000_000: 3} {
		if got := compaction.Keep(m, tokens); got != want {
			t.Errorf("Keep(%d) = %d, want %d", tokens, got, want)
		}
	}
	for kept := range len(m) {
		if n := compaction.Keep(m[:kept], 1_000_000); n > 0 && m[kept-n].Role == model.RoleTool {
			t.Errorf("%d messages: the rest begins with results", kept)
		}
	}
	if got := compaction.Keep(m[:1], 0); got != 1 {
		t.Errorf("of one message %d are kept", got)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	skill := "<context source=\"skill review\" trusted=true>\nReview so.\n</context>"
	dropped := []model.Message{
		{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "hi"}, model.Text{Text: skill}, model.Text{Text: "<context source=\"web\" trusted=false>\nx\n</context>"}}},
		{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: skill}}},
		{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: "<context source=\"me\" trusted=true>\nI am one\n</context>"}}},
	}
	got := compaction.Summary("\n- Task: x\n", "", dropped, 1000)
	if len(got) != 2 || !strings.Contains(got[:1].Text(), "- Task: x\n</summary>") || got[1] != (model.Text{Text: skill}) {
		t.Errorf("summary %+v", got)
	}
}

// TestSummaryWithinItsRoom: of what goes along, the latest does; what does not
// fit is left out, and a smaller one behind it still goes.
func TestSummaryWithinItsRoom(t *testing.T) {
	t.Parallel()
	block := func(name string, size int) model.Text {
		return model.Text{Text: "<context source=\"skill " + name + "\" trusted=true>\n" + strings.Repeat("word ", size) + "\n</context>"}
	}
	small, large, last := block("small", 10), block("large", 4000), block("last", 100)
	dropped := []model.Message{
		{Role: model.RoleUser, Parts: model.Parts{small}},
		{Role: model.RoleUser, Parts: model.Parts{large}},
		{Role: model.RoleUser, Parts: model.Parts{last}},
	}
	got := compaction.Summary("notes", "", dropped, 500)
	if len(got) != 3 || got[1] != small || got[2] != last {
		t.Errorf("kept %d parts, want the notes, the small one and the last", len(got))
	}
}
