package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
)

// maxText is how much of a hook's text is used, in characters.
const maxText = 10_000

// reply is what a handler said.
type reply struct {
	out  []byte
	err  string // the standard error of a command
	code int
	ran  bool   // a command ran to its end
	env  string // what it wrote to CLAUDE_ENV_FILE
}

// output is the JSON of a hook, in Claude Code's and in Gemini CLI's form.
type output struct {
	Continue      *bool    `json:"continue"`
	StopReason    string   `json:"stopReason"`
	SystemMessage string   `json:"systemMessage"`
	Decision      string   `json:"decision"`
	Reason        string   `json:"reason"`
	Specific      specific `json:"hookSpecificOutput"`
}

type specific struct {
	PermissionDecision string `json:"permissionDecision"`
	PermissionReason   string `json:"permissionDecisionReason"`
	Decision           struct {
		Behavior     string          `json:"behavior"`
		UpdatedInput json.RawMessage `json:"updatedInput"`
		Message      string          `json:"message"`
		Interrupt    bool            `json:"interrupt"`
	} `json:"decision"`
	UpdatedInput   json.RawMessage `json:"updatedInput"`
	ToolInput      json.RawMessage `json:"tool_input"` // Gemini CLI
	Context        string          `json:"additionalContext"`
	UpdatedOutput  json.RawMessage `json:"updatedToolOutput"`
	UpdatedMCP     json.RawMessage `json:"updatedMCPToolOutput"`
	InitialMessage string          `json:"initialUserMessage"`
}

// Result is what one hook came to.
type Result struct {
	Definition Definition
	Code       int // of a command; -1 if it did not run to its end
	Ran        bool
	Err        error // why it failed
	DurationMS int64

	// Decides says that the hook decided; then Verdict does. For events that are not
	// about tool calls, Deny is a block.
	Decides bool
	Verdict core.Verdict
	Reason  string
	// Stop ends the processing of the input.
	Stop       bool
	StopReason string
	Context    string // for the model
	Message    string // for the user
	Input      json.RawMessage
	Output     json.RawMessage // replaces the result of the call
	// Variables are the names of those that a SessionStart hook sets for the commands
	// of the session.
	Variables []string

	initial   string
	variables []string // NAME=value
}

// read fills in the result from what the handler said.
func (r *Result) read(event Event, rep reply) {
	r.Code, r.Ran = rep.code, rep.ran
	text := strings.TrimSpace(string(bytes.ToValidUTF8(rep.out, []byte("\uFFFD"))))
	switch {
	case strings.HasPrefix(text, "{"):
		var o output
		if err := decode(event, text, &o); err != nil {
			r.Err = fmt.Errorf("its output is not the JSON of a hook: %w", err)
		} else {
			r.Err = r.take(event, &o)
		}
	case text == "":
	case event.Guards():
		r.Err = fmt.Errorf("its output is not JSON: %q", clip(text, 100))
	case event == SessionStart || event == UserPromptSubmit || event == SubagentStart:
		r.Context = clip(text, maxText)
	}
	why := strings.TrimSpace(rep.err)
	switch {
	case rep.code == 2:
		r.Err = nil
		r.deny(why, "the hook blocks it (exit code 2)")
	case rep.code != 0 && (!r.Decides || r.Verdict != core.Deny):
		r.Err = fmt.Errorf("exit code %d: %s", rep.code, clip(why, 500))
	}
	if r.Err != nil && event.Guards() {
		r.fail()
	}
}

// decode reads the JSON of a hook. One that does not guard may first say, on a line of
// JSON, that it works in the background, and report further things after its answer.
func decode(event Event, text string, o *output) error {
	if event.Guards() {
		return json.Unmarshal([]byte(text), o)
	}
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var next struct {
			output
			Async bool `json:"async"`
		}
		switch err := d.Decode(&next); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !next.Async:
			*o = next.output
			return nil
		}
	}
}

func (r *Result) deny(why, otherwise string) {
	r.Decides, r.Verdict = true, core.Deny
	if why = clip(why, maxText); why == "" {
		why = r.Reason
	}
	if r.Reason = why; r.Reason == "" {
		r.Reason = otherwise
	}
}

