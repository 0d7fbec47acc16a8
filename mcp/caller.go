package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// Caller is who a request is made for, and who answers the server's questions
// about it. The zero value declines all questions.
type Caller struct {
	Session  core.SessionInfo
	Ask      func(ctx context.Context, q core.Question) (core.Answer, error) // nil if nobody can answer
	Progress func(core.Progress)                                             // may be nil
}

// pending is a request in progress.
type pending struct {
	Caller
	ctx    context.Context // of the request
	pause  func()          // stops its clock while the user is asked
	resume func()

	mu     sync.Mutex
	rounds int // sampling requests during it
}

type pendingKey struct{}

// pendingOf returns the request that a context belongs to, or nil.
func pendingOf(ctx context.Context) *pending {
	p, _ := ctx.Value(pendingKey{}).(*pending)
	return p
}

// requests are those in progress on a connection, the latest last.
type requests struct {
	mu   sync.Mutex
	list []*pending
}

// begin registers a request and returns the context to make it with. The caller
// calls end.
func (r *requests) begin(ctx context.Context, c Caller) (_ context.Context, p *pending, end func()) {
	p = &pending{Caller: c, pause: func() {}, resume: func() {}}
	p.ctx = context.WithValue(ctx, pendingKey{}, p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, p)
	return p.ctx, p, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = slices.DeleteFunc(r.list, func(o *pending) bool { return o == p })
	}
}

// latest returns the request that a server's question is taken to belong to.
// Where one stream carries everything, the protocol does not say which it is.
func (r *requests) latest() *pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return nil
	}
	return r.list[len(r.list)-1]
}

// ask asks the request's user. The clock of the request stops meanwhile.
func (p *pending) ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if p == nil || p.Ask == nil {
		return core.Answer{}, core.ErrNonInteractive
	}
	p.pause()
	defer p.resume()
	return p.Ask(ctx, q)
}
