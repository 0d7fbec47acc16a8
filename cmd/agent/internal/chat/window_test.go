package chat

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

func TestWindowReport(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", 4*n) }
	req := &model.Request{
		System: x(100) + "\n\n<environment>\n" + x(30) + "\n</environment>\n\n<git>\n" + x(20) + "\n</git>\n\n<project_instructions path=\"a\">\n" + x(50) +
			"\n</project_instructions>\n\n<project_instructions path=\"b\">\n" + x(60) + "\n</project_instructions>\n\n" + x(5),
		Tools: []model.ToolDef{{Name: "aaaa", Description: x(40), Schema: []byte(`{"a":1}`)}, {Name: "bbbb"}},
	}
	messages := []model.Message{
		{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: x(10)}, model.Text{Text: "<context source=\"s\" trusted=true>" + x(70)}}},
		{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: x(11)}, model.ToolCall{ID: "1", Name: "shell", Args: x(12)}, model.Reasoning{Text: x(2)}}},
		{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "1", Name: "shell", Content: model.TextParts(x(500))}}},
	}
	got := windowReport(req, messages, 2000, model.Usage{Input: 900, Output: 100, CachedInput: 800})
	for _, want := range []string{
		"| results: shell | 1 | 500 |", "| prompt: project documents | 2 | 126 |", "| prompt: instructions | 1 | 123 |", "| prompt: environment | 1 | 3", "| prompt: repository | 1 | 2",
		"| tools: definitions | 2 | 4", "| your messages | 1 | 10 |", "| added context | 1 | 78 |", "| answers | 1 | 11 |", "| tool calls | 1 | 13 |", "| reasoning | 1 | 2 |",
		"counted 1000 tokens for the last request and answer, 800 of them", "About 50 % of the model's 2000 tokens are used",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if first := strings.Split(got, "\n")[2]; !strings.Contains(first, "results: shell") {
		t.Errorf("the largest is not first: %s", first)
	}
}
