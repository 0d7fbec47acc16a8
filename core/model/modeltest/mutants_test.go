package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// CheckMutants checks that [TestProvider] detects a provider that loses or changes
// anything: it modifies the providers of the factory in one way after another, and
// expects the responsible check to fail.
func CheckMutants(t *testing.T, factory Factory, options ...Option) {
	original := newSuite(t, factory, options)
	for _, c := range checks {
		if c.slow {
			continue
		}
		if p := original.firstProblem(t, c.name); p != "" {
			t.Fatalf("the unmodified provider has a problem: %s", p)
		}
	}
	for _, m := range mutants {
		modified := func(tb testing.TB, e Endpoint) model.Provider { return &mutated{Provider: factory(tb, e), mutant: m} }
		s := newSuite(t, modified, options)
		if m.needs != nil && !m.needs(&s.traits) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			found := s.firstProblem(t, m.by)
			if found == "" {
				t.Errorf("the check %s does not detect it", m.by)
			}
			t.Logf("detected: %.300s", found)
		})
	}
}

// firstProblem returns the first problem that a check finds.
func (s *suite) firstProblem(t *testing.T, name string) string {
	s.tb, s.first = t, true
	at := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	if problems := s.run(t.Context(), checks[at]); len(problems) > 0 {
		return problems[0]
	}
	return ""
}

// mutant is one way to modify a provider. A nil function changes nothing.
type mutant struct {
	name    string
	by      string             // the check that must detect it
	needs   func(*traits) bool // whether the API has what is modified; nil means yes
	info    func(*model.ProviderInfo)
	request func(*model.Request)                               // changes a copy
	delta   func(d model.Delta) []model.Delta                  // yielded instead
	end     func(e *model.Error) (instead error, silence bool) // changes a copy
}

// mutated is a modified provider.
type mutated struct {
	model.Provider
	mutant mutant
}

// Info implements [model.Provider].
func (m *mutated) Info() model.ProviderInfo {
	info := m.Provider.Info()
	if m.mutant.info != nil {
		m.mutant.info(&info)
	}
	return info
}

// Stream implements [model.Provider].
func (m *mutated) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	if m.mutant.request != nil {
		req = copyRequest(req)
		m.mutant.request(req)
	}
	return func(yield func(model.Delta, error) bool) {
		for d, err := range m.Provider.Stream(ctx, req) {
			if !m.pass(d, err, yield) {
				return
			}
		}
	}
}

// pass yields an element, modified, and reports whether to continue.
func (m *mutated) pass(d model.Delta, err error, yield func(model.Delta, error) bool) bool {
	var known *model.Error
	if errors.As(err, &known) && m.mutant.end != nil {
		e := *known
		instead, silence := m.mutant.end(&e)
		return !silence && yield(d, instead)
	}
	if err != nil || m.mutant.delta == nil {
		return yield(d, err)
	}
	for _, changed := range m.mutant.delta(d) {
		if !yield(changed, nil) {
			return false
		}
	}
	return true
}

// copyRequest copies a request as deeply as mutants change it.
func copyRequest(req *model.Request) *model.Request {
	c := *req
	c.Tools = slices.Clone(req.Tools)
	c.Messages = slices.Clone(req.Messages)
	for i, m := range c.Messages {
		c.Messages[i].Parts = slices.Clone(m.Parts)
	}
	return &c
}

// changed changes deltas of a kind.
func changed(kind model.DeltaKind, change func(*model.Delta)) func(model.Delta) []model.Delta {
	return func(d model.Delta) []model.Delta {
		if d.Kind == kind {
			change(&d)
		}
		return []model.Delta{d}
	}
}

// dropped drops deltas of a kind.
func dropped(kind model.DeltaKind) func(model.Delta) []model.Delta {
	return func(d model.Delta) []model.Delta {
		if d.Kind == kind {
			return nil
		}
		return []model.Delta{d}
	}
}

// uncounted changes the usage of all deltas.
func uncounted(change func(*model.Usage)) func(model.Delta) []model.Delta {
	return func(d model.Delta) []model.Delta {
		change(&d.Usage)
		return []model.Delta{d}
	}
}

