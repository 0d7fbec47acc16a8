package insight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// Facts is what must be known about models to add up costs. Either function may say that
// it does not know.
type Facts struct {
	Price  func(provider, model string, u model.Usage) (usd float64, known bool)
	Window func(provider, model string) int // tokens of the context window; 0 = unknown
}

// Work is time, tokens and cost.
type Work struct {
	Sessions int         `json:"sessions"`
	Calls    int         `json:"modelCalls"`
	Millis   int64       `json:"durationMs"`
	Usage    model.Usage `json:"usage"`
	CostUSD  float64     `json:"costUsd"`
	// Unpriced are the model calls that CostUSD lacks, because their price is unknown.
	Unpriced int `json:"callsWithoutPrice"`
}

func (w *Work) add(other Work) {
	w.Sessions += other.Sessions
	w.Calls += other.Calls
	w.Millis += other.Millis
	w.Usage = w.Usage.Add(other.Usage)
	w.CostUSD += other.CostUSD
	w.Unpriced += other.Unpriced
}

// Group is the work that has something in common.
type Group struct {
	Name string `json:"name"`
	Work
}

// Tool is what the calls of a tool took.
type Tool struct {
	Name     string         `json:"name"`
	Calls    int            `json:"calls"`
	Failed   int            `json:"failed"`
	Denied   int            `json:"denied"` // part of Failed
	Millis   int64          `json:"durationMs"`
	Slowest  int64          `json:"slowestMs"`
	Tokens   int            `json:"resultTokens"` // of the results, estimated
	Failures map[string]int `json:"failures,omitempty"`
}

// Request is a permission that was asked for.
type Request struct {
	Tool     string   `json:"tool"`
	Rules    []string `json:"rules"` // that would answer it; may be empty
	Asked    int      `json:"asked"`
	Approved int      `json:"approved"`
	Millis   int64    `json:"waitedMs"`
}

// Window is how full the context was.
type Window struct {
	Sessions int     `json:"sessions"` // whose window is known
	Unknown  int     `json:"unknown"`
	Average  float64 `json:"averageShare"` // of the largest request of each session
	Most     float64 `json:"largestShare"`
	Near     int     `json:"sessionsOver80"`
	Compact  int     `json:"compactions"`
}

// Report is what the sessions of some days add up to.
type Report struct {
	Days     int       `json:"days,omitempty"` // 0 = all
	Since    time.Time `json:"since,omitzero"`
	Total    Work      `json:"total"` // with the time in which inputs were processed
	Wait     int64     `json:"waitedMs"`
	Models   []Group   `json:"models"`   // with the time of the calls
	Projects []Group   `json:"projects"` // by directory
	Skills   []Group   `json:"skills"`   // the inputs for which they were activated
	Tools    []Tool    `json:"tools"`
	Requests []Request `json:"permissions"`
	Context  Window    `json:"context"`
	Damaged  []string  `json:"damaged,omitempty"` // sessions that could not be read to their end
	Last     time.Time `json:"-"`
}

// sums are a report while it is added up.
type sums struct {
	report   Report
	models   map[string]*Work
	projects map[string]*Work
	skills   map[string]*Work
	tools    map[string]*Tool
	requests map[string]*Request
	filled   float64
}

func newSums() *sums {
	return &sums{
		models: map[string]*Work{}, projects: map[string]*Work{}, skills: map[string]*Work{},
		tools: map[string]*Tool{}, requests: map[string]*Request{},
	}
}

// Read adds up the sessions in dir that changed within some days before now; 0 takes all.
// It holds one record of a session at a time.
func Read(ctx context.Context, dir string, days int, now time.Time, known Facts) (*Report, error) {
	list, err := store.List(dir)
	if err != nil && len(list) == 0 {
		return nil, err
	}
	all := newSums()
	all.report.Days = days
	if days > 0 {
		all.report.Since = now.AddDate(0, 0, -days)
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan store.Summary)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for about := range next {
				one := readSession(ctx, dir, about, all.report.Since, known)
				mu.Lock()
				all.merge(one)
				mu.Unlock()
			}
		})
	}
	for _, about := range list {
		if !about.Time.Before(all.report.Since) {
			next <- about
		}
	}
	close(next)
	workers.Wait()
	return all.finish(), ctx.Err()
}

