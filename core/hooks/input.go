package hooks

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
)

// Input is what a hook gets as JSON, in Claude Code's form. What an event does not
// have is left out.
type Input struct {
	Session    string `json:"session_id"`
	Transcript string `json:"transcript_path"` // in Claude Code's form; empty without a session log
	Cwd        string `json:"cwd"`
	Mode       string `json:"permission_mode,omitempty"`
	Event      Event  `json:"hook_event_name"`
	AgentID    string `json:"agent_id,omitempty"` // of a subagent
	AgentType  string `json:"agent_type,omitempty"`
	Model      string `json:"model,omitempty"`

	ToolName     string          `json:"tool_name,omitempty"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	ToolResponse json.RawMessage `json:"tool_response,omitempty"`
	Error        string          `json:"error,omitempty"`
	DurationMS   int64           `json:"duration_ms,omitempty"`

	Prompt         string `json:"prompt,omitempty"`
	StopHookActive *bool  `json:"stop_hook_active,omitempty"`
	LastMessage    string `json:"last_assistant_message,omitempty"`
	Source         string `json:"source,omitempty"` // of SessionStart
	Reason         string `json:"reason,omitempty"` // of SessionEnd
	Message        string `json:"message,omitempty"`
	Title          string `json:"title,omitempty"`
	Type           string `json:"notification_type,omitempty"`
	Trigger        string `json:"trigger,omitempty"` // of PreCompact and PostCompact: manual, auto
	Instructions   string `json:"custom_instructions,omitempty"`
	Summary        string `json:"compact_summary,omitempty"`
	File           string `json:"file_path,omitempty"`
	Change         string `json:"event,omitempty"` // of FileChanged: add, change, unlink
}

// matched returns what matchers are compared with.
func (in *Input) matched() []string {
	switch in.Event {
	case SessionStart:
		return []string{in.Source}
	case SessionEnd:
		return []string{in.Reason}
	case Notification:
		return []string{in.Type}
	case SubagentStart, SubagentStop:
		return []string{in.AgentType}
	case PreCompact, PostCompact:
		return []string{in.Trigger}
	case FileChanged:
		return []string{in.File, filepath.Base(in.File)}
	case StopFailure:
		return []string{in.Error}
	}
	return nil
}

// Call is a tool call as hooks see it.
type Call struct {
	ID, Name string // as the model named it
	Args     json.RawMessage
	// Server and Tool are those of an MCP tool.
	Server, Tool string
	// Files are the files of a tool that takes several, absolute: its hooks run once
	// for each.
	Files []string
	Dir   string // the working directory
}

// foreign is a tool of ours in other programs' words.
type foreign struct {
	claude, gemini string
	also           []string          // further names that match
	fields         map[string]string // Claude's names of arguments, by ours, if they differ
	paths          []string          // arguments, by our names, that are absolute there
}

var foreignTools = map[string]foreign{
	"shell":           {claude: "Bash", gemini: "run_shell_command", fields: map[string]string{"timeout_ms": "timeout", "background": "run_in_background"}},
	"write_file":      {claude: "Write", gemini: "write_file", paths: []string{"file_path"}},
	"edit_file":       {claude: "Edit", gemini: "replace", also: []string{"MultiEdit"}, paths: []string{"file_path"}},
	"apply_patch":     {claude: "apply_patch", gemini: "replace", also: []string{"Write", "Edit", "MultiEdit"}, fields: map[string]string{"patch": "command"}},
	"read_file":       {claude: "Read", gemini: "read_file", paths: []string{"file_path"}},
	"read_many_files": {claude: "Read", gemini: "read_many_files"},
	"glob":            {claude: "Glob", gemini: "glob", paths: []string{"path"}},
	"grep": {
		claude: "Grep", gemini: "search_file_content", paths: []string{"path"},
		fields: map[string]string{"glob_filter": "glob", "case_insensitive": "-i", "max_results": "head_limit", "context": "-C"},
	},
	"write_stdin": {also: []string{"Bash"}, fields: map[string]string{"text": "command"}},
	"list_dir":    {claude: "LS", gemini: "list_directory", paths: []string{"path"}},
	"web_fetch":   {claude: "WebFetch", gemini: "web_fetch"},
	"web_search":  {claude: "WebSearch", gemini: "google_web_search"},
	"spawn_agent": {claude: "Agent", also: []string{"Task"}, fields: map[string]string{"task": "prompt", "agent": "subagent_type", "background": "run_in_background"}},
	"ask_user":    {claude: "AskUserQuestion"},
	"submit_plan": {claude: "ExitPlanMode"},
}

// names returns the names that matchers are compared with.
func (c *Call) names(gemini bool) []string {
	f := foreignTools[c.Name]
	names := append([]string{c.Name, c.name(gemini)}, f.also...)
	return slices.Compact(names)
}

// name returns the tool's name for a hook.
func (c *Call) name(gemini bool) string {
	f := foreignTools[c.Name]
	switch {
	case c.Server != "" && gemini:
		return "mcp_" + c.Server + "_" + c.Tool
	case c.Server != "":
		return "mcp__" + c.Server + "__" + c.Tool
	case gemini && f.gemini != "":
		return f.gemini
	case f.claude != "":
		return f.claude
	}
	return c.Name
}

// inputs returns the arguments as a hook gets them: once for each of the Files.
func (c *Call) inputs(gemini bool) []json.RawMessage {
	args := c.object()
	if args == nil {
		return []json.RawMessage{c.Args}
	}
	f := foreignTools[c.Name]
	theirs := map[string]json.RawMessage{}
	for name, value := range args {
		if slices.Contains(f.paths, name) {
			value = absolute(c.Dir, value)
		}
		if to, ok := f.fields[name]; ok && !gemini {
			name = to
		}
		theirs[name] = value
	}
	if c.Name == "ask_user" {
		theirs = map[string]json.RawMessage{"questions": questions(args)}
	}
	if len(c.Files) == 0 {
		return []json.RawMessage{encode(theirs)}
	}
	var all []json.RawMessage
	for _, file := range c.Files {
		one := maps.Clone(theirs)
		one["file_path"] = encode(file)
		all = append(all, encode(one))
	}
	return all
}

// updated returns the arguments that a hook made of those that it got. A hook of
// Gemini CLI's form names only what changes.
func (c *Call) updated(gemini bool, input json.RawMessage) json.RawMessage {
	var theirs map[string]json.RawMessage
	if json.Unmarshal(input, &theirs) != nil || c.Server != "" && !gemini {
		return input // and the schema refuses what is wrong
	}
	f := foreignTools[c.Name]
	names := map[string]string{}
	for to, from := range f.fields {
		names[from] = to
	}
	args := map[string]json.RawMessage{}
	if gemini {
		maps.Copy(args, c.object())
	}
	for name, value := range theirs {
		if to, ok := names[name]; ok && !gemini {
			name = to
		}
		args[name] = value
	}
	if len(c.Files) > 0 {
		delete(args, "file_path")
	}
	if list, ok := args["questions"]; ok && c.Name == "ask_user" {
		return question(list)
	}
	if c.Name == "web_fetch" {
		delete(args, "prompt")
	}
	return encode(args)
}

func (c *Call) object() map[string]json.RawMessage {
	var args map[string]json.RawMessage
	if json.Unmarshal(c.Args, &args) != nil {
		return nil
	}
	return args
}

// encode encodes what always has JSON.
func encode(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}

// absolute makes a path in JSON absolute.
func absolute(dir string, value json.RawMessage) json.RawMessage {
	var path string
	if json.Unmarshal(value, &path) != nil || path == "" || filepath.IsAbs(path) || dir == "" {
		return value
	}
	return encode(filepath.Join(dir, path))
}

type choice struct {
	Label string `json:"label"`
}

type asked struct {
	Question string   `json:"question"`
	Options  []choice `json:"options"`
}

// questions returns the arguments of ask_user in the form of AskUserQuestion.
func questions(args map[string]json.RawMessage) json.RawMessage {
	q := asked{Options: []choice{}}
	_ = json.Unmarshal(args["question"], &q.Question)
	var labels []string
	_ = json.Unmarshal(args["options"], &labels)
	for _, l := range labels {
		q.Options = append(q.Options, choice{l})
	}
	return encode([]asked{q})
}

// question is the reverse of questions.
func question(list json.RawMessage) json.RawMessage {
	var all []asked
	if json.Unmarshal(list, &all) != nil || len(all) != 1 {
		return list // which the schema refuses
	}
	args := map[string]any{"question": all[0].Question}
	var labels []string
	for _, o := range all[0].Options {
		labels = append(labels, o.Label)
	}
	if len(labels) > 0 {
		args["options"] = labels
	}
	return encode(args)
}
