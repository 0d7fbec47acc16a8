package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// Caller is for whom a request is made. What a server wants to know of a person
// in between goes there. The zero value has nobody: questions are declined.
type Caller struct {
	Session  core.SessionInfo
	Ask      func(ctx context.Context, q core.Question) (core.Answer, error) // nil = nobody
	Progress func(core.Progress)                                             // nil = nobody wants to know
}

// pending is a request that is under way.
type pending struct {
	Caller
	ctx    context.Context // of the request
	pause  func()          // stops its clock, while a person is asked
	resume func()

	mu     sync.Mutex
	rounds int // requests for sampling that it led to
}

type pendingKey struct{}

// pendingOf returns the request that a context belongs to, or nil.
func pendingOf(ctx context.Context) *pending {
	p, _ := ctx.Value(pendingKey{}).(*pending)
	return p
}

// requests are those under way on a connection, the latest last.
type requests struct {
	mu   sync.Mutex
	list []*pending
}

// begin notes a request, and puts it into the context that it is made with. The
// caller calls end.
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

// latest is the request that a question belongs to which does not say to which
// one it does: where everything goes through one stream, the protocol has no
// word for it.
func (r *requests) latest() *pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return nil
	}
	return r.list[len(r.list)-1]
}

// ask puts a question to the request's person, whose time does not count.
func (p *pending) ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if p == nil || p.Ask == nil {
		return core.Answer{}, core.ErrNobody
	}
	p.pause()
	defer p.resume()
	return p.Ask(ctx, q)
}
