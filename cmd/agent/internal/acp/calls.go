package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// call is a tool call that the client sees.
type call struct {
	use      event.ToolUse
	located  bool
	output   strings.Builder // live output, until it is long
	shown    time.Time       // when the live output was shown
	terminal *terminal       // of the client, which shows the output; nil without
	content  []protocol.ToolCallContent
	ended    bool
}

// maxLive is the length of the live output that is shown, in bytes, and liveEvery
// how often: each update repeats it.
const (
	maxLive   = 16 << 10
	liveEvery = 200 * time.Millisecond
)

// shellTool is the tool that runs commands.
const shellTool = "shell"

// kinds are the kinds of the built-in tools.
var kinds = map[string]protocol.ToolKind{
	"read_file": protocol.ToolKindRead, "read_many_files": protocol.ToolKindRead, "list_dir": protocol.ToolKindRead, "read_mcp_resource": protocol.ToolKindRead,
	"write_file": protocol.ToolKindEdit, "edit_file": protocol.ToolKindEdit, "apply_patch": protocol.ToolKindEdit,
	"grep": protocol.ToolKindSearch, "glob": protocol.ToolKindSearch, "search_tools": protocol.ToolKindSearch, "web_search": protocol.ToolKindSearch,
	shellTool: protocol.ToolKindExecute, "write_stdin": protocol.ToolKindExecute, "run_skill_script": protocol.ToolKindExecute,
	"web_fetch": protocol.ToolKindFetch, event.PlanTool: protocol.ToolKindThink, "submit_plan": protocol.ToolKindSwitchMode,
}

func kindOf(tool string) protocol.ToolKind {
	if kind, ok := kinds[tool]; ok {
		return kind
	}
	return protocol.ToolKindOther
}

// showCall shows an event of a tool call.
func (s *session) showCall(e event.Event, past bool) {
	c := s.calls[e.Call]
	if use, ok := e.Body.(event.ToolUse); ok {
		s.beginCall(e.Call, use)
		return
	}
	if c == nil {
		return // such as files that an undo changed
	}
	switch b := e.Body.(type) {
	case event.Permission:
		u := &protocol.ToolCallUpdate{ToolCallID: e.Call}
		if b.Decision == "allow" {
			u.Status = protocol.ToolCallStatusInProgress
			if c.use.Name == shellTool && !past {
				c.terminal = s.openTerminal(e.Call)
			}
		}
		if !c.located {
			u.Locations = places(b.Accesses)
		}
		if u.Status != "" || u.Locations != nil {
			s.update("tool_call_update", u)
		}
	case event.ToolOutputDelta:
		s.showOutput(e.Call, c, b.Text)
	case event.ToolProgress:
		if b.Message != "" && !past {
			s.update("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: e.Call, Content: []protocol.ToolCallContent{contentOf(text(b.Message))}})
		}
	case event.ToolResult:
		s.endCall(e.Call, c, b)
	case event.FilesChanged:
		s.showChanges(e.Call, c, b)
	}
}

// beginCall shows a call. Its arguments are those of the model, which may be invalid.
func (s *session) beginCall(id string, use event.ToolUse) {
	c := &call{use: use}
	s.calls[id] = c
	t := &protocol.ToolCall{
		ToolCallID: id, Name: use.Name, Title: s.title(use), Kind: kindOf(use.Name), Status: protocol.ToolCallStatusPending,
		RawInput: rawInput(use.Args), Locations: s.named(use.Args),
	}
	c.located = len(t.Locations) > 0
	s.update("tool_call", t)
}

func rawInput(args string) any {
	if json.Valid([]byte(args)) {
		return json.RawMessage(args)
	}
	return args
}

// title describes a call in a line.
func (s *session) title(use event.ToolUse) string {
	args := display.Arguments(use.Args, s.opened.Dir, 200)
	switch {
	case use.Name == shellTool && args != "":
		return "`" + strings.ReplaceAll(args, "`", "'") + "`"
	case args == "":
		return use.Name
	}
	return use.Name + " " + args
}

// named returns the files that arguments name.
func (s *session) named(args string) (list []protocol.ToolCallLocation) {
	var in struct {
		FilePath  string   `json:"file_path"`
		Path      string   `json:"path"`
		FilePaths []string `json:"file_paths"`
		Offset    int64    `json:"offset"`
		Patch     string   `json:"patch"`
	}
	if json.Unmarshal([]byte(args), &in) != nil {
		return nil
	}
	paths := append([]string{in.FilePath, in.Path}, in.FilePaths...)
	for line := range strings.SplitSeq(in.Patch, "\n") {
		if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
			paths = append(paths, strings.TrimSpace(file))
		}
	}
	for _, p := range paths {
		if p == "" || strings.HasPrefix(p, "context:") {
			continue
		}
		at := protocol.ToolCallLocation{Path: s.absolute(p)}
		if in.Offset > 0 {
			at.Line = &in.Offset
		}
		list = append(list, at)
	}
	return list
}

