package tui

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// Asker asks the user at the terminal. It is a [core.Asker] that is created
// before the session and shows questions as soon as [Run] is running. Questions
// are queued: one is shown at a time. It is safe for concurrent use.
type Asker struct {
	// Rules is the file to which an answer "always" adds its rule, for display.
	// It may be empty, and must be set before the first question.
	Rules string
	// Review returns what the user sees of the call that a question is about, or
	// nil. It may be nil, and must be set before the first question.
	Review func(ctx context.Context, q core.Question) *Review

	mu      sync.Mutex
	queue   []*pending
	ended   bool          // Run has ended
	listing bool          // a user can choose from lists
	copying bool          // the terminal has a clipboard
	changed chan struct{} // holds a token when the head of the queue may have changed
}

// pending is a question that waits for an answer.
type pending struct {
	core.Question
	reply chan core.Answer // holds one
	rules string           // Asker.Rules
	// review is nil if there is nothing to show.
	review *Review
	list   *List // to choose from; nil for other questions
	chosen int   // of the list, set before the answer; -1 if none
}

// NewAsker returns an Asker for one session and its [Run].
func NewAsker() *Asker { return &Asker{changed: make(chan struct{}, 1)} }

// Ask implements [core.Asker]. After Run has ended it returns
// [core.ErrNonInteractive].
func (a *Asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if err := ctx.Err(); err != nil {
		return core.Answer{}, err
	}
	p := &pending{Question: q, reply: make(chan core.Answer, 1), rules: a.Rules}
	if a.Review != nil && (q.Kind == core.QuestionPermission || q.Kind == core.QuestionConfirm) {
		p.review = a.Review(ctx, q)
	}
	return a.wait(ctx, p)
}

// wait shows a question and returns the answer.
func (a *Asker) wait(ctx context.Context, p *pending) (core.Answer, error) {
	if !a.push(p) {
		return core.Answer{}, core.ErrNonInteractive
	}
	select {
	case answer, ok := <-p.reply:
		if !ok {
			return core.Answer{}, core.ErrNonInteractive
		}
		return answer, nil
	case <-ctx.Done():
		a.remove(p)
		return core.Answer{}, ctx.Err()
	}
}

// bind tells whether Run is running. Questions asked before wait for it; when it
// ends, those that still wait get [core.ErrNobody].
func (a *Asker) bind(running bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = !running
	if !running {
		for _, p := range a.queue {
			close(p.reply)
		}
		a.queue = nil
	}
	a.signal()
}

func (a *Asker) push(p *pending) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return false
	}
	a.queue = append(a.queue, p)
	a.signal()
	return true
}

func (a *Asker) remove(p *pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = slices.DeleteFunc(a.queue, func(other *pending) bool { return other == p })
	a.signal()
}

// front returns the question to show, or nil.
func (a *Asker) front() *pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return nil
	}
	return a.queue[0]
}

// waiting returns the number of questions behind the one that is shown.
func (a *Asker) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(0, len(a.queue)-1)
}

// answer answers a question, unless it was withdrawn.
func (a *Asker) answer(p *pending, answer core.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.queue, p) {
		return
	}
	a.queue = slices.DeleteFunc(a.queue, func(other *pending) bool { return other == p })
	p.reply <- answer
	a.signal()
}

func (a *Asker) signal() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
