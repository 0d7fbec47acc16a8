package hooks

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// Provider returns a provider that runs the Stop hooks before a last answer ends, and
// those of compactions around the request for a summary.
func (b *Bound) Provider(p model.Provider) model.Provider {
	if b == nil || p == nil {
		return p
	}
	b.mu.Lock()
	b.provider = p
	b.mu.Unlock()
	if !b.may(SessionStart, Stop, SubagentStop, PreCompact, PostCompact) {
		return p
	}
	return &provider{p, b}
}

type provider struct {
	model.Provider
	b *Bound
}

// DefersTools implements [model.Deferrer].
func (p *provider) DefersTools(name string) bool { return model.DefersTools(p.Provider, name) }

// Stream implements [model.Provider]. A request that BeforeModel has not seen asks for
// a summary.
func (p *provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	p.b.mu.Lock()
	answer := p.b.answer == req
	p.b.mu.Unlock()
	return func(yield func(model.Delta, error) bool) {
		if !answer {
			if err := p.b.compacting(ctx); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
		// An answer can be long: it is only kept for hooks that there are.
		kept := p.b.has(Stop, SubagentStop, PostCompact, SessionStart)
		var text strings.Builder
		calls := false
		for d, err := range p.Provider.Stream(ctx, req) {
			switch d.Kind {
			case model.DeltaText:
				if kept {
					text.WriteString(d.Text)
				}
			case model.DeltaToolStart:
				calls = true
			case model.DeltaRetry:
				if d.Retry != nil && d.Retry.Discard {
					text.Reset()
					calls = false
				}
			case model.DeltaDone:
				ended := d.Stop == model.StopEnd || d.Stop == model.StopOther
				switch {
				case err != nil || calls || !ended || strings.TrimSpace(text.String()) == "":
				case answer:
					p.b.stop(ctx, text.String())
				default:
					if more := p.b.compacted(ctx, text.String()); more != "" && !yield(model.Delta{Kind: model.DeltaText, Text: more}, nil) {
						return
					}
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// stop runs the Stop hooks, which may have the model continue.
func (b *Bound) stop(ctx context.Context, text string) {
	kind := Stop
	if len(b.cfg.AgentPath) > 0 {
		kind = SubagentStop
	}
	b.mu.Lock()
	active := b.stops > 0
	b.mu.Unlock()
	out := b.run(ctx, Input{Event: kind, StopHookActive: &active, LastMessage: text}, nil, nil)
	s := b.session.Load()
	if s == nil || out.Stop || ctx.Err() != nil {
		return
	}
	if !out.Blocked() {
		return
	}
	b.mu.Lock()
	b.stops++
	most := b.stops > maxContinues
	b.mu.Unlock()
	if most {
		s.Warn(ctx, "HOOK", fmt.Sprintf("the hook %q wants the agent to continue for the %dth time in a row: that is ignored", clip(out.By, 200), maxContinues+1))
		return
	}
	s.Notify(said(out.By, out.Reason))
}

// compacting runs the PreCompact hooks. The error is that of one that blocks.
func (b *Bound) compacting(ctx context.Context) error {
	b.mu.Lock()
	focus := b.focus
	b.mu.Unlock()
	out := b.run(ctx, Input{Event: PreCompact, Trigger: b.trigger(), Instructions: focus}, nil, nil)
	if out.Blocked() {
		return fmt.Errorf("the hook %q blocks the compaction: %s", clip(out.By, 200), out.Reason)
	}
	return nil
}

// compacted runs the hooks after a compaction, and returns what they add to the
// summary.
func (b *Bound) compacted(ctx context.Context, summary string) string {
	b.run(ctx, Input{Event: PostCompact, Trigger: b.trigger(), Summary: summary}, nil, nil)
	if len(b.cfg.AgentPath) > 0 {
		return ""
	}
	out := b.run(ctx, Input{Event: SessionStart, Source: "compact", Model: b.cfg.Model}, nil, nil)
	return strings.Join(append([]string{""}, out.Context...), "\n\n")
}

// trigger says who asked for the compaction.
func (b *Bound) trigger() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.manual {
		return "manual"
	}
	return "auto"
}
