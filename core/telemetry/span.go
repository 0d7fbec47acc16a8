package telemetry

import (
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// Version is the version of the semantic conventions: the last one of OpenTelemetry's
// own that has those for generative AI.
const Version = "1.41.0"

// Kind is what a span is about.
type Kind string

// The kinds of spans.
const (
	KindRun        Kind = "run"  // an input of a session or a subagent
	KindChat       Kind = "chat" // a model call, with its retries
	KindTool       Kind = "tool" // a tool call
	KindQuestion   Kind = "question"
	KindCompaction Kind = "compaction"
	KindSkill      Kind = "skill" // the activation of a skill
	KindHook       Kind = "hook"  // of the configuration
	KindStart      Kind = "start" // the start of a plugin or an MCP server
	KindBead       Kind = "bead"  // an attempt at a task, with its session and its criteria
)

// Span is a piece of work.
type Span struct {
	Trace  string `json:"trace"`
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	// Link is the earlier input of the session, which may be in another trace.
	Link    *tracecontext.Span `json:"link,omitempty"`
	Kind    Kind               `json:"kind"`
	Name    string             `json:"name"`
	Session string             `json:"session"`
	Seq     event.Seq          `json:"seq"` // of the event that it begins with
	Call    string             `json:"call,omitempty"`
	Start   time.Time          `json:"start"`
	End     time.Time          `json:"end"`
	// Error is the code of what failed, such as RATE_LIMITED; empty = nothing did.
	Error      string   `json:"error,omitempty"`
	Message    string   `json:"message,omitempty"` // of the error
	Attributes []Attr   `json:"attributes,omitempty"`
	Moments    []Moment `json:"moments,omitempty"`
	// Content is what may be private: inputs, answers, arguments, results. Only a
	// Builder with Content has it.
	Content []Attr `json:"content,omitempty"`

	Provider string        `json:"-"` // that answered
	Model    string        `json:"-"`
	Tool     string        `json:"-"`
	Usage    model.Usage   `json:"-"` // of a run without its subagents
	First    time.Duration `json:"-"` // until the first piece of the answer; 0 = none came
	Waited   time.Duration `json:"-"` // for the user
	Decision string        `json:"-"` // on a tool call: allow, deny
	Decider  string        `json:"-"`
}

// Took returns how long the work took.
func (s *Span) Took() time.Duration { return s.End.Sub(s.Start) }

// Attr is an attribute: a string, int64, float64, bool or []string.
type Attr struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// Moment is a point in time within a span, such as a retry.
type Moment struct {
	Name       string    `json:"name"`
	Time       time.Time `json:"time"`
	Attributes []Attr    `json:"attributes,omitempty"`
}

func (s *Span) set(key string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case int:
		value = int64(v)
	}
	for i := range s.Attributes {
		if s.Attributes[i].Key == key {
			s.Attributes[i].Value = value
			return
		}
	}
	s.Attributes = append(s.Attributes, Attr{key, value})
}

func (s *Span) fail(code, message string) {
	if code != "" {
		s.Error, s.Message = code, message
		s.set("error.type", code)
	}
}

func (s *Span) at(t time.Time, name string, attrs ...Attr) {
	s.Moments = append(s.Moments, Moment{name, t, attrs})
}

// use sets the attributes of used tokens.
func (s *Span) use(u model.Usage) {
	s.Usage = u
	if u == (model.Usage{}) {
		return
	}
	s.set("gen_ai.usage.input_tokens", u.Input)
	s.set("gen_ai.usage.output_tokens", u.Output)
	if u.CachedInput > 0 {
		s.set("gen_ai.usage.cache_read.input_tokens", u.CachedInput)
	}
	if u.CacheWrite > 0 {
		s.set("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite)
	}
	if u.Reasoning > 0 {
		s.set("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
	}
}
