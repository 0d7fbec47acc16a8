package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/model"
)

// cmdCopy copies the last answer, or its last code block.
func (c *chat) cmdCopy(_ context.Context, args string) (tui.Result, error) {
	text, what := lastAnswer(c.session.Messages()), "answer"
	switch args {
	case "":
	case "code":
		text, what = lastCode(text), "code block"
	default:
		return tui.Result{}, fmt.Errorf("/copy takes only \"code\", not %q", args)
	}
	if text == "" {
		return tui.Result{}, errors.New("there is no " + what + " to copy")
	}
	if !c.asker.Copying() {
		return tui.Result{}, errors.New("only a terminal with cursor movement has a clipboard")
	}
	lines := display.Plural(strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, "line")
	return tui.Result{Copy: text, Text: fmt.Sprintf("Copied the last %s, %s, if the terminal allows it (OSC 52).", what, lines)}, nil
}

// lastAnswer returns the text of the model's last answer.
func lastAnswer(messages []model.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == model.RoleAssistant && strings.TrimSpace(m.Parts.Text()) != "" {
			return display.Printable(m.Parts.Text())
		}
	}
	return ""
}

// lastCode returns the last fenced code block of a text.
func lastCode(text string) string {
	var last, block []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence, block = trimmed[:3], nil
		case fence != "" && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "":
			fence, last = "", block
		case fence != "":
			block = append(block, line)
		}
	}
	return strings.Join(last, "\n")
}
