package sdk

import (
	"encoding/json"
	"time"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// HookPoint is a point of a session at which hooks run; docs/hooks.md describes them.
type HookPoint string

// The points. Hooks of PreToolUse and PermissionRequest are guards: if one fails,
// the call is denied.
const (
	SessionStart       HookPoint = "SessionStart"
	SessionEnd         HookPoint = "SessionEnd"
	UserPromptSubmit   HookPoint = "UserPromptSubmit"
	BeforeModel        HookPoint = "BeforeModel"
	PreToolUse         HookPoint = "PreToolUse"
	PermissionRequest  HookPoint = "PermissionRequest"
	PermissionDenied   HookPoint = "PermissionDenied"
	PostToolUse        HookPoint = "PostToolUse"
	PostToolUseFailure HookPoint = "PostToolUseFailure"
	SubagentStart      HookPoint = "SubagentStart"
	SubagentStop       HookPoint = "SubagentStop"
	PreCompact         HookPoint = "PreCompact"
	PostCompact        HookPoint = "PostCompact"
	Stop               HookPoint = "Stop"
	StopFailure        HookPoint = "StopFailure"
	Notification       HookPoint = "Notification"
	FileChanged        HookPoint = "FileChanged"
)

// HookEvent is what happens at a point of a session. What a point does not have is
// empty.
type HookEvent struct {
	Point     HookPoint `json:"hook_event_name"`
	Dir       string    `json:"cwd"`
	Log       string    `json:"transcript_path"` // the session log
	Mode      string    `json:"permission_mode"` // in the words of docs/hooks.md
	AgentType string    `json:"agent_type"`      // of a subagent

	// Of a tool call. The names of tools and arguments are those of docs/hooks.md:
	// Bash with command, Write with file_path and content …
	Tool     string          `json:"tool_name"`
	Args     json.RawMessage `json:"tool_input"`
	CallID   string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"`
	Error    string          `json:"error"` // also of StopFailure

	Prompt      string `json:"prompt"`                 // of UserPromptSubmit
	Answer      string `json:"last_assistant_message"` // of Stop and SubagentStop
	Continued   bool   `json:"stop_hook_active"`       // a hook had the agent continue
	Source      string `json:"source"`                 // of SessionStart: startup, resume
	Trigger     string `json:"trigger"`                // of compactions: manual, auto
	Summary     string `json:"compact_summary"`        // of PostCompact
	Message     string `json:"message"`                // of Notification
	File        string `json:"file_path"`              // of FileChanged, with
	Change      string `json:"event"`                  // add, change or unlink
	MessageType string `json:"notification_type"`      // of Notification
}

// Verdict is what a hook decides. The zero value decides nothing.
type Verdict string

// The verdicts. Allow answers a question that is only asked because of the permission
// mode; no rule is loosened by it. Deny blocks: a call, a prompt, a compaction, or,
// at Stop, the end of the work.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask" // the user; of PreToolUse
)

// HookReply is what a hook says. The zero value has no effect.
type HookReply struct {
	Verdict Verdict
	Reason  string // for the model, or for the user if they are asked
	Context string // for the model
	Message string // for the user
	// Args replace the arguments of a call: those of the event, changed. They are
	// checked again.
	Args any
	// Result replaces what the model reads of a call, at PostToolUse.
	Result any
	// Stop ends the work, for the Reason.
	Stop bool
}

// HookOption is an option of [Hook].
type HookOption func(*toolproto.Hook)

// Matches limits a hook to tools, files, agent types and the like: names as in
// "Edit|Write", or a regular expression.
func Matches(matcher string) HookOption { return func(h *toolproto.Hook) { h.Matcher = matcher } }

// If limits a hook about tool calls to those that a permission rule matches, such as
// "Bash(git push *)".
func If(rule string) HookOption { return func(h *toolproto.Hook) { h.Condition = rule } }

// Within limits how long a hook may take. Without it, that is ten minutes, and half a
// minute for UserPromptSubmit.
func Within(d time.Duration) HookOption {
	return func(h *toolproto.Hook) { h.TimeoutMs = d.Milliseconds() }
}

// Once runs a hook once in a session.
func Once() HookOption { return func(h *toolproto.Hook) { h.Once = true } }

// AllowOnError lets a call pass if its guard fails.
func AllowOnError() HookOption { return func(h *toolproto.Hook) { h.OnErrorAllow = true } }

// hook is a hook of the plugin.
type hook struct {
	spec *toolproto.Hook
	run  func(*Context, *HookEvent) (HookReply, error)
}

// Hook returns an extension that runs at a point of a session, also in subagents:
//
//	sdk.Hook(sdk.PreToolUse, "no-force", func(ctx *sdk.Context, e *sdk.HookEvent) (sdk.HookReply, error) {
//		return sdk.HookReply{Verdict: sdk.Deny, Reason: "Do not force-push."}, nil
//	}, sdk.If("Bash(git push --force *)"))
//
// The manifest in plugin.json must list the point in hooks, which the user approves. It is not
// a hook of the plugin's calls only, but of all: limit it with [Matches] or [If].
func Hook(point HookPoint, name string, run func(*Context, *HookEvent) (HookReply, error), options ...HookOption) Extension {
	h := &hook{&toolproto.Hook{Name: name, Event: string(point)}, run}
	for _, o := range options {
		o(h.spec)
	}
	return h
}

func (h *hook) title() string { return h.spec.Name }

func (h *hook) register(o *offer) error {
	if err := checkExtension("hook", h.spec.Name, h.spec.Event, h.run == nil, o.hooks); err != nil {
		return err
	}
	o.hooks = append(o.hooks, h)
	return nil
}

// serve runs the hook and sends its reply.
func (h *hook) serve(c *conversation, work *Context, req *toolproto.HookRequest) error {
	return c.answer(func() (any, error) {
		e := &HookEvent{}
		if err := json.Unmarshal(req.Input, e); err != nil {
			return nil, Errorf(Validation, "the event: %v", err)
		}
		reply, err := h.run(work, e)
		if err != nil {
			return nil, err
		}
		return reply.encode(HookPoint(req.Event)), nil
	})
}

// encode returns the reply as the JSON of a hook.
func (r *HookReply) encode(at HookPoint) Result {
	type object = map[string]any
	specific := object{"hookEventName": at}
	out := object{"hookSpecificOutput": specific}
	set := func(in object, key, value string) {
		if value != "" {
			in[key] = valid(value)
		}
	}
	switch {
	case r.Verdict == "":
	case at == PreToolUse:
		set(specific, "permissionDecision", string(r.Verdict))
		set(specific, "permissionDecisionReason", r.Reason)
	case at == PermissionRequest:
		decision := object{"behavior": string(r.Verdict)}
		set(decision, "message", r.Reason)
		if r.Args != nil {
			decision["updatedInput"] = r.Args
		}
		specific["decision"] = decision
	case r.Verdict == Deny:
		out["decision"] = "block"
		set(out, "reason", r.Reason)
	}
	set(specific, "additionalContext", r.Context)
	set(out, "systemMessage", r.Message)
	if r.Args != nil && at == PreToolUse {
		specific["updatedInput"] = r.Args
	}
	if r.Result != nil {
		specific["updatedToolOutput"] = r.Result
	}
	if r.Stop {
		out["continue"] = false
		set(out, "stopReason", r.Reason)
	}
	return Result{Structured: out}
}