func (s *session) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.opened.Dir, path)
}

// places returns the files that a call accesses.
func places(accesses []event.Access) (list []protocol.ToolCallLocation) {
	for _, a := range accesses {
		if strings.HasPrefix(a.Scope, "fs-") && filepath.IsAbs(a.Resource) {
			list = append(list, protocol.ToolCallLocation{Path: a.Resource})
		}
	}
	return list
}

func contentOf(b protocol.ContentBlock) protocol.ToolCallContent {
	return protocol.ToolCallContent{Tag: "content", Value: &protocol.Content{Content: b}}
}

// showOutput shows live output, in the terminal if there is one.
func (s *session) showOutput(id string, c *call, out string) {
	if c.terminal != nil {
		c.terminal.write(out)
		return
	}
	if c.output.Len() < maxLive {
		c.output.WriteString(out)
	}
	if now := time.Now(); now.Sub(c.shown) >= liveEvery {
		c.shown = now
		s.update("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: id, Content: []protocol.ToolCallContent{contentOf(text(fenced(c.output.String())))}})
	}
}

// endCall shows the result of a call.
func (s *session) endCall(id string, c *call, b event.ToolResult) {
	u := &protocol.ToolCallUpdate{ToolCallID: id, Status: protocol.ToolCallStatusCompleted}
	if b.IsError || display.CommandFailed(b) {
		u.Status = protocol.ToolCallStatusFailed
	}
	c.ended = true
	diffs := s.diffs(c.use, b)
	if len(diffs) == 0 {
		c.content = s.contents(c.use.Name, b)
	}
	if c.terminal != nil {
		if shown := c.terminal.end(exitCode(b)); shown != nil {
			c.content = []protocol.ToolCallContent{*shown}
		}
	}
	u.Content = slices.Concat(c.content, diffs)
	if len(b.Structured) > 0 && json.Valid(b.Structured) {
		u.RawOutput = b.Structured
	} else {
		u.RawOutput = map[string]any{"text": b.Content.Text()}
	}
	s.update("tool_call_update", u)
	if plan, ok := b.Plan(); ok {
		entries := make([]protocol.PlanEntry, 0, len(plan.Steps))
		for _, step := range plan.Steps {
			entries = append(entries, protocol.PlanEntry{Content: step.Step, Priority: protocol.PlanEntryPriorityMedium, Status: protocol.PlanEntryStatus(step.Status)})
		}
		s.update("plan", &protocol.Plan{Entries: entries})
	}
}

// exitCode returns the exit code of a command.
func exitCode(b event.ToolResult) int {
	var exit struct {
		Code int `json:"exitCode"`
	}
	if json.Unmarshal(b.Structured, &exit) != nil && b.IsError {
		return 1
	}
	return exit.Code
}

// contents returns the content of a result: files and output as they are, in a code
// block.
func (s *session) contents(tool string, b event.ToolResult) (list []protocol.ToolCallContent) {
	full := b.Content.Text()
	if b.Output != nil && b.Output.Text != "" {
		full = b.Output.Text
	}
	if full != "" {
		switch kindOf(tool) {
		case protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindExecute:
			full = fenced(full)
		}
		list = append(list, contentOf(text(full)))
	}
	for _, p := range b.Content {
		if block, ok := s.block(p); ok && block.Tag != "text" {
			list = append(list, contentOf(block))
		}
	}
	return list
}

// fenced returns a code block of Markdown.
func fenced(t string) string {
	fence := "```"
	for strings.Contains(t, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(t, "\n") + "\n" + fence
}
