package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// Options configure an [Engine].
type Options struct {
	Hooks []Definition
	// Sessions says that sessions can get hooks while they run; see [Place].
	Sessions bool
	// More returns further hooks of an event as they are now, and Later the events that
	// may have some; nil has none.
	More  func(ctx context.Context, e Event) []Definition
	Later []Event
	// Matches reports whether a permission rule matches a call, also in the words of
	// Claude Code: Bash(git *). If in doubt, it does. Nil matches all.
	Matches func(ctx context.Context, rule string, call *core.Call) (bool, error)
	// CallTool calls a tool of an MCP server or a plugin; nil has none.
	CallTool func(ctx context.Context, kind Kind, server, tool string, args json.RawMessage, session core.SessionInfo) (string, error)
	// Mode names the permission mode of a policy in Claude Code's words; nil names none.
	Mode func(core.Policy) string
	// Variable reports why a SessionStart hook must not set a variable for the commands
	// of the session; nil lets hooks set none: they get no CLAUDE_ENV_FILE.
	Variable func(name, value string) error
	// Getenv returns the variables for the headers of http hooks; nil has none.
	Getenv func(string) string
	// Client sends the requests of http hooks; nil is one that does not follow
	// redirects.
	Client *http.Client
}

// Engine runs hooks.
type Engine struct {
	opts  Options
	hooks map[Event][]Definition
}

// New returns an engine; nil without hooks, unless they come Later.
func New(o Options) *Engine {
	if len(o.Hooks)+len(o.Later) == 0 && !o.Sessions {
		return nil
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	e := &Engine{opts: o, hooks: map[Event][]Definition{}}
	for _, d := range o.Hooks {
		e.hooks[d.Event] = append(e.hooks[d.Event], d)
	}
	return e
}

// Has reports whether an event has hooks.
func (e *Engine) Has(events ...Event) bool {
	return e != nil && slices.ContainsFunc(events, func(event Event) bool {
		return len(e.hooks[event]) > 0 || slices.Contains(e.opts.Later, event)
	})
}

// list returns the hooks of an event, and those that more returns, which may be nil.
func (e *Engine) list(ctx context.Context, more func() []Definition, event Event) (list []*Definition) {
	for i := range e.hooks[event] {
		list = append(list, &e.hooks[event][i])
	}
	var further []Definition
	if slices.Contains(e.opts.Later, event) {
		further = e.opts.More(ctx, event)
	}
	if more != nil {
		further = append(further, more()...)
	}
	for _, d := range further {
		if d.Event == event {
			list = append(list, &d)
		}
	}
	return list
}

// Place is where hooks run: those of one session.
type Place struct {
	Env core.Environment
	// Session is the session of which the hooks run. Its Transcript is a file that
	// commands can read; may be empty.
	Session    core.SessionInfo
	Transcript string
	// Provider is the model of prompt hooks; nil fails them. Model is its name.
	Provider model.Provider
	Model    string
	// More returns the hooks that apply now beside those of the engine, such as those
	// of active skills; nil has none.
	More func() []Definition
	// Skip leaves a hook out, such as one that runs once; nil leaves out none.
	Skip func(*Definition) bool
	// Detach runs an asynchronous hook, whose result is not waited for; nil waits.
	Detach func(d *Definition, run func(context.Context) Result)

	variable func(name, value string) error // [Options].Variable
}

// Run runs the hooks of an event that match, all at once, and returns what they came
// to, in the order of their definitions. Call is the tool call that the event is about,
// or nil. Identical hooks run once.
func (e *Engine) Run(ctx context.Context, p Place, in Input, call *Call, tool *core.Call) Outcome {
	var out Outcome
	if e == nil {
		return out
	}
	p.variable = e.opts.Variable
	var wg sync.WaitGroup
	seen := map[string]bool{}
	var results []*Result
	for _, d := range e.list(ctx, p.More, in.Event) {
		if seen[d.key()] || !e.applies(ctx, p, d, &in, call, tool) {
			continue
		}
		seen[d.key()] = true
		inputs := []Input{in}
		if call != nil {
			inputs = call.each(in, d.gemini)
		}
		if d.detached() && p.Detach != nil {
			for _, in := range inputs {
				p.Detach(d, func(ctx context.Context) Result { return e.one(ctx, p, d, in) })
			}
			continue
		}
		for _, in := range inputs {
			r := &Result{}
			results = append(results, r)
			wg.Go(func() { *r = e.one(ctx, p, d, in) })
		}
	}
	wg.Wait()
	for _, r := range results {
		if r.Input != nil && call != nil {
			r.Input = call.updated(r.Definition.gemini, r.Input)
		}
		out.add(*r)
	}
	return out
}

// detached reports whether the session does not wait for the hook.
func (d *Definition) detached() bool {
	return (d.Handler.Async || d.Handler.Rewake) && !d.Event.Guards() && d.Handler.Type == KindCommand
}

// each returns the inputs about a call: one for each of its files.
func (c *Call) each(in Input, gemini bool) []Input {
	in.ToolName, in.ToolUseID = c.name(gemini), c.ID
	var all []Input
	for _, args := range c.inputs(gemini) {
		in.ToolInput = args
		all = append(all, in)
	}
	return all
}

// applies reports whether a hook is to run.
func (e *Engine) applies(ctx context.Context, p Place, d *Definition, in *Input, call *Call, tool *core.Call) bool {
	if s := &d.Source; s.Agent != "" && s.Agent != in.AgentType && !d.Event.aboutTool() {
		return false
	}
	names := in.matched()
	if call != nil {
		names = call.names(d.gemini)
	}
	if !d.matches(names) {
		return false
	}
	if d.Handler.If != "" && tool != nil && e.opts.Matches != nil && d.Event.aboutTool() {
		if is, err := e.opts.Matches(ctx, d.Handler.If, tool); err == nil && !is {
			return false // with an error it runs: a guard must not be lost
		}
	}
	return p.Skip == nil || !p.Skip(d)
}

// one runs a hook to its result.
func (e *Engine) one(ctx context.Context, p Place, d *Definition, in Input) (r Result) {
	r.Definition = *d
	start := time.Now()
	defer func() {
		r.DurationMS = time.Since(start).Milliseconds()
		if v := recover(); v != nil {
			r.Err = fmt.Errorf("panic: %v", v)
			r.Code = -1
		}
		if r.Err != nil && d.Event.Guards() {
			r.fail()
		}
		if r.Decides && !d.Event.blocks() {
			if r.Decides = false; r.Verdict == core.Deny && r.Err == nil {
				r.Err = errors.New(r.Reason)
			}
		}
	}()
	if d.broken != nil {
		r.Err = fmt.Errorf("%w: %w", errBroken, d.broken)
		return r
	}
	limit := d.timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it timed out after %s", limit))
	defer cancel()
	data, err := json.Marshal(d.translated(in))
	if err != nil {
		r.Err = err
		return r
	}
	rep, err := e.handle(ctx, p, d, data)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		r.Err, r.Code = err, -1
		return r
	}
	if r.read(d.Event, rep); r.Err == nil && rep.env != "" {
		r.export(p, rep.env)
	}
	return r
}