// eachPart changes the parts of all messages of a request, including those of
// results. A part replaced by nil is dropped.
func eachPart(change func(model.Part) model.Part) func(*model.Request) {
	var apply func(parts model.Parts) model.Parts
	apply = func(parts model.Parts) model.Parts {
		var out model.Parts
		for _, p := range parts {
			if r, ok := p.(model.ToolResult); ok {
				r.Content = apply(r.Content)
				p = r
			}
			if p = change(p); p != nil {
				out = append(out, p)
			}
		}
		return out
	}
	return func(req *model.Request) {
		for i := range req.Messages {
			req.Messages[i].Parts = apply(req.Messages[i].Parts)
		}
	}
}

// part changes the parts of one type.
func part[P model.Part](change func(P) model.Part) func(*model.Request) {
	return eachPart(func(p model.Part) model.Part {
		if own, ok := p.(P); ok {
			return change(own)
		}
		return p
	})
}

// failed changes errors.
func failed(change func(*model.Error)) func(*model.Error) (error, bool) {
	return func(e *model.Error) (error, bool) {
		change(e)
		return e, false
	}
}

func hasState(t *traits) bool { return t.state }

// mutants covers each field that a provider sets or reads.
var mutants = slices.Concat(infoMutants, deltaMutants, usageMutants, errorMutants, requestMutants, partMutants)

var infoMutants = []mutant{
	{name: "info without name", by: "Info", info: func(i *model.ProviderInfo) { i.Name = "" }},
	{name: "info with another name", by: "Faults", info: func(i *model.ProviderInfo) { i.Name += "-2" }},
	{name: "info without model", by: "Info", info: func(i *model.ProviderInfo) { i.Model = "" }},
	{name: "info without endpoint", by: "Info", info: func(i *model.ProviderInfo) { i.Endpoint = "" }},
	{name: "info with the key", by: "Info", info: func(i *model.ProviderInfo) { i.Endpoint += "?key=" + secret }},
}

var deltaMutants = []mutant{
	{name: "no text", by: "Text", delta: dropped(model.DeltaText)},
	{name: "text cut", by: "Text", delta: changed(model.DeltaText, func(d *model.Delta) { d.Text = d.Text[1:] })},
	{name: "text trimmed", by: "Text", delta: changed(model.DeltaText, func(d *model.Delta) { d.Text = strings.TrimRight(d.Text, "\n") })},
	{name: "text twice", by: "Text", delta: func(d model.Delta) []model.Delta {
		if d.Kind == model.DeltaText {
			return []model.Delta{d, d}
		}
		return []model.Delta{d}
	}},
	{name: "no reasoning", by: "Text", delta: func(d model.Delta) []model.Delta {
		_, signed := d.Part.(model.Reasoning)
		if d.Kind == model.DeltaReasoning || signed {
			return nil
		}
		return []model.Delta{d}
	}},
	{name: "reasoning as text", by: "Text", delta: changed(model.DeltaReasoning, func(d *model.Delta) { d.Kind = model.DeltaText })},
	{name: "no parts", by: "State", needs: hasState, delta: dropped(model.DeltaPart)},
	{name: "signature changed", by: "State", needs: func(t *traits) bool { return t.redacts }, delta: changed(model.DeltaPart, func(d *model.Delta) {
		if p, ok := d.Part.(model.Reasoning); ok {
			p.Signature += "x"
			d.Part = p
		}
	})},
	{name: "state changed", by: "State", needs: hasState, delta: changed(model.DeltaPart, func(d *model.Delta) {
		if p, ok := d.Part.(model.Opaque); ok {
			p.Raw = json.RawMessage(strings.ReplaceAll(string(p.Raw), "=", "x"))
			d.Part = p
		}
	})},
	{name: "state without a provider", by: "State", needs: hasState, delta: changed(model.DeltaPart, func(d *model.Delta) {
		if p, ok := d.Part.(model.Opaque); ok {
			p.Provider = ""
			d.Part = p
		}
	})},
	{name: "no call", by: "Calls", delta: func(d model.Delta) []model.Delta {
		if d.Kind == model.DeltaToolStart || d.Kind == model.DeltaToolArgs || d.Kind == model.DeltaToolEnd {
			return nil
		}
		return []model.Delta{d}
	}},
	{name: "call id changed", by: "Calls", delta: changed(model.DeltaToolStart, func(d *model.Delta) { d.ID = "call_x" })},
	{name: "no call id", by: "Calls", delta: changed(model.DeltaToolStart, func(d *model.Delta) { d.ID = "" })},
	{name: "no call name", by: "Calls", delta: changed(model.DeltaToolStart, func(d *model.Delta) { d.Name = "" })},
	{name: "call name changed", by: "Calls", delta: changed(model.DeltaToolStart, func(d *model.Delta) { d.Name = "x" })},
	{name: "one index for all calls", by: "Calls", delta: func(d model.Delta) []model.Delta {
		d.Index = 0
		return []model.Delta{d}
	}},
	{name: "no arguments", by: "Calls", delta: dropped(model.DeltaToolArgs)},
	{name: "arguments without spaces", by: "Calls", delta: changed(model.DeltaToolArgs, func(d *model.Delta) { d.Text = strings.ReplaceAll(d.Text, " ", "") })},
	{name: "arguments unescaped", by: "Calls", delta: changed(model.DeltaToolArgs, func(d *model.Delta) { d.Text = strings.ReplaceAll(d.Text, `\u00e9`, "é") })},
	{name: "big number rounded", by: "Calls", delta: changed(model.DeltaToolArgs, func(d *model.Delta) { d.Text = strings.ReplaceAll(d.Text, "67890", "67000") })},
	{name: "no end of a call", by: "Calls", delta: dropped(model.DeltaToolEnd)},
	{name: "no response id", by: "Text", delta: changed(model.DeltaDone, func(d *model.Delta) { d.ResponseID = "" })},
	{name: "no model", by: "Text", delta: changed(model.DeltaDone, func(d *model.Delta) { d.Model = "" })},
	{name: "no stop reason", by: "Text", delta: changed(model.DeltaDone, func(d *model.Delta) { d.Stop = "" })},
	{name: "always ended", by: "StopReasons", delta: changed(model.DeltaDone, func(d *model.Delta) { d.Stop = model.StopEnd })},
	{name: "never cut", by: "StopReasons", delta: changed(model.DeltaDone, func(d *model.Delta) {
		if d.Stop == model.StopMaxTokens {
			d.Stop = model.StopEnd
		}
	})},
	{name: "never filtered", by: "StopReasons", delta: changed(model.DeltaDone, func(d *model.Delta) {
		if d.Stop == model.StopContentFilter || d.Stop == model.StopRefusal {
			d.Stop = model.StopEnd
		}
	})},
	{name: "no end", by: "Text", delta: dropped(model.DeltaDone)},
	{name: "two ends", by: "Text", delta: func(d model.Delta) []model.Delta {
		if d.Kind == model.DeltaDone {
			return []model.Delta{d, d}
		}
		return []model.Delta{d}
	}},
}

