package bead

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

// ErrSpent means that a model call might exceed the tokens of a task or a bead.
var ErrSpent = errors.New("the tokens are used up")

// What is reserved for each model call besides the conversation, in tokens.
const (
	reserveAnswer = 8192
	reserveTools  = 2000
	imageTokens   = 1600
)

// warnings are the percentages of the budget that are worth a warning.
var warnings = [...]int{50, 75, 90}

// lastShare is the percentage from which on only one more bead may begin.
const lastShare = 90

// purse counts the tokens of a task, which its beads share.
type purse struct {
	mu       sync.Mutex
	used     int
	reserved int
	limit    int // 0 = none
	cost     float64
	price    func(provider, model string, u model.Usage) (float64, bool)
	settled  func(bead, used int, cost float64)
}

// Meter counts the tokens of a bead's model calls, and refuses those that may not fit
// into what is left of its allowance and of the task's budget.
type Meter struct {
	task *purse
	bead int

	// These are guarded by the purse.
	used     int
	reserved int
	limit    int // 0 = none
	cost     float64
	spent    bool
}

// Spent reports whether a call was refused.
func (m *Meter) Spent() bool {
	m.task.mu.Lock()
	defer m.task.mu.Unlock()
	return m.spent
}

// total returns what the bead used.
func (m *Meter) total() (used int, cost float64) {
	m.task.mu.Lock()
	defer m.task.mu.Unlock()
	return m.used, m.cost
}

// Provider returns a provider whose calls are counted: before each, the tokens that
// it may use are reserved.
func (m *Meter) Provider(p model.Provider) model.Provider { return metered{p, m} }

type metered struct {
	model.Provider
	meter *Meter
}

// Stream implements [model.Provider].
func (p metered) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		estimate, answer := Estimate(req), req.MaxTokens
		if answer == 0 {
			answer = reserveAnswer
		}
		if err := p.meter.reserve(estimate + answer); err != nil {
			yield(model.Delta{}, &model.Error{Code: model.CodeInvalidRequest, Provider: p.Info().Name, Message: err.Error(), Err: err})
			return
		}
		var usage model.Usage
		name, begun := req.Model, false
		defer func() {
			if begun && usage.Total() == 0 { // unknown
				usage.Input = estimate
			}
			p.meter.settle(estimate+answer, p.Info().Name, name, usage)
		}()
		for d, err := range p.Provider.Stream(ctx, req) {
			begun = begun || err == nil
			if d.Usage.Total() > 0 {
				usage = d.Usage
			}
			if d.Model != "" {
				name = d.Model
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (m *Meter) reserve(n int) error {
	m.task.mu.Lock()
	defer m.task.mu.Unlock()
	left := m.task.limit - m.task.used - m.task.reserved
	if m.limit > 0 {
		left = min(left, m.limit-m.used-m.reserved)
	}
	if m.task.limit > 0 && n > left {
		m.spent = true
		return fmt.Errorf("%w: %d are left, the next call may use %d", ErrSpent, max(0, left), n)
	}
	m.reserved += n
	m.task.reserved += n
	return nil
}

func (m *Meter) settle(reserved int, provider, name string, u model.Usage) {
	t := m.task
	t.mu.Lock()
	defer t.mu.Unlock()
	m.reserved -= reserved
	t.reserved -= reserved
	m.used += u.Total()
	t.used += u.Total()
	if t.price != nil {
		if usd, ok := t.price(provider, name, u); ok {
			m.cost += usd
			t.cost += usd
		}
	}
	t.settled(m.bead, t.used, t.cost)
}

// Estimate returns about how many tokens a request has.
func Estimate(req *model.Request) int {
	n := len(req.System) / 4
	if len(req.Tools) > 0 {
		n += reserveTools
	}
	for _, m := range req.Messages {
		n += partTokens(m.Parts)
	}
	return n
}

func partTokens(parts model.Parts) (n int) {
	for _, p := range parts {
		switch p := p.(type) {
		case model.Text:
			n += len(p.Text)/4 + 1
		case model.Reasoning:
			n += len(p.Text)/4 + 1
		case model.ToolCall:
			n += len(p.Args)/4 + 8
		case model.ToolResult:
			n += partTokens(p.Content) + 8
		default:
			n += imageTokens
		}
	}
	return n
}
