package plugintest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/sdk"
)

// SamplesFile is the name of the file in a plugin's folder with its samples.
const SamplesFile = "samples.json"

// Samples is the content of the file; docs/plugins.md describes it.
type Samples struct {
	Settings map[string]any `json:"settings"`
	Samples  []Sample       `json:"samples"`
}

// Sample is something that a plugin can be asked to do, and what is expected of it. It
// has either a tool, a command, a context source or a hook.
type Sample struct {
	Tool    string `json:"tool"`
	Command string `json:"command"`
	Context string `json:"context"`
	Hook    string `json:"hook"`

	Args      json.RawMessage                  `json:"args"`    // of a tool; a string for a command
	Input     string                           `json:"input"`   // of the user, for a context source
	Event     json.RawMessage                  `json:"event"`   // for a hook
	Answers   map[string]any                   `json:"answers"` // to forms, by field
	Decline   bool                             `json:"decline"` // answer no, and no form
	Completes *string                          `json:"model"`   // what the model answers
	Model     func(sdk.Prompt) (string, error) `json:"-"`       // answers as the model
	MaxTokens int                              `json:"maxTokens"`

	Code      sdk.Code        `json:"code"`     // of a failure; empty = success
	Text      *string         `json:"text"`     // of the result
	Contains  string          `json:"contains"` // part of the text
	Result    json.RawMessage `json:"result"`   // structured
	Prompt    bool            `json:"prompt"`   // of a command: the text is for the model
	Questions []string        `json:"questions"`
	Blocks    bool            `json:"blocks"`  // runs until it is cancelled
	Changes   bool            `json:"changes"` // the call changes the tools of a dynamic plugin
}

// contextTokens is what a context source may add if a sample does not say.
const contextTokens = 1000

// ReadSamples reads a file of samples.
func ReadSamples(file string) (Samples, error) {
	var list Samples
	data, err := os.ReadFile(file)
	if err != nil {
		return list, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return list, fmt.Errorf("%s: %w", file, err)
	}
	for i := range list.Samples {
		if err := list.Samples[i].complete(); err != nil {
			return list, fmt.Errorf("%s: sample %d: %w", file, i+1, err)
		}
	}
	return list, nil
}

func (s *Sample) complete() error {
	named := slices.DeleteFunc([]string{s.Tool, s.Command, s.Context, s.Hook}, func(n string) bool { return n == "" })
	if len(named) != 1 {
		return errors.New("expected one of tool, command, context and hook")
	}
	if s.Completes != nil {
		s.Model = func(sdk.Prompt) (string, error) { return *s.Completes, nil }
	}
	if s.MaxTokens == 0 {
		s.MaxTokens = contextTokens
	}
	return nil
}

// label names the sample for people.
func (s *Sample) label() string {
	kind, name, data := "tool", s.Tool, string(s.Args)
	switch {
	case s.Command != "":
		kind, name = "command", s.Command
	case s.Context != "":
		kind, name, data = "context", s.Context, s.Input
	case s.Hook != "":
		kind, name, data = "hook", s.Hook, string(s.Event)
	}
	return strings.TrimSpace(kind + " " + name + " " + short(data, 60))
}

// short returns the beginning of a text in one line.
func short(text string, limit int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}

// compare returns how a result differs from what is expected.
func (s *Sample) compare(res Result) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case res.Code != s.Code:
		add("code %q, want %q; the text: %s", res.Code, s.Code, short(res.Text, 300))
	case s.Text != nil && res.Text != *s.Text:
		add("text %q, want %q", short(res.Text, 300), short(*s.Text, 300))
	case !strings.Contains(res.Text, s.Contains):
		add("text %q, want one with %q", short(res.Text, 300), s.Contains)
	}
	if len(s.Result) > 0 && !sameJSON(res.Structured, s.Result) {
		add("result %s, want %s", short(string(res.Structured), 300), short(string(s.Result), 300))
	}
	if s.Command != "" && res.Code == "" && res.Prompt != s.Prompt {
		add("prompt is %t, want %t", res.Prompt, s.Prompt)
	}
	if s.Questions != nil && !slices.Equal(res.Questions, s.Questions) {
		add("questions %q, want %q", res.Questions, s.Questions)
	}
	return errors.Join(errs...)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) == 0 {
		a = json.RawMessage("null")
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
