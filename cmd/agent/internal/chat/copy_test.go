package chat

import (
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

func TestLastAnswer(t *testing.T) {
	messages := []model.Message{
		{Role: model.RoleAssistant, Parts: model.TextParts("first")},
		{Role: model.RoleAssistant, Parts: model.TextParts("```go\na\n```\nb\n~~~\nc\n```\n\nd\n~~~\nend \x1b[31m")},
		{Role: model.RoleAssistant, Parts: model.Parts{model.ToolCall{ID: "1", Name: "shell"}}},
		{Role: model.RoleUser, Parts: model.TextParts("question")},
	}
	answer := lastAnswer(messages)
	if want := "c\n```\n\nd"; lastCode(answer) != want {
		t.Errorf("code %q, want %q", lastCode(answer), want)
	}
	if lastCode("none") != "" || lastAnswer(nil) != "" {
		t.Error("something of nothing")
	}
}
