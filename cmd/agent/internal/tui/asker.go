package tui

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// Asker puts questions to the person at the line session. It is a [core.Asker]
// that is made before the session is, and shows its questions as soon as [Run]
// does. Questions wait in a queue: one is on display at a time. It is safe for
// concurrent use.
type Asker struct {
	// Rules is the file that an answer "always" puts its rule into, for the
	// person to see; it is set before the first question, or left empty.
	Rules string

	mu      sync.Mutex
	queue   []*asked
	over    bool          // the line session has ended
	changed chan struct{} // holds a token when the head of the queue may be another
}

// asked is a question that waits for its answer.
type asked struct {
	core.Question
	reply chan core.Answer // holds one
	rules string           // the file of Asker.Rules
}

// NewAsker returns an Asker for one session and the [Run] over it.
func NewAsker() *Asker { return &Asker{changed: make(chan struct{}, 1)} }

// Ask implements [core.Asker]. After Run has ended it returns
// [core.ErrNonInteractive].
func (a *Asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if err := ctx.Err(); err != nil {
		return core.Answer{}, err
	}
	p := &asked{q, make(chan core.Answer, 1), a.Rules}
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

// bind says whether somebody is there. Questions asked before the first bind
// wait for it; the end of a line session takes those that still wait along.
func (a *Asker) bind(there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = !there
	if !there {
		for _, p := range a.queue {
			close(p.reply)
		}
		a.queue = nil
	}
	a.signal()
}

func (a *Asker) push(p *asked) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	a.queue = append(a.queue, p)
	a.signal()
	return true
}

func (a *Asker) remove(p *asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = slices.DeleteFunc(a.queue, func(other *asked) bool { return other == p })
	a.signal()
}

// front returns the question to display, or nil.
func (a *Asker) front() *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return nil
	}
	return a.queue[0]
}

// waiting returns how many questions stand behind the one on display.
func (a *Asker) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(0, len(a.queue)-1)
}

// answer answers a question, unless it was withdrawn.
func (a *Asker) answer(p *asked, answer core.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.queue, p) {
		return
	}
	a.queue = slices.DeleteFunc(a.queue, func(other *asked) bool { return other == p })
	p.reply <- answer
	a.signal()
}

func (a *Asker) signal() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