// blocks reports whether a hook's decision has an effect on the event.
func (e Event) blocks() bool {
	switch e {
	case PreToolUse, PermissionRequest, UserPromptSubmit, BeforeModel, PostToolUse, PostToolUseFailure, PreCompact, Stop, SubagentStop:
		return true
	}
	return false
}

// translated returns the input in the words of the hook's form.
func (d *Definition) translated(in Input) Input {
	if !d.gemini {
		return in
	}
	for theirs, ours := range geminiEvents {
		if ours == in.Event {
			in.Event = Event(theirs)
		}
	}
	return in
}

// handle runs the handler.
func (e *Engine) handle(ctx context.Context, p Place, d *Definition, input []byte) (reply, error) {
	if d.code != nil {
		out, err := d.code(ctx, p.Session, input)
		return reply{out: out}, err
	}
	switch h := &d.Handler; h.Type {
	case KindCommand:
		return p.command(ctx, d, input)
	case KindHTTP:
		return e.post(ctx, d, input)
	case KindPrompt:
		return p.judge(ctx, h, input)
	default:
		if e.opts.CallTool == nil {
			return reply{}, fmt.Errorf("there is no %s %q here", strings.TrimSuffix(string(h.Type), "_tool"), h.Server)
		}
		args, err := fill(h.Input, input)
		if err != nil {
			return reply{}, err
		}
		text, err := e.opts.CallTool(ctx, h.Type, h.Server, h.Tool, args, p.Session)
		return reply{out: []byte(text)}, err
	}
}

// fill replaces ${path.in.the.input} in the input of a tool; without one, the tool
// gets the whole input of the hook.
func fill(template json.RawMessage, input []byte) (json.RawMessage, error) {
	if len(template) == 0 {
		return input, nil
	}
	var from any
	if err := json.Unmarshal(input, &from); err != nil {
		return nil, err
	}
	var to any
	if err := json.Unmarshal(template, &to); err != nil {
		return nil, err
	}
	return json.Marshal(filled(to, from))
}

func filled(v, from any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = filled(value, from)
		}
	case []any:
		for i, value := range v {
			v[i] = filled(value, from)
		}
	case string:
		if path, ok := strings.CutPrefix(v, "${"); ok && strings.HasSuffix(path, "}") && !strings.Contains(path, "${") {
			return lookup(from, strings.TrimSuffix(path, "}")) // with its type
		}
		return substitute(v, func(path string) string {
			switch value := lookup(from, path).(type) {
			case nil:
				return ""
			case string:
				return value
			default:
				return string(encode(value))
			}
		})
	}
	return v
}

func lookup(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

// substitute replaces each ${NAME} once.
func substitute(text string, value func(name string) string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "${")
		b.WriteString(before)
		name, rest, closed := strings.Cut(after, "}")
		if !ok {
			return b.String()
		}
		if !closed {
			b.WriteString("${" + after)
			return b.String()
		}
		b.WriteString(value(name))
		text = rest
	}
}
