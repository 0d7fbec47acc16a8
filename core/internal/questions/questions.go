package questions

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core/event"
)

// Set is the questions about the calls of one answer. It is safe for concurrent use;
// the zero value is empty.
type Set struct {
	mu      sync.Mutex
	asked   []question
	shown   map[string]bool // calls with a tool_use event
	started map[string]bool // calls that may have done something
}

// question is a question, about a call of the session or none.
type question struct {
	event.Question
	call   string
	answer *event.Answer // nil while it is open
	used   bool          // its answer was used, or it is no longer needed
}

// Add takes an event of the session.
func (s *Set) Add(call string, body event.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b := body.(type) {
	case event.Message:
		s.asked = slices.DeleteFunc(s.asked, func(q question) bool { return q.call != "" || q.answer != nil })
		if s.shown == nil {
			s.shown, s.started = map[string]bool{}, map[string]bool{}
		}
		clear(s.shown)
		clear(s.started)
	case event.ToolUse:
		s.mark(s.shown, call)
	case event.Permission:
		if b.Decision == "allow" {
			s.mark(s.started, call)
		}
	case event.ToolResult:
		for i := range s.asked {
			s.asked[i].used = s.asked[i].used || s.asked[i].call == call
		}
	case event.Question:
		if s.find(b.QID) < 0 {
			s.asked = append(s.asked, question{Question: b, call: call})
		}
	case event.Answer:
		if at := s.find(b.QID); at >= 0 {
			s.asked[at].answer, s.asked[at].used = &b, b.Withdrawn
		}
	}
}

func (s *Set) mark(calls map[string]bool, call string) {
	if calls != nil && call != "" {
		calls[call] = true
	}
}

func (s *Set) find(id string) int {
	return slices.IndexFunc(s.asked, func(q question) bool { return q.QID == id })
}

// Take looks for a question that was asked before about the call. It returns its ID,
// and its answer, once.
func (s *Set) Take(call string, like event.Question) (id string, answer *event.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.asked {
		q := &s.asked[i]
		if !q.used && q.call == call && q.Kind == like.Kind && q.Title == like.Title && reflect.DeepEqual(q.Accesses, like.Accesses) {
			q.used = q.answer != nil
			return q.QID, q.answer
		}
	}
	return "", nil
}

// Open returns the questions without an answer, those about no call included.
func (s *Set) Open() (list []event.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if q.answer == nil && !q.used {
			list = append(list, q.Question)
		}
	}
	return list
}

// Waits reports whether a question about a call is open.
func (s *Set) Waits(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return call != "" && slices.ContainsFunc(s.asked, func(q question) bool { return q.call == call && q.answer == nil && !q.used })
}

// About reports whether a call has a question, open or with an answer to use.
func (s *Set) About(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asked, func(q question) bool { return q.call == call && !q.used })
}

// Denied returns what is recorded of a call if the answer about it denies it.
func (s *Set) Denied(call string) (p event.Permission, denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if q.call == call && !q.used && q.answer != nil && q.answer.Choice == "deny" {
			return event.Permission{Tool: q.Tool, Accesses: q.Accesses, Decision: "deny", Decider: "person", Reason: q.answer.Reason, Choice: q.answer.Choice}, true
		}
	}
	return p, false
}

// Answerable returns the open question with an ID, if it can be answered with a choice.
func (s *Set) Answerable(id, choice string) (event.Question, error) {
	for _, q := range s.Open() {
		if q.QID != id {
			continue
		}
		if len(q.Choices) > 0 && !slices.Contains(q.Choices, choice) { // a form has none
			return q, fmt.Errorf("question %s cannot be answered with %q: its choices are %v", id, choice, q.Choices)
		}
		return q, nil
	}
	return event.Question{}, fmt.Errorf("no question %q is open", id)
}

// Parked reports whether the user was asked about a call of the answer: then those
// that were not started can run when the session is resumed.
func (s *Set) Parked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asked, func(q question) bool { return q.call != "" })
}

// Resume drops the questions that nobody waits for in another process: those about no
// call of the session itself.
func (s *Set) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = slices.DeleteFunc(s.asked, func(q question) bool { return q.call == "" })
}

// Started reports whether a call may have done something.
func (s *Set) Started(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[call]
}

// Shown reports whether a call has a tool_use event.
func (s *Set) Shown(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[call]
}
