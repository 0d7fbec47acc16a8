package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// Source is where hooks come from. Only Name is required.
type Source struct {
	// Name is shown to the user: "user settings", "plugin lint" …
	Name string
	// File has the hooks; for messages.
	File string
	// Gemini says that the file has Gemini CLI's form. A file with its names of events
	// is recognised without.
	Gemini bool
	// Vars replace ${NAME} in commands, arguments, addresses and headers, and are
	// variables of the commands: CLAUDE_PLUGIN_ROOT, user_config.KEY …
	// Names that are not identifiers are only replaced.
	Vars map[string]string
	// Read and Write are directories that commands may read and write, besides the
	// workspace.
	Read, Write []string
	// Agent is the agent type of a subagent that the hooks belong to. Its Stop hooks
	// are SubagentStop hooks, and hooks that are not about tool calls run for that type
	// only; those about tool calls also for subagents that it starts.
	Agent string
}

// Event is a point in a session at which hooks run.
type Event string

// The events.
const (
	SessionStart       Event = "SessionStart"
	SessionEnd         Event = "SessionEnd"
	UserPromptSubmit   Event = "UserPromptSubmit"
	BeforeModel        Event = "BeforeModel"
	PreToolUse         Event = "PreToolUse"
	PermissionRequest  Event = "PermissionRequest"
	PermissionDenied   Event = "PermissionDenied"
	PostToolUse        Event = "PostToolUse"
	PostToolUseFailure Event = "PostToolUseFailure"
	SubagentStart      Event = "SubagentStart"
	SubagentStop       Event = "SubagentStop"
	PreCompact         Event = "PreCompact"
	PostCompact        Event = "PostCompact"
	Stop               Event = "Stop"
	StopFailure        Event = "StopFailure"
	Notification       Event = "Notification"
	FileChanged        Event = "FileChanged"
)

// Events lists the events in the order in which a session has them.
func Events() []Event {
	return []Event{
		SessionStart, UserPromptSubmit, BeforeModel, PreToolUse, PermissionRequest, PermissionDenied, PostToolUse, PostToolUseFailure,
		FileChanged, Notification, SubagentStart, SubagentStop, PreCompact, PostCompact, Stop, StopFailure, SessionEnd,
	}
}

// unusable are events of other programs that have no meaning here.
var unusable = []string{
	"Setup", "UserPromptExpansion", "PostToolBatch", "MessageDisplay", "TaskCreated", "TaskCompleted", "TeammateIdle", "InstructionsLoaded",
	"ConfigChange", "CwdChanged", "DirectoryAdded", "WorktreeCreate", "WorktreeRemove", "Elicitation", "ElicitationResult", "Interrupt",
	"AfterModel", "BeforeToolSelection",
}

// geminiEvents are the names of Gemini CLI's events that differ.
var geminiEvents = map[string]Event{
	"BeforeTool": PreToolUse, "AfterTool": PostToolUse, "BeforeAgent": UserPromptSubmit, "AfterAgent": Stop, "PreCompress": PreCompact,
}

// Guards reports whether the event's hooks decide on a tool call: if they fail, it is
// denied.
func (e Event) Guards() bool { return e == PreToolUse || e == PermissionRequest }

// aboutTool reports whether the event is about a tool call.
func (e Event) aboutTool() bool {
	switch e {
	case PreToolUse, PermissionRequest, PermissionDenied, PostToolUse, PostToolUseFailure:
		return true
	}
	return false
}

// Kind is the kind of a handler.
type Kind string

// The kinds.
const (
	KindCommand Kind = "command"
	KindHTTP    Kind = "http"
	KindMCPTool Kind = "mcp_tool"
	KindPlugin  Kind = "plugin"
	KindPrompt  Kind = "prompt"
)

