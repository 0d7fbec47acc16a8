package insight

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/store"
)

// wanted reports whether events of a type are added up. Those with long texts are
// skipped without reading them.
func wanted(kind string) bool {
	switch kind {
	case "session_start", "session_end", "user", "idle", "llm_end", "tool_result", "permission", "question", "answer", "skill_activated", "compacted":
		return true
	}
	return false
}

// session adds up one session.
type session struct {
	*sums
	known  Facts
	id     string
	since  time.Time // what happened before does not count
	cwd    string
	input  time.Time // when the current input began; zero without one
	last   time.Time
	skills []string // activated for the current input
	ahead  []string // for the input that follows
	work   Work     // of the current input
	asked  map[string]asked
	ran    map[string]int64 // time that calls waited for an answer
	// The largest request, in tokens and as a share of the window.
	largest float64
	window  bool
	active  bool
}

// asked is an open question.
type asked struct {
	at   time.Time
	call string
	req  *Request
}

func newSession(about store.Summary, since time.Time, known Facts) *session {
	return &session{sums: newSums(), known: known, id: about.ID, since: since, cwd: about.Cwd, asked: map[string]asked{}, ran: map[string]int64{}}
}

func (s *session) add(e event.Event) {
	if e.Time.Before(s.since) || e.Session != s.id { // a fork begins with the records of another
		return
	}
	s.active = true
	switch b := e.Body.(type) {
	case event.SkillActivated:
		s.ahead = append(s.ahead, b.Name)
	case event.User:
		s.endInput()
		s.input, s.skills, s.ahead = e.Time, s.ahead, nil
	case event.Idle:
		s.last = e.Time
		s.endInput()
	case event.SessionEnd, event.SessionStart:
		s.endInput()
	case event.LLMEnd:
		s.modelCall(b)
	case event.Question:
		s.question(e, b)
	case event.Answer:
		s.answer(e, b)
	case event.Permission:
		s.permission(b)
	case event.ToolResult:
		s.result(e, b)
	case event.Compacted:
		s.report.Context.Compact++
	}
	s.last = e.Time
}

// endInput adds the work on the current input to the totals.
func (s *session) endInput() {
	if !s.input.IsZero() {
		s.work.Millis = max(0, s.last.Sub(s.input).Milliseconds())
	}
	s.report.Total.add(s.work)
	slices.Sort(s.skills)
	for _, name := range slices.Compact(s.skills) {
		entry(s.sums.skills, name).add(s.work)
		entry(s.sums.skills, name).Sessions = 1
	}
	s.work, s.input, s.skills = Work{}, time.Time{}, nil
}

func (s *session) modelCall(b event.LLMEnd) {
	w := Work{Calls: 1, Millis: b.LatencyMS, Usage: b.Usage}
	if usd, ok := s.known.Price(b.Provider, b.Model, b.Usage); ok {
		w.CostUSD = usd
	} else if b.Usage.Total() > 0 {
		w.Unpriced = 1
	}
	name := b.Model
	if b.Provider != "" {
		name = b.Provider + "/" + b.Model
	}
	m := entry(s.models, name)
	m.add(w)
	m.Sessions = 1
	w.Millis = 0 // the input's time counts
	s.work.add(w)
	if window := s.known.Window(b.Provider, b.Model); window > 0 {
		s.window = true
		s.largest = max(s.largest, float64(b.Usage.Total())/float64(window))
	}
}

func (s *session) question(e event.Event, b event.Question) {
	if b.Kind != "permission" {
		s.asked[b.QID] = asked{at: e.Time, call: e.Call}
		return
	}
	var rules []string
	if len(b.Offers) > 0 {
		rules = b.Offers[0].Rules // the narrowest
	}
	q := s.request(b.Tool, rules)
	q.Asked++
	s.asked[b.QID] = asked{e.Time, e.Call, q}
}

// request returns what is known about a permission.
func (s *session) request(tool string, rules []string) *Request {
	q := entry(s.requests, strings.Join(append([]string{tool}, rules...), "\x00"))
	q.Tool, q.Rules = tool, rules
	return q
}

func (s *session) answer(e event.Event, b event.Answer) {
	a, ok := s.asked[b.QID]
	if !ok {
		return
	}
	delete(s.asked, b.QID)
	waited := max(0, e.Time.Sub(a.at).Milliseconds())
	s.report.Wait += waited
	s.ran[a.call] += waited
	if a.req == nil {
		return
	}
	a.req.Millis += waited
	if slices.Contains([]string{"once", "session", "always", "yes"}, b.Choice) {
		a.req.Approved++
	}
}

// wouldAllow finds the rule in the reason of a denial: nobody could be asked.
var wouldAllow = lazy.Regexp(`the rule (.+?) would allow it`)

func (s *session) permission(b event.Permission) {
	if b.Decider != "headless" {
		return
	}
	var rules []string
	if m := wouldAllow().FindStringSubmatch(b.Reason); m != nil {
		rules = []string{m[1]}
	}
	s.request(b.Tool, rules).Asked++
}

func (s *session) result(e event.Event, b event.ToolResult) {
	t := entry(s.tools, cmp.Or(b.Name, "unknown"))
	took := max(0, b.DurationMS-s.ran[e.Call]) // without the wait for an answer
	delete(s.ran, e.Call)
	t.Calls++
	t.Millis += took
	t.Slowest = max(t.Slowest, took)
	t.Tokens += b.Content.EstimateTokens()
	switch {
	case b.IsError:
		t.Failed++
		t.fail(b.Code, 1)
		if b.Code == "PERMISSION_DENIED" {
			t.Denied++
		}
	case display.CommandFailed(b):
		t.Failed++
		t.fail("exit code", 1)
	}
}

// end returns what the session added up to.
func (s *session) end() *sums {
	s.endInput()
	if !s.active {
		return newSums()
	}
	s.report.Total.Sessions = 1
	*entry(s.projects, cmp.Or(s.cwd, "unknown")) = s.report.Total
	c := &s.report.Context
	switch {
	case s.window:
		c.Sessions, c.Most, s.filled = 1, s.largest, s.largest
		if s.largest > 0.8 {
			c.Near = 1
		}
	case s.report.Total.Calls > 0:
		c.Unknown = 1
	}
	return s.sums
}
