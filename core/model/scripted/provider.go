package scripted

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/model"
)

const providerName = "scripted"

// Options are the options of [Script.Provider]. The zero value is ready to use.
type Options struct {
	// Vars replace "${name}" in texts, arguments and messages, in arguments as
	// part of a JSON string. Other names are left unchanged.
	Vars map[string]string
	// Sleep waits for d, or until ctx ends and returns its error; nil means a
	// timer. It is called before each delta of a turn with a latency.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Name returns the name of the scripted model.
func (s *Script) Name() string { return s.name }

// Provider returns a provider that plays the script from its first turn. Each
// call of Stream that is ranged over plays the next turn. If its "when" does not
// match, the call fails with [model.CodeInvalidRequest] and the turn is still the
// next one.
func (s *Script) Provider(opts Options) model.Provider {
	p := &player{script: s, sleep: opts.Sleep, turns: make([]turn, len(s.turns))}
	if p.sleep == nil {
		p.sleep = sleep
	}
	plain, inJSON := replacers(opts.Vars)
	for i, t := range s.turns {
		p.turns[i] = t.replace(plain, inJSON)
	}
	return p
}

// replacers returns the replacers of variables in plain text and in JSON strings.
func replacers(vars map[string]string) (plain, inJSON *strings.Replacer) {
	var raw, escaped []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value := vars[name]
		quoted, _ := jsonText(value) // a string cannot fail
		raw = append(raw, "${"+name+"}", value)
		escaped = append(escaped, "${"+name+"}", quoted[1:len(quoted)-1])
	}
	return strings.NewReplacer(raw...), strings.NewReplacer(escaped...)
}

func (t turn) replace(plain, inJSON *strings.Replacer) turn {
	t.text, t.reasoning = plain.Replace(t.text), plain.Replace(t.reasoning)
	calls := make([]call, len(t.calls))
	for i, c := range t.calls {
		calls[i] = call{c.name, inJSON.Replace(c.args)}
	}
	t.calls = calls
	if t.failure != nil {
		failure := *t.failure
		failure.Message = plain.Replace(failure.Message)
		t.failure = &failure
	}
	return t
}

type player struct {
	script *Script
	turns  []turn
	sleep  func(context.Context, time.Duration) error

	mu   sync.Mutex
	next int
}

var _ model.Provider = (*player)(nil)

// Info implements [model.Provider].
func (p *player) Info() model.ProviderInfo {
	return model.ProviderInfo{Name: providerName, Model: p.script.name}
}

// Stream implements [model.Provider].
func (p *player) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(model.Delta{}, cancelled(err))
			return
		}
		t, err := p.take(req)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		for d := range t.deltas() {
			if err := p.wait(ctx, t.latency); err != nil {
				yield(model.Delta{}, cancelled(err))
				return
			}
			if d.Kind == model.DeltaDone {
				d.Model = p.script.name
				d.Usage = t.usageOf(req)
			}
			if !yield(d, nil) {
				return
			}
		}
		if t.failure != nil {
			failure := *t.failure
			yield(model.Delta{}, &failure)
		}
	}
}

// take returns the next turn if it matches the request.
func (p *player) take(req *model.Request) (turn, error) {
	var last *model.Message
	if n := len(req.Messages); n > 0 {
		last = &req.Messages[n-1]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.turns) {
		return turn{}, p.mismatch("all %d turns have been played, but there is another request: %s", len(p.turns), describe(last))
	}
	t := p.turns[p.next]
	if !t.when.matches(last) {
		return turn{}, p.mismatch("%s expects %s, but %s", t, t.when, describe(last))
	}
	p.next++
	return t, nil
}

func (p *player) mismatch(format string, args ...any) error {
	return &model.Error{
		Code: model.CodeInvalidRequest, Provider: providerName,
		Message: fmt.Sprintf("script %s: ", p.script.file) + fmt.Sprintf(format, args...),
	}
}

func (p *player) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d == 0 {
		return err
	}
	return p.sleep(ctx, d)
}

// cancelled returns the error of a call whose context ended.
func cancelled(cause error) error {
	return &model.Error{
		Code: model.AsError(cause).Code, Provider: providerName,
		Message: "cancelled: " + cause.Error(), Err: cause,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// deltas yields the deltas of the turn, without the failure. A turn that fails has
// no DeltaDone, and its last call has no end.
func (t turn) deltas() iter.Seq[model.Delta] {
	return func(yield func(model.Delta) bool) {
		index := 0
		for _, block := range []struct {
			kind model.DeltaKind
			text string
		}{{model.DeltaReasoning, t.reasoning}, {model.DeltaText, t.text}} {
			if block.text == "" {
				continue
			}
			for w := range words(block.text) {
				if !yield(model.Delta{Kind: block.kind, Index: index, Text: w}) {
					return
				}
			}
			index++
		}
		for i := range t.calls {
			if !t.callDeltas(i, index+i, yield) {
				return
			}
		}
		if t.failure == nil {
			yield(model.Delta{Kind: model.DeltaDone, Stop: t.stop, ResponseID: fmt.Sprintf("%s_%d", providerName, t.number)})
		}
	}
}

// callDeltas yields the deltas of the i-th call and reports whether to continue.
func (t turn) callDeltas(i, index int, yield func(model.Delta) bool) bool {
	c := t.calls[i]
	id := fmt.Sprintf("call_%d_%d", t.number, i+1)
	if !yield(model.Delta{Kind: model.DeltaToolStart, Index: index, ID: id, Name: c.name}) {
		return false
	}
	args, broken := c.args, t.failure != nil && i == len(t.calls)-1
	if broken {
		half := len(args) / 2
		for half > 0 && !utf8.RuneStart(args[half]) {
			half--
		}
		args = args[:half]
	}
	for w := range words(args) {
		if !yield(model.Delta{Kind: model.DeltaToolArgs, Index: index, Text: w}) {
			return false
		}
	}
	return broken || yield(model.Delta{Kind: model.DeltaToolEnd, Index: index})
}

// words splits a text after each run of white space.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end, space := len(text), false
			for i, r := range text {
				if space && !unicode.IsSpace(r) {
					end = i
					break
				}
				space = unicode.IsSpace(r)
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// usageOf returns the usage in the script, or an estimate.
func (t turn) usageOf(req *model.Request) model.Usage {
	if t.usage != nil {
		return *t.usage
	}
	in := model.TextParts(req.System).EstimateTokens()
	for _, d := range req.Tools {
		in += (len(d.Name) + len(d.Description) + len(d.Schema)) / 4
	}
	for _, m := range req.Messages {
		in += m.Parts.EstimateTokens()
	}
	thought := model.Parts{model.Reasoning{Text: t.reasoning}}.EstimateTokens()
	out := model.TextParts(t.text)
	for _, c := range t.calls {
		out = append(out, model.ToolCall{Name: c.name, Args: c.args})
	}
	return model.Usage{Input: in, Output: thought + out.EstimateTokens(), Reasoning: thought}
}