// Handler is what a hook does, in Claude Code's form. Further members of other
// programs are ignored.
type Handler struct {
	Type Kind `json:"type"`
	// If is a permission rule: the hook runs only for calls that it matches.
	If string `json:"if,omitempty"`
	// Timeout is in seconds; 0 is the default of the kind and the event.
	Timeout float64 `json:"timeout,omitempty"`
	// Once runs the hook once in a session.
	Once          bool   `json:"once,omitempty"`
	StatusMessage string `json:"statusMessage,omitempty"`
	Name          string `json:"name,omitempty"`
	// OnError is "allow" for a guard whose failure does not deny the call.
	OnError string `json:"onError,omitempty"`

	// A command runs in the shell, or without one if there are Args.
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Shell   string   `json:"shell,omitempty"`
	Async   bool     `json:"async,omitempty"`
	Rewake  bool     `json:"asyncRewake,omitempty"` // async; exit code 2 tells the model
	// RewakeMessage is what the model is told before what the hook found.
	RewakeMessage string `json:"rewakeMessage,omitempty"`
	// Hosts can be reached from the sandbox of the command.
	Hosts []string `json:"hosts,omitempty"`

	URL            string            `json:"url,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	AllowedEnvVars []string          `json:"allowedEnvVars,omitempty"`

	Server string          `json:"server,omitempty"` // MCP server, or plugin
	Tool   string          `json:"tool,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"` // with ${path.in.the.input}

	Prompt string `json:"prompt,omitempty"`
	Model  string `json:"model,omitempty"`
}

// Definition is one hook.
type Definition struct {
	Source  Source
	Event   Event
	Matcher string
	Handler Handler

	gemini  bool
	matches func(names []string) bool
	broken  error // why it cannot run
	code    Code
}

// Code is a hook that is code instead of what a Handler says: it gets the JSON of an
// event, and returns that of a hook.
type Code func(ctx context.Context, session core.SessionInfo, input json.RawMessage) (json.RawMessage, error)

// Define returns a hook that is code. The handler's Server and Tool name it, and
// identical ones run once; its If, Timeout, Once and OnError apply.
func Define(src Source, event Event, matcher string, h Handler, code Code) Definition {
	h.Type = KindPlugin
	d := Definition{Source: src, Event: event, Matcher: matcher, Handler: h, code: code}
	d.compile()
	if d.broken == nil {
		d.broken = h.check(event)
	}
	return d
}

// Problem is a part of a source that cannot be used, or not as it was meant.
type Problem struct {
	Source Source
	Event  string // as it is written; may be empty
	Text   string
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Event == "" {
		return fmt.Sprintf("%s: %s", p.Source, p.Text)
	}
	return fmt.Sprintf("%s: %s: %s", p.Source, p.Event, p.Text)
}

// String returns the name of the source, with its file.
func (s Source) String() string {
	if s.File == "" {
		return s.Name
	}
	return fmt.Sprintf("%s (%s)", s.Name, s.File)
}

type group struct {
	Matcher    string            `json:"matcher"`
	Sequential bool              `json:"sequential"`
	Hooks      []json.RawMessage `json:"hooks"`
}

// Parse reads the hooks of a source: {"hooks": {EVENT: [{"matcher": …, "hooks":
// [HANDLER]}]}}, or the object of the events alone. The error is that of JSON in
// another form. A hook that cannot be used is a problem; a broken guard is a
// definition as well, which denies.
func Parse(src Source, data []byte) ([]Definition, []Problem, error) {
	events, err := readEvents(data)
	if err != nil {
		return nil, nil, fmt.Errorf("hooks of %s: %w", src, err)
	}
	gemini := src.Gemini
	for name := range events {
		gemini = gemini || geminiEvents[name] != ""
	}
	var defs []Definition
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(events)) {
		note := func(format string, args ...any) {
			problems = append(problems, Problem{src, name, fmt.Sprintf(format, args...)})
		}
		event := Event(name)
		if is, ok := geminiEvents[name]; ok {
			event = is
		}
		switch {
		case slices.Contains(unusable, name):
			note("not used: this program has no such event")
			continue
		case !slices.Contains(Events(), event):
			note("unknown event; the events are %v", Events())
			continue
		}
		if src.Agent != "" && event == Stop {
			event = SubagentStop
		}
		var groups []group
		if err := json.Unmarshal(events[name], &groups); err != nil {
			return nil, nil, fmt.Errorf("hooks of %s: %s: expected [{\"matcher\": …, \"hooks\": […]}]: %w", src, name, err)
		}
		for _, g := range groups {
			for _, raw := range g.Hooks {
				d := define(src, event, g.Matcher, raw, gemini)
				if d.broken != nil {
					note("%v", d.broken)
				} else if text := d.ignored(); text != "" {
					note("%s", text)
				}
				if d.broken == nil || d.Event.Guards() {
					defs = append(defs, d)
				}
			}
		}
	}
	return defs, problems, nil
}

// readEvents returns the object of the events.
func readEvents(data []byte) (map[string]json.RawMessage, error) {
	var file struct {
		Hooks map[string]json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if file.Hooks != nil {
		return file.Hooks, nil
	}
	var events map[string]json.RawMessage
	if err := json.Unmarshal(data, &events); err != nil {
		return nil, err
	}
	for name, value := range events {
		if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) && !slices.Contains(Events(), Event(name)) { // description, version …
			delete(events, name)
		}
	}
	return events, nil
}

// define returns a definition, broken if it cannot run.
func define(src Source, event Event, matcher string, raw json.RawMessage, gemini bool) Definition {
	d := Definition{Source: src, Event: event, Matcher: matcher, gemini: gemini}
	if err := json.Unmarshal(raw, &d.Handler); err != nil {
		d.matches = func([]string) bool { return true }
		d.broken = fmt.Errorf("the handler cannot be read: %w", err)
		return d
	}
	if d.Handler.Type == "" && d.Handler.Command != "" {
		d.Handler.Type = KindCommand
	}
	if d.Handler.Type == "agent" { // without tools
		d.Handler.Type = KindPrompt
	}
	if gemini {
		d.Handler.Timeout /= 1000 // milliseconds
	}
	if d.compile(); d.broken == nil {
		d.broken = d.Handler.check(event)
	}
	return d
}

// CheckRules finds wrong rules in "if", with check. What is left are the hooks that can be
// used, as with [Parse]: a guard with a wrong rule denies.
func CheckRules(defs []Definition, check func(rule string) error) (left []Definition, problems []Problem) {
	for _, d := range defs {
		if err := d.checkRule(check); err != nil {
			text := err.Error()
			if d.broken = err; d.Event.Guards() {
				text += "; until it is corrected, the hook denies every call that its matcher matches"
			}
			problems = append(problems, Problem{d.Source, string(d.Event), text})
			if !d.Event.Guards() {
				continue
			}
		}
		left = append(left, d)
	}
	return left, problems
}

func (d *Definition) checkRule(check func(rule string) error) error {
	if d.Handler.If == "" || d.broken != nil || !d.Event.aboutTool() {
		return nil
	}
	if err := check(d.Handler.If); err != nil {
		return fmt.Errorf("the rule of \"if\" is invalid: %w", err)
	}
	return nil
}

// compile reads the matcher.
func (d *Definition) compile() {
	d.matches = func([]string) bool { return true }
	if !subject(d.Event) {
		return
	}
	is, err := compileMatcher(d.Matcher)
	if err != nil {
		d.broken = fmt.Errorf("the matcher %q is invalid: %w", d.Matcher, err)
		return
	}
	d.matches = is
}

// subject reports whether the event's hooks have matchers.
func subject(e Event) bool {
	switch e {
	case UserPromptSubmit, BeforeModel, Stop:
		return false
	}
	return true
}

// check returns what is missing or wrong.
func (h *Handler) check(event Event) error {
	missing := func(name string) error { return fmt.Errorf("a hook of type %s needs %q", h.Type, name) }
	switch {
	case h.Timeout < 0:
		return errors.New(`"timeout" is negative`)
	case h.OnError != "" && h.OnError != "allow" && h.OnError != "deny":
		return fmt.Errorf(`"onError" is %q: expected "deny" or "allow"`, h.OnError)
	}
	switch h.Type {
	case KindCommand:
		if strings.TrimSpace(h.Command) == "" {
			return missing("command")
		}
	case KindHTTP:
		return checkURL(h.URL)
	case KindMCPTool, KindPlugin:
		if h.Server == "" || h.Tool == "" {
			return missing("server\" and \"tool")
		}
	case KindPrompt:
		switch {
		case h.Prompt == "":
			return missing("prompt")
		case event != PreToolUse && event != PermissionRequest && event != UserPromptSubmit && event != Stop && event != SubagentStop:
			return fmt.Errorf("a hook of type prompt can only judge tool calls, prompts and the end of the work")
		}
	default:
		return fmt.Errorf("unknown type %q: expected command, http, mcp_tool, plugin or prompt", h.Type)
	}
	return nil
}

// ignored says which members of a definition that works have no effect.
func (d *Definition) ignored() string {
	var names []string
	if d.Handler.If != "" && !d.Event.aboutTool() {
		names = append(names, "if")
	}
	if (d.Handler.Async || d.Handler.Rewake) && d.Event.Guards() {
		names = append(names, "async")
	}
	if d.Handler.Shell != "" && d.Handler.Shell != "bash" {
		names = append(names, "shell")
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has no effect here", strings.Join(names, " and "))
}

// Title names the hook for users: its name, command, address or tool.
func (d *Definition) Title() string {
	h := &d.Handler
	switch {
	case h.Name != "":
		return h.Name
	case h.Type == KindCommand:
		return strings.Join(append([]string{h.Command}, h.Args...), " ")
	case h.Type == KindHTTP:
		return h.URL
	case h.Type == KindPrompt:
		return "prompt: " + h.Prompt
	}
	return fmt.Sprintf("%s %s/%s", h.Type, h.Server, h.Tool)
}

// key is the same for identical hooks, which run once.
func (d *Definition) key() string {
	text, _ := json.Marshal(d.Handler) // of strings and numbers
	vars, _ := json.Marshal(d.Source.Vars)
	return string(text) + string(vars)
}

// timeout returns how long the hook may take.
func (d *Definition) timeout() time.Duration {
	seconds := d.Handler.Timeout
	switch {
	case d.Event == SessionEnd:
		if seconds == 0 || seconds > 3 {
			seconds = 1.5
		}
	case seconds > 0:
	case d.Handler.Type == KindPrompt || d.Event == UserPromptSubmit:
		seconds = 30
	case d.gemini:
		seconds = 60
	default:
		seconds = 600
	}
	return time.Duration(seconds * float64(time.Second))
}

// expand replaces ${NAME} by the variables of the source, whose values are not
// expanded again.
func (s *Source) expand(text string) string {
	var pairs []string
	for name, value := range s.Vars {
		pairs = append(pairs, "${"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
