package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/service"
)

// Quota bounds what a tenant may do. 0 is no bound.
type Quota struct {
	Sessions int     `json:"sessions,omitempty"` // that are kept
	Running  int     `json:"running,omitempty"`  // that are running or queued; more input is refused
	Tokens   int     `json:"tokens,omitempty"`   // input and output on a day of UTC; then input is refused
	CostUSD  float64 `json:"costUsd,omitempty"`  // the same
}

// usage is what a tenant has and used today.
type usage struct {
	Tenant   string                `json:"tenant"`
	Day      string                `json:"day"`
	Sessions int                   `json:"sessions"`
	Running  int                   `json:"running"` // or queued
	Used     service.Usage         `json:"used"`
	Quota    Quota                 `json:"quota"`
	States   map[service.State]int `json:"states"`

	questions int
}

// counted is when a tenant's usage was last added up.
type counted struct {
	mu    sync.Mutex
	at    time.Time
	usage usage
}

// countEvery is how old a usage may be: to count, the whole index of a tenant is read.
// What this process created since is added.
const countEvery = 2 * time.Second

// deletedOn names the value with what deleted sessions used on a day.
func deletedOn(day string) string { return "deleted-" + day }

func (a *API) quota(tenant string) Quota {
	if q, ok := a.opts.Quotas[tenant]; ok {
		return q
	}
	return a.opts.Quotas[""]
}

// count adds up what a tenant has and used today.
func (a *API) count(ctx context.Context, tenant string) (usage, error) {
	day := service.Day(time.Now())
	u := usage{Tenant: tenant, Day: day, Quota: a.quota(tenant), States: map[service.State]int{}}
	list, err := a.opts.Engine.List(ctx, service.Filter{Tenant: tenant})
	if err != nil {
		return u, err
	}
	for _, s := range list {
		u.add(s)
	}
	deleted, _, err := a.deleted(ctx, tenant, day)
	u.Used = u.Used.Add(deleted)
	return u, err
}

func (u *usage) add(s service.Session) {
	u.Sessions++
	u.States[s.State]++
	if s.State == service.StateRunning || s.State == service.StateQueued {
		u.Running++
	}
	u.Used = u.Used.Add(s.Usage[u.Day])
	u.questions += len(s.Questions)
}

func (a *API) deleted(ctx context.Context, tenant, day string) (u service.Usage, revision uint64, err error) {
	data, revision, err := a.opts.Engine.Value(ctx, tenant, deletedOn(day))
	if err == nil && data != nil {
		err = json.Unmarshal(data, &u)
	}
	return u, revision, err
}

// remember keeps what a session used today, which is about to be deleted.
func (a *API) remember(ctx context.Context, s service.Session) error {
	day := service.Day(time.Now())
	used := s.Usage[day]
	if used == (service.Usage{}) {
		return nil
	}
	for {
		sum, revision, err := a.deleted(ctx, s.Tenant, day)
		if err != nil {
			return err
		}
		data, err := json.Marshal(sum.Add(used))
		if err != nil {
			return err
		}
		if err = a.opts.Engine.SetValue(ctx, s.Tenant, deletedOn(day), data, revision); !errors.Is(err, core.ErrFenced) {
			return err
		}
	}
}

// admit refuses input, or a new session, that the quota of the tenant does not allow,
// and counts it otherwise.
func (a *API) admit(ctx context.Context, tenant string, created, input bool) error {
	q := a.quota(tenant)
	if q == (Quota{}) {
		return nil
	}
	a.mu.Lock()
	c := a.counts[tenant]
	if c == nil {
		c = &counted{}
		a.counts[tenant] = c
	}
	a.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > countEvery {
		u, err := a.count(ctx, tenant)
		if err != nil {
			return err
		}
		c.usage, c.at = u, time.Now()
	}
	if err := c.usage.refuses(q, created, input); err != nil {
		return err
	}
	if created {
		c.usage.Sessions++
	}
	if input {
		c.usage.Running++
	}
	return nil
}

func (u *usage) refuses(q Quota, created, input bool) error {
	over := func(what string) error {
		return &failure{http.StatusTooManyRequests, "quota", fmt.Sprintf("the quota of tenant %s is used up: %s", u.Tenant, what)}
	}
	switch {
	case created && q.Sessions > 0 && u.Sessions >= q.Sessions:
		return over(fmt.Sprintf("%d sessions; delete some", q.Sessions))
	case !input:
		return nil
	case q.Running > 0 && u.Running >= q.Running:
		return over(fmt.Sprintf("%d sessions at the same time; wait until one is done", q.Running))
	case q.Tokens > 0 && u.Used.Tokens.Total() >= q.Tokens:
		return over(fmt.Sprintf("%d tokens a day; wait until 00:00 UTC", q.Tokens))
	case q.CostUSD > 0 && u.Used.CostUSD >= q.CostUSD:
		return over(fmt.Sprintf("%.2f USD a day; wait until 00:00 UTC", q.CostUSD))
	}
	return nil
}

func (a *API) usage(w http.ResponseWriter, req *http.Request, t Token) error {
	u, err := a.count(req.Context(), t.Tenant)
	if err != nil {
		return err
	}
	a.answerWith(w, http.StatusOK, u)
	return nil
}