var usageMutants = []mutant{
	{name: "no usage delta", by: "Usage", delta: dropped(model.DeltaUsage)},
	{name: "no input", by: "Usage", delta: uncounted(func(u *model.Usage) { u.Input = 0 })},
	{name: "input without what is cached", by: "Usage", delta: uncounted(func(u *model.Usage) { u.Input -= u.CachedInput })},
	{name: "no cached input", by: "Usage", delta: uncounted(func(u *model.Usage) { u.CachedInput = 0 })},
	{name: "no cache writes", by: "Usage", needs: func(t *traits) bool { return t.writes }, delta: uncounted(func(u *model.Usage) { u.CacheWrite = 0 })},
	{name: "no output", by: "Usage", delta: uncounted(func(u *model.Usage) { u.Output = 0 })},
	{name: "output without reasoning", by: "Usage", delta: uncounted(func(u *model.Usage) { u.Output -= u.Reasoning })},
	{name: "no reasoning tokens", by: "Usage", delta: uncounted(func(u *model.Usage) { u.Reasoning = 0 })},
}

var errorMutants = []mutant{
	{name: "silence instead of an error", by: "Faults", end: func(*model.Error) (error, bool) { return nil, true }},
	{name: "untyped error", by: "Faults", end: func(e *model.Error) (error, bool) { return errors.New(e.Error()), false }},
	{name: "no code", by: "Faults", end: failed(func(e *model.Error) { e.Code = model.CodeUnknown })},
	{name: "no provider", by: "Faults", end: failed(func(e *model.Error) { e.Provider = "" })},
	{name: "no status", by: "Faults", end: failed(func(e *model.Error) { e.Status = 0 })},
	{name: "no request id", by: "Faults", needs: func(t *traits) bool { return t.requestIDs }, end: failed(func(e *model.Error) { e.RequestID = "" })},
	{name: "no wait", by: "Faults", end: failed(func(e *model.Error) { e.RetryAfter = 0 })},
	{name: "the key in the message", by: "Faults", end: failed(func(e *model.Error) { e.Message += secret })},
	{name: "always retried", by: "Faults", end: failed(func(e *model.Error) { e.Code = model.CodeNetwork })},
}