// readSession adds up one session.
func readSession(ctx context.Context, dir string, about store.Summary, since time.Time, known Facts) *sums {
	s := newSession(about, since, known)
	for e, err := range store.Scan(ctx, dir, about.ID, wanted) {
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			return newSums()
		}
		if err != nil {
			s.report.Damaged = []string{about.ID}
			break
		}
		s.add(e)
	}
	return s.end()
}

// merge adds what another session added up.
func (s *sums) merge(o *sums) {
	r, q := &s.report, &o.report
	r.Total.add(q.Total)
	r.Wait += q.Wait
	r.Damaged = append(r.Damaged, q.Damaged...)
	r.Context.Sessions += q.Context.Sessions
	r.Context.Unknown += q.Context.Unknown
	r.Context.Near += q.Context.Near
	r.Context.Compact += q.Context.Compact
	r.Context.Most = max(r.Context.Most, q.Context.Most)
	s.filled += o.filled
	mergeWork(s.models, o.models)
	mergeWork(s.projects, o.projects)
	mergeWork(s.skills, o.skills)
	for name, t := range o.tools {
		mine := entry(s.tools, name)
		mine.Calls, mine.Failed, mine.Denied = mine.Calls+t.Calls, mine.Failed+t.Failed, mine.Denied+t.Denied
		mine.Millis, mine.Slowest, mine.Tokens = mine.Millis+t.Millis, max(mine.Slowest, t.Slowest), mine.Tokens+t.Tokens
		for code, n := range t.Failures {
			mine.fail(code, n)
		}
	}
	for key, q := range o.requests {
		mine := entry(s.requests, key)
		mine.Tool, mine.Rules = q.Tool, q.Rules
		mine.Asked, mine.Approved, mine.Millis = mine.Asked+q.Asked, mine.Approved+q.Approved, mine.Millis+q.Millis
	}
}

func (t *Tool) fail(code string, n int) {
	if t.Failures == nil {
		t.Failures = map[string]int{}
	}
	t.Failures[cmp.Or(code, "UNKNOWN")] += n
}

// entry returns the value of a key, which it adds if it is missing.
func entry[V any](m map[string]*V, key string) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

func mergeWork(into, from map[string]*Work) {
	for name, w := range from {
		entry(into, name).add(*w)
	}
}

// finish sorts: what cost most first, or took the most tokens.
func (s *sums) finish() *Report {
	r := &s.report
	r.Models, r.Projects, r.Skills = groups(s.models), groups(s.projects), groups(s.skills)
	r.Tools, r.Requests = []Tool{}, []Request{}
	for name, t := range s.tools {
		t.Name = name
		r.Tools = append(r.Tools, *t)
	}
	slices.SortFunc(r.Tools, func(a, b Tool) int {
		return cmp.Or(cmp.Compare(b.Millis, a.Millis), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	for _, q := range s.requests {
		r.Requests = append(r.Requests, *q)
	}
	slices.SortFunc(r.Requests, func(a, b Request) int {
		return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(a.Tool, b.Tool), slices.Compare(a.Rules, b.Rules))
	})
	if r.Context.Sessions > 0 {
		r.Context.Average = s.filled / float64(r.Context.Sessions)
	}
	slices.Sort(r.Damaged)
	return r
}

func groups(m map[string]*Work) []Group {
	list := []Group{}
	for name, w := range m {
		list = append(list, Group{name, *w})
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.Usage.Total(), a.Usage.Total()), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Period says which sessions the report is about.
func (r *Report) Period() string {
	if r.Days == 0 {
		return "All sessions"
	}
	if r.Days == 1 {
		return "Sessions of the last day"
	}
	return fmt.Sprintf("Sessions of the last %d days", r.Days)
}
