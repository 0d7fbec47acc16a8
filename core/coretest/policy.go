package coretest

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// FixedPolicy is a [core.Policy] with the same verdict on everything. Unless it
// denies, it grants exactly the accesses of the call.
type FixedPolicy core.Verdict

// The fixed policies.
const (
	DenyAll  = FixedPolicy(core.Deny)
	AskAll   = FixedPolicy(core.Ask)
	AllowAll = FixedPolicy(core.Allow)
)

var (
	_ core.Policy = AllowAll
	_ core.Policy = (*PolicyRecorder)(nil)
	_ core.Asker  = Asker(nil)
)

// Decide implements [core.Policy].
func (p FixedPolicy) Decide(_ context.Context, req core.PermissionRequest) core.Decision {
	d := core.Decision{
		Verdict: core.Verdict(p), Rule: "coretest " + core.Verdict(p).String(), Source: "coretest",
		Reason: "the test's policy says " + core.Verdict(p).String(),
	}
	if d.Verdict != core.Deny {
		d.Grants = make([]core.Grant, len(req.Accesses))
		for i, a := range req.Accesses {
			d.Grants[i] = core.Grant{Access: a}
		}
	}
	return d
}

// PolicyRecorder is a policy that records its requests.
type PolicyRecorder struct {
	policy core.Policy

	mu       sync.Mutex
	requests []core.PermissionRequest
}

// RecordPolicy wraps a policy with a recorder.
func RecordPolicy(p core.Policy) *PolicyRecorder { return &PolicyRecorder{policy: p} }

// Decide implements [core.Policy].
func (r *PolicyRecorder) Decide(ctx context.Context, req core.PermissionRequest) core.Decision {
	r.mu.Lock()
	r.requests = append(r.requests, req)
	r.mu.Unlock()
	return r.policy.Decide(ctx, req)
}

// Requests returns the requests so far, in order.
func (r *PolicyRecorder) Requests() []core.PermissionRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Asker is a [core.Asker] made from a function: the user in a test.
type Asker func(ctx context.Context, q core.Question) (core.Answer, error)

// Ask implements [core.Asker]. The function must return when ctx is done; its
// answer is ignored then.
func (a Asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if err := ctx.Err(); err != nil {
		return core.Answer{}, err
	}
	answer, err := a(ctx, q)
	if ctx.Err() != nil {
		return core.Answer{}, ctx.Err()
	}
	return answer, err
}

// AlwaysAnswer is an Asker that gives the same answer to everything.
func AlwaysAnswer(c core.Choice) Asker {
	return func(context.Context, core.Question) (core.Answer, error) { return core.Answer{Choice: c}, nil }
}
