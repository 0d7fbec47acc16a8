package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

//go:embed ask_user.md
var askUserDoc string

// Bounds of a question.
const (
	maxOptions  = 8
	maxQuestion = 4_000 // bytes
)

// another is the option to answer in free text.
const another = "something else"

type askUserArgs struct {
	Question string   `json:"question"`
	Options  []string `json:"options,omitempty"`
}

// AskUser returns the tool ask_user, with which the model asks the user a
// question. In non-interactive use the model is told to decide.
func AskUser() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        event.AskTool,
		Description: strings.TrimSpace(askUserDoc),
	}, nil, runAskUser)
}

func runAskUser(ctx context.Context, call *core.Call, in askUserArgs) (core.Result, error) {
	question := strings.TrimSpace(in.Question)
	switch {
	case question == "":
		return invalid("question is empty. Say what you want to know.")
	case len(question) > maxQuestion:
		return invalid("The question is longer than %d characters. Ask in a few sentences.", maxQuestion)
	case len(in.Options) > maxOptions:
		return invalid("There are %d options; at most %d can be offered.", len(in.Options), maxOptions)
	case slices.ContainsFunc(in.Options, func(o string) bool { return strings.TrimSpace(o) == "" }):
		return invalid("An option is empty.")
	}
	answer, err := askFor(ctx, call, question, in.Options)
	if err == nil && len(in.Options) > 0 && answer == another {
		answer, err = askFor(ctx, call, question, nil)
	}
	switch {
	case errors.Is(err, core.ErrNonInteractive):
		return core.Fail(core.CodeLLMAssist, "No user is available (non-interactive). Decide yourself, prefer choices that can be undone, and state your assumptions at the end."), nil
	case err != nil && ctx.Err() != nil:
		return core.Fail(core.CodeCancelled, "The question was withdrawn."), nil
	case err != nil:
		return core.Result{}, err
	case answer == "":
		return core.TextResult("The user did not answer. Continue without an answer, or say why you cannot."), nil
	}
	res := core.TextResult("The user answers: " + answer)
	res.Structured, err = json.Marshal(map[string]string{"answer": answer})
	return res, err
}

// askFor asks with a form of one field. It returns "" if there is no answer.
func askFor(ctx context.Context, call *core.Call, question string, options []string) (string, error) {
	field := map[string]any{"type": "string", "title": "answer"}
	if len(options) > 0 {
		field["enum"] = append(slices.Clone(options), another)
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"answer": field}, "required": []string{"answer"}})
	if err != nil {
		return "", err
	}
	title, detail, _ := strings.Cut(question, "\n")
	a, err := call.Ask(ctx, core.Question{Kind: core.QuestionForm, Title: title, Detail: strings.TrimSpace(detail), Schema: schema})
	if err != nil || len(a.Values) == 0 {
		return "", err
	}
	var values struct{ Answer string }
	if err := json.Unmarshal(a.Values, &values); err != nil {
		return "", fmt.Errorf("invalid answer: %w", err)
	}
	return strings.TrimSpace(values.Answer), nil
}
