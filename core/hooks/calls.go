package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/toolname"
	"github.com/seed-009c0928/agent/core/model"
)

// hooks runs the configured hooks before those of the host.
func (b *Bound) hooks(host core.Hooks) core.Hooks {
	all := host
	all.BeforeModel = func(ctx context.Context, req *model.Request) error {
		b.mu.Lock()
		b.answer, b.model = req, req.Model
		b.mu.Unlock()
		if out := b.run(ctx, Input{Event: BeforeModel, Model: req.Model}, nil, nil); out.Blocked() {
			return fmt.Errorf("the hook %q blocks it: %s", clip(out.By, 200), out.Reason)
		}
		if host.BeforeModel == nil {
			return nil
		}
		return host.BeforeModel(ctx, req)
	}
	if b.may(PreToolUse) {
		all.BeforeTool = func(ctx context.Context, call *model.ToolCall) error {
			if b.has(PreToolUse) {
				if err := b.beforeTool(ctx, call); err != nil {
					return err
				}
			}
			if host.BeforeTool == nil {
				return nil
			}
			return host.BeforeTool(ctx, call)
		}
	}
	if b.may(PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure, PermissionDenied) {
		all.AfterTool = func(ctx context.Context, call model.ToolCall, res *core.Result) {
			if host.AfterTool != nil {
				host.AfterTool(ctx, call, res)
			}
			b.afterTool(ctx, call, res)
		}
	}
	return all
}

// beforeTool runs the PreToolUse hooks.
func (b *Bound) beforeTool(ctx context.Context, call *model.ToolCall) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("its hooks could not run: %v", v)
		}
	}()
	entry, known := b.find(ctx, call.Name)
	tool := &core.Call{ID: call.ID, Name: call.Name, Args: json.RawMessage(cmp.Or(call.Args, "{}")), Session: b.info(), Env: b.cfg.ToolEnv}
	var accesses []core.Access
	if known {
		tool.Name = entry.ModelName
		if args, _, err := entry.Coerce(tool.Args); err == nil { // else the call fails
			tool.Args = args
			accesses, _ = entry.Tool.Access(ctx, tool)
		}
	}
	v := b.judge(ctx, tool, accesses)
	v.raw = call.Args
	if v.out.Input == nil || v.out.Blocked() || !known {
		return v.denied()
	}
	args, _, err := entry.Coerce(v.out.Input)
	if err != nil {
		return fmt.Errorf("a hook changed the arguments to %s, which are wrong: %w", clip(string(v.out.Input), 500), err)
	}
	call.Name, call.Args = entry.ModelName, string(v.out.Input)
	v.raw, v.args = call.Args, string(args)
	return nil
}

// find returns the tool that a model means, as the session does afterwards.
func (b *Bound) find(ctx context.Context, name string) (core.Entry, bool) {
	snapshot, _ := b.cfg.Tools.Snapshot(ctx) // the session warns of the error
	if snapshot == nil {
		return core.Entry{}, false
	}
	if entry, ok := snapshot.Lookup(name); ok {
		return entry, true
	}
	var names []string
	for _, e := range snapshot.Entries() {
		names = append(names, e.ModelName)
	}
	name, _ = toolname.Find(name, names)
	return snapshot.Lookup(name)
}

// judge runs the PreToolUse hooks of a call, and keeps what they said.
func (b *Bound) judge(ctx context.Context, tool *core.Call, accesses []core.Access) *verdict {
	v := &verdict{name: tool.Name, args: string(tool.Args)}
	call := Describe(tool, accesses)
	v.out = b.run(ctx, Input{Event: PreToolUse}, call, tool)
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	b.shared.calls[tool.Session.ID+"/"+tool.ID] = v
	return v
}

// verdict returns what the hooks said about a call; nil if they have not seen it.
func (b *Bound) verdict(session, call string) *verdict {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	return b.shared.calls[session+"/"+call]
}

// denied returns the error of a call that the hooks deny.
func (v *verdict) denied() error {
	if !v.out.Blocked() {
		return nil
	}
	return fmt.Errorf("the hook %q denies it: %s", clip(v.out.By, 200), v.out.Reason)
}

// Describe describes a call to hooks, from what it would access.
func Describe(tool *core.Call, accesses []core.Access) *Call {
	c := &Call{ID: tool.ID, Name: tool.Name, Args: tool.Args, Dir: tool.Session.Dir}
	several := tool.Name == "apply_patch" || tool.Name == "read_many_files"
	for _, a := range accesses {
		switch {
		case a.Scope == core.ScopeMCP:
			c.Server, c.Tool, _ = strings.Cut(a.Resource, "/")
		case several && a.Scope.IsFile():
			var file string
			_ = json.Unmarshal(absolute(c.Dir, encode(a.Resource)), &file)
			if !slices.Contains(c.Files, file) {
				c.Files = append(c.Files, file)
			}
		}
	}
	return c
}

// afterTool runs the hooks after a call, which may add to the result.
func (b *Bound) afterTool(ctx context.Context, call model.ToolCall, res *core.Result) {
	v := b.verdict(b.cfg.ID, call.ID)
	b.shared.mu.Lock()
	delete(b.shared.calls, b.cfg.ID+"/"+call.ID)
	b.shared.mu.Unlock()
	tool := &core.Call{ID: call.ID, Name: call.Name, Args: json.RawMessage(cmp.Or(call.Args, "{}")), Session: b.info(), Env: b.cfg.ToolEnv}
	in, text := Input{Event: PostToolUse}, model.Parts(res.Content).Text()
	var notes []string
	if v != nil {
		notes = v.out.Context
		if v.sensitive {
			text = "(not shown: it may contain secrets)"
		}
	}
	switch res.Code {
	case "":
	case core.CodePermission:
		in.Event, in.Error = PermissionDenied, text
	default:
		in.Event, in.Error = PostToolUseFailure, text
	}
	if b.has(in.Event) {
		var accesses []core.Access
		if snapshot, _ := b.cfg.Tools.Snapshot(ctx); snapshot != nil {
			if entry, ok := snapshot.Lookup(call.Name); ok && json.Valid(tool.Args) {
				accesses, _ = entry.Tool.Access(ctx, tool)
			}
		}
		c := Describe(tool, accesses)
		in.ToolResponse = response(c, res, text)
		out := b.run(ctx, in, c, tool)
		if out.Output != nil {
			res.Content = model.TextParts(outputText(out.Output))
		}
		if notes = append(slices.Clip(notes), out.Context...); out.Blocked() {
			notes = append(notes, out.Reason)
		}
	}
	for _, n := range notes {
		res.Content = append(slices.Clone(res.Content), model.Text{Text: "\n" + said("after the call", n)})
	}
}

// response is the result of a call in Claude Code's form.
func response(c *Call, res *core.Result, text string) json.RawMessage {
	r := map[string]any{"content": text, "is_error": res.Code != "", "success": res.Code == ""}
	switch c.name(false) {
	case "Bash":
		r["stdout"], r["stderr"], r["interrupted"] = text, "", res.Code == core.CodeCancelled
	case "Write", "Edit", "Read":
		var args struct {
			Path string `json:"file_path"`
		}
		if json.Unmarshal(absolute(c.Dir, c.inputs(false)[0]), &args) == nil && args.Path != "" {
			r["filePath"] = args.Path
		}
	}
	return encode(r)
}

// outputText is the text that a hook puts in place of a result.
func outputText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	var parts struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(v, &parts) == nil && len(parts.Content) > 0 {
		for _, p := range parts.Content {
			text += p.Text
		}
		return text
	}
	return string(v)
}