// fail makes the failure of a guard a denial, unless its definition loosens that.
func (r *Result) fail() {
	if r.Definition.Handler.OnError == "allow" {
		r.Decides, r.Input = false, nil
		return
	}
	r.Decides, r.Verdict = true, core.Deny
	r.Reason = fmt.Sprintf("the hook %q failed: %v", clip(r.Definition.Title(), 200), r.Err)
}

// take reads the JSON of a hook.
func (r *Result) take(event Event, o *output) error {
	r.Message, r.Context, r.initial = clip(o.SystemMessage, maxText), clip(o.Specific.Context, maxText), clip(o.Specific.InitialMessage, maxText)
	if o.Continue != nil && !*o.Continue {
		r.Stop, r.StopReason = true, clip(o.StopReason, maxText)
	}
	decision, reason := o.Decision, o.Reason
	switch event {
	case PreToolUse:
		if d := o.Specific.PermissionDecision; d != "" {
			decision, reason = d, o.Specific.PermissionReason
		}
		r.Input = first(o.Specific.UpdatedInput, o.Specific.ToolInput)
	case PermissionRequest:
		if d := o.Specific.Decision; d.Behavior != "" {
			decision, reason, r.Input = d.Behavior, d.Message, d.UpdatedInput
			r.Stop = r.Stop || d.Interrupt
		}
	case PostToolUse:
		r.Output = first(o.Specific.UpdatedMCP, o.Specific.UpdatedOutput)
	}
	r.Reason = clip(reason, maxText)
	return r.decide(event, decision)
}

// decide takes the word of a hook's decision.
func (r *Result) decide(event Event, word string) error {
	verdicts := map[string]core.Verdict{"deny": core.Deny, "block": core.Deny, "allow": core.Allow, "approve": core.Allow}
	if event == PreToolUse {
		verdicts["ask"] = core.Ask
	}
	judged := r.Definition.Handler.Type == KindPrompt
	if word == "" || word == "defer" && event == PreToolUse || word == "ask" && event != PreToolUse && judged {
		return nil
	}
	verdict, known := verdicts[word]
	if !known {
		return fmt.Errorf("its decision is %q: expected allow, deny, ask or block", clip(word, 100))
	}
	if judged && verdict == core.Allow {
		return nil // a model judges only against
	}
	r.Decides, r.Verdict = true, verdict
	if verdict == core.Deny && r.Reason == "" {
		r.Reason = cmp.Or(r.Message, "the hook blocks it")
	}
	return nil
}

func first(a, b json.RawMessage) json.RawMessage {
	if len(a) > 0 && string(a) != "null" {
		return a
	}
	if string(b) == "null" {
		return nil
	}
	return b
}

// clip shortens a text to so many characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// Outcome is what all hooks of an event came to.
type Outcome struct {
	Results []Result
	// Decided says that a hook decided: deny wins over ask, and ask over allow. Then
	// By is the hook.
	Decided bool
	Verdict core.Verdict
	Reason  string
	By      string
	Stop    bool // the processing of the input must end, for the reason
	Context []string
	Input   json.RawMessage // the changed arguments, in our names
	Output  json.RawMessage
	Initial string // what a SessionStart hook wants submitted
}

// add adds a result.
func (o *Outcome) add(r Result) {
	o.Results = append(o.Results, r)
	if r.Decides && (!o.Decided || r.Verdict < o.Verdict) {
		o.Decided, o.Verdict, o.Reason, o.By = true, r.Verdict, r.Reason, r.Definition.Title()
	}
	if r.Stop && !o.Stop {
		o.Stop = true
		if o.Reason == "" {
			o.Reason = r.StopReason
		}
	}
	if r.Context != "" {
		o.Context = append(o.Context, r.Context)
	}
	if r.Input != nil {
		o.Input = r.Input
	}
	if r.Output != nil {
		o.Output = r.Output
	}
	if r.initial != "" {
		o.Initial = r.initial
	}
}

// Blocked reports whether a hook denies or blocks.
func (o *Outcome) Blocked() bool { return o.Decided && o.Verdict == core.Deny }

// BlockedError is the error of an input that a hook refuses.
type BlockedError struct{ Reason, Hook string }

// Error implements error.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("the hook %q refuses the input: %s", clip(e.Hook, 200), e.Reason)
}

// ErrBroken is wrapped by the failure of a guard that cannot run.
var errBroken = errors.New("its definition is broken")
