package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// Quota bounds what a tenant may do. 0 is no bound.
type Quota struct {
	Sessions int     `json:"sessions,omitempty"` // that are kept
	Running  int     `json:"running,omitempty"`  // that are running or queued; more input is refused
	Tokens   int     `json:"tokens,omitempty"`   // input and output on a day of UTC; then input is refused
	CostUSD  float64 `json:"costUsd,omitempty"`  // the same
}

// QuotaError says which quota is used up.
type QuotaError struct{ Message string }

// Error implements error.
func (e *QuotaError) Error() string { return e.Message }

// Load is what a tenant has and used on a day.
type Load struct {
	Tenant    string        `json:"tenant"`
	Day       string        `json:"day"`
	Sessions  int           `json:"sessions"`
	Running   int           `json:"running"` // or queued
	Used      Usage         `json:"used"`
	States    map[State]int `json:"states"`
	Questions int           `json:"-"` // that are open
}

// Add adds a session.
func (l *Load) Add(s Session) {
	l.Sessions++
	l.States[s.State]++
	if s.State == StateRunning || s.State == StateQueued {
		l.Running++
	}
	l.Used = l.Used.Add(s.Usage[l.Day])
	l.Questions += len(s.Questions)
}

// LoadOf adds up what a tenant has, and used today, with the sessions that were deleted.
func LoadOf(ctx context.Context, e Engine, tenant string) (Load, error) {
	l := Load{Tenant: tenant, Day: Day(time.Now()), States: map[State]int{}}
	list, err := e.List(ctx, Filter{Tenant: tenant})
	if err != nil {
		return l, err
	}
	for _, s := range list {
		l.Add(s)
	}
	deleted, _, err := deleted(ctx, e, tenant, l.Day)
	l.Used = l.Used.Add(deleted)
	return l, err
}

// deletedOn names the value with what deleted sessions used on a day.
func deletedOn(day string) string { return "deleted-" + day }

func deleted(ctx context.Context, e Engine, tenant, day string) (u Usage, revision uint64, err error) {
	data, revision, err := e.Value(ctx, tenant, deletedOn(day))
	if err == nil && data != nil {
		err = json.Unmarshal(data, &u)
	}
	return u, revision, err
}

// remember keeps what a session used today, which is about to be deleted.
func remember(ctx context.Context, e Engine, s Session) error {
	day := Day(time.Now())
	used := s.Usage[day]
	if used == (Usage{}) {
		return nil
	}
	for {
		sum, revision, err := deleted(ctx, e, s.Tenant, day)
		if err != nil {
			return err
		}
		data, err := json.Marshal(sum.Add(used))
		if err != nil {
			return err
		}
		if err = e.SetValue(ctx, s.Tenant, deletedOn(day), data, revision); !errors.Is(err, core.ErrFenced) {
			return err
		}
	}
}

// Quotas refuse what tenants may not do. They are safe for concurrent use; nil refuses
// nothing.
type Quotas struct {
	engine Engine
	bounds map[string]Quota

	mu     sync.Mutex
	counts map[string]*counted // by tenant
}

// counted is when a tenant's load was last added up.
type counted struct {
	mu   sync.Mutex
	at   time.Time
	load Load
}

// countEvery is how old a load may be: to count, the whole index of a tenant is read.
// What this process admitted since is added.
const countEvery = 2 * time.Second

// NewQuotas returns the quotas of tenants, by their names; "" is for those without a line.
func NewQuotas(e Engine, bounds map[string]Quota) *Quotas {
	return &Quotas{engine: e, bounds: bounds, counts: map[string]*counted{}}
}

// Of returns the quota of a tenant.
func (q *Quotas) Of(tenant string) Quota {
	if q == nil {
		return Quota{}
	}
	if bound, ok := q.bounds[tenant]; ok {
		return bound
	}
	return q.bounds[""]
}

// Admit refuses input, or a new session, that the quota of the tenant does not allow, with
// a *[QuotaError], and counts it otherwise.
func (q *Quotas) Admit(ctx context.Context, tenant string, created, input bool) error {
	bound := q.Of(tenant)
	if bound == (Quota{}) {
		return nil
	}
	q.mu.Lock()
	c := q.counts[tenant]
	if c == nil {
		c = &counted{}
		q.counts[tenant] = c
	}
	q.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > countEvery {
		l, err := LoadOf(ctx, q.engine, tenant)
		if err != nil {
			return err
		}
		c.load, c.at = l, time.Now()
	}
	if err := bound.refuses(c.load, created, input); err != nil {
		return err
	}
	if created {
		c.load.Sessions++
	}
	if input {
		c.load.Running++
	}
	return nil
}

func (q Quota) refuses(l Load, created, input bool) error {
	over := func(format string, args ...any) error {
		return &QuotaError{fmt.Sprintf("the quota of tenant %s is used up: ", l.Tenant) + fmt.Sprintf(format, args...)}
	}
	switch {
	case created && q.Sessions > 0 && l.Sessions >= q.Sessions:
		return over("%d sessions; delete some", q.Sessions)
	case !input:
		return nil
	case q.Running > 0 && l.Running >= q.Running:
		return over("%d sessions at the same time; wait until one is done", q.Running)
	case q.Tokens > 0 && l.Used.Tokens.Total() >= q.Tokens:
		return over("%d tokens a day; wait until 00:00 UTC", q.Tokens)
	case q.CostUSD > 0 && l.Used.CostUSD >= q.CostUSD:
		return over("%.2f USD a day; wait until 00:00 UTC", q.CostUSD)
	}
	return nil
}