var requestMutants = []mutant{
	{name: "no system prompt", by: "Wire", request: func(r *model.Request) { r.System = "" }},
	{name: "model ignored", by: "Wire", request: func(r *model.Request) { r.Model = "" }},
	{name: "no tools", by: "Wire", request: func(r *model.Request) { r.Tools = nil }},
	{name: "no tool descriptions", by: "Wire", request: eachTool(func(d *model.ToolDef) { d.Description = "" })},
	{name: "tool names changed", by: "Wire", request: eachTool(func(d *model.ToolDef) { d.Name += "_" })},
	{name: "no tool schemas", by: "Wire", request: eachTool(func(d *model.ToolDef) { d.Schema = nil })},
	{name: "no tool choice", by: "Wire", request: func(r *model.Request) { r.ToolChoice = "" }},
	{name: "no effort", by: "Wire", request: func(r *model.Request) { r.Effort = "" }},
	{name: "no limit", by: "Wire", request: func(r *model.Request) { r.MaxTokens = 0 }},
	{name: "no temperature", by: "Wire", request: func(r *model.Request) { r.Temperature = nil }},
	{name: "an unrequested temperature", by: "Wire", request: func(r *model.Request) { r.Temperature = new(float64) }},
	{name: "no schema of the answer", by: "Wire", request: func(r *model.Request) { r.OutputSchema = nil }},
	{name: "no provider options", by: "Wire", request: func(r *model.Request) { r.ProviderOptions = nil }},
	{name: "first message only", by: "Results", request: func(r *model.Request) { r.Messages = r.Messages[:1] }},
	{name: "the time in the system prompt", by: "StablePrefix", request: withClock()},
}

// withClock changes the system prompt with each request.
func withClock() func(*model.Request) {
	return func(r *model.Request) {
		if len(r.Messages) > 3 && r.System != "" {
			r.System += strings.Repeat(".", len(r.Messages))
		}
	}
}

func eachTool(change func(*model.ToolDef)) func(*model.Request) {
	return func(r *model.Request) {
		for i := range r.Tools {
			change(&r.Tools[i])
		}
	}
}

var partMutants = []mutant{
	{name: "no texts", by: "Wire", request: part(func(model.Text) model.Part { return model.Text{Text: "x"} })},
	{name: "no images", by: "Images", request: part(func(model.Image) model.Part { return nil })},
	{name: "image bytes changed", by: "Images", request: part(func(p model.Image) model.Part {
		if len(p.Data) > 0 {
			p.Data = p.Data[1:]
		}
		return p
	})},
	{name: "media type changed", by: "Images", request: part(func(p model.Image) model.Part {
		p.MediaType = "image/gif"
		return p
	})},
	{name: "no images in results", by: "Images", request: part(func(p model.ToolResult) model.Part {
		p.Content = slices.DeleteFunc(slices.Clone(p.Content), func(c model.Part) bool {
			_, ok := c.(model.Image)
			return ok
		})
		return p
	})},
	{name: "calls under another name", by: "Results", request: part(func(p model.ToolCall) model.Part {
		p.Name += "_"
		return p
	})},
	{name: "call arguments lost", by: "Results", request: part(func(p model.ToolCall) model.Part {
		p.Args = "{}"
		return p
	})},
	{name: "call arguments rounded", by: "Results", request: part(func(p model.ToolCall) model.Part {
		p.Args = strings.ReplaceAll(p.Args, "67890", "67000")
		return p
	})},
	{name: "result ids changed", by: "Results", request: part(func(p model.ToolResult) model.Part {
		p.CallID += "_"
		return p
	})},
	{name: "no failures", by: "Results", request: part(func(p model.ToolResult) model.Part {
		p.IsError = false
		return p
	})},
	{name: "results empty", by: "Results", request: part(func(p model.ToolResult) model.Part {
		p.Content = nil
		return p
	})},
	{name: "no state", by: "State", needs: hasState, request: eachPart(func(p model.Part) model.Part {
		switch p.(type) {
		case model.Opaque, model.Reasoning:
			return nil
		}
		return p
	})},
	{name: "unknown parts dropped", by: "Results", request: part(func(model.Unknown) model.Part { return nil })},
}
