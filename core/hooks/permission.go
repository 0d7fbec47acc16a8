package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// Policy returns a policy with what the PreToolUse hooks said: they deny or ask, and
// allow what is only asked because of the permission mode.
func (b *Bound) Policy(p core.Policy) core.Policy {
	if b == nil || p == nil {
		return p
	}
	b.mu.Lock()
	b.policy = p
	b.mu.Unlock()
	if !b.may(PreToolUse, PermissionRequest, SessionStart) {
		return p
	}
	return &policy{p, b}
}

type policy struct {
	core.Policy
	b *Bound
}

// Decide implements [core.Policy]. Commands get the variables that SessionStart hooks
// set.
func (p *policy) Decide(ctx context.Context, req core.PermissionRequest) core.Decision {
	d := p.decide(ctx, req)
	shared := p.b.shared
	shared.mu.Lock()
	variables := slices.Clip(shared.variables)
	shared.mu.Unlock()
	if len(variables) == 0 {
		return d
	}
	d.Grants = slices.Clone(d.Grants)
	for i, g := range d.Grants {
		if g.Scope == core.ScopeShell {
			d.Grants[i].Env = slices.Concat(variables, g.Env)
		}
	}
	return d
}

// decide is Decide without the variables. A call that the hooks have not seen as it is, such
// as one that the user changed, is shown to them first.
func (p *policy) decide(ctx context.Context, req core.PermissionRequest) core.Decision {
	d := p.Policy.Decide(ctx, req)
	b := p.b
	if !b.has(PreToolUse, PermissionRequest) {
		return d
	}
	v := b.verdict(req.Session.ID, req.Call)
	switch args := string(req.Args); {
	case v == nil && b.has(PreToolUse):
		return d // it is not yet about to run: the session wants to know what it must not record
	case v == nil || v.name != req.Tool || args != v.args && args != v.raw:
		tool := &core.Call{ID: req.Call, Name: req.Tool, Args: req.Args, Session: req.Session, Env: b.cfg.ToolEnv}
		if v = b.judge(ctx, tool, req.Accesses); v.out.Input != nil && !v.out.Blocked() {
			v.out.Decided, v.out.Verdict, v.out.Reason = true, core.Deny, "a hook wants other arguments: "+clip(string(v.out.Input), 500)
		}
	}
	b.shared.mu.Lock()
	v.sensitive = len(d.Sensitive) > 0
	v.answers = d.Verdict == core.Ask && strings.HasPrefix(d.Rule, "mode ") && !v.sensitive && !d.NoSession
	answers := v.answers
	b.shared.mu.Unlock()
	if !v.out.Decided {
		return d
	}
	rule := fmt.Sprintf("hook %q", clip(v.out.By, 200))
	switch {
	case v.out.Verdict == core.Deny:
		return core.Decision{Verdict: core.Deny, Rule: rule, Source: "hooks", Reason: "the " + rule + " denies it: " + v.out.Reason, Sensitive: d.Sensitive}
	case v.out.Verdict == core.Ask && d.Verdict == core.Allow:
		d.Verdict, d.Rule, d.Source, d.NoSession, d.Offers = core.Ask, rule, "hooks", true, nil
		d.Reason = strings.TrimSuffix("the "+rule+" asks: "+v.out.Reason, ": ")
		d.Why = []string{d.Reason}
	case v.out.Verdict == core.Allow && answers:
		d.Verdict, d.Rule, d.Source, d.Reason = core.Allow, rule, "hooks", "allowed by the "+rule
	}
	return d
}

// asker lets PermissionRequest hooks answer before the user.
type asker struct {
	core.Asker
	b *Bound
}

// Ask implements [core.Asker].
func (a *asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	b := a.b
	if q.Kind == core.QuestionPermission && q.Call != nil {
		out := b.of(q.Call.Session.ID).run(ctx, Input{Event: PermissionRequest}, Describe(q.Call, q.Accesses), q.Call)
		switch {
		case out.Blocked():
			return core.Answer{Choice: core.ChoiceDeny, Reason: fmt.Sprintf("the hook %q denies it: %s", clip(out.By, 200), out.Reason)}, nil
		case out.Decided && out.Verdict == core.Allow && b.mayAnswer(q.Call):
			return core.Answer{Choice: core.ChoiceOnce, Args: out.Input}, nil
		}
	}
	if a.Asker == nil {
		return core.Answer{}, core.ErrNonInteractive
	}
	kind := "permission_prompt"
	if q.Kind != core.QuestionPermission {
		kind = "elicitation_dialog"
	}
	b.run(ctx, Input{Event: Notification, Type: kind, Title: q.Title, Message: cmp.Or(q.Title, q.Detail)}, nil, nil)
	return a.Asker.Ask(ctx, q)
}

// mayAnswer reports whether a hook may approve a call of the session or of a subagent.
func (b *Bound) mayAnswer(call *core.Call) bool {
	v := b.verdict(call.Session.ID, call.ID)
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	return v != nil && v.answers
}

// watcher runs the FileChanged hooks.
type watcher struct {
	core.Watcher
	b *Bound
}

// Before implements [core.Watcher].
func (w *watcher) Before(ctx context.Context, call *core.Call, accesses []core.Access) func(context.Context) []event.Body {
	after := w.Watcher.Before(ctx, call, accesses)
	return func(ctx context.Context) []event.Body {
		bodies := after(ctx)
		for _, body := range bodies {
			if f, ok := body.(event.FilesChanged); ok {
				w.b.changed(ctx, f)
			}
		}
		return bodies
	}
}

func (b *Bound) changed(ctx context.Context, f event.FilesChanged) {
	kinds := map[string]string{"create": "add", "modify": "change", "rename": "change", "delete": "unlink"}
	for _, c := range f.Files {
		var path string
		_ = json.Unmarshal(absolute(f.Root, encode(c.Path)), &path)
		b.run(ctx, Input{Event: FileChanged, File: path, Change: kinds[c.Kind]}, nil, nil)
	}
}
