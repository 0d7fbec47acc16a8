package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-009c0928/agent/core/internal/quickjson"
)

// Version is the version of the JSON form.
const Version = 1

// Seq numbers the events of a session from 1. It only grows. Deltas are
// numbered too, so a session log, which has none, has gaps.
type Seq uint64

// Event is the envelope around one event.
type Event struct {
	V         int       `json:"v"`
	Seq       Seq       `json:"seq"`
	ID        string    `json:"id"` // unique over all sessions: the session's id and Seq
	Time      time.Time `json:"time"`
	Session   string    `json:"session"`
	Parent    string    `json:"parent,omitempty"`    // of a subagent's session, the parent session
	Iteration int       `json:"iteration,omitempty"` // model call within the current input, from 1
	Tokens    int       `json:"tokens,omitempty"`    // used by the session so far
	Trace     string    `json:"trace,omitempty"`
	Span      string    `json:"span,omitempty"`
	Call      string    `json:"call,omitempty"` // the tool call that this belongs to
	// Required marks an event that is needed to resume the session: a program
	// that does not know its type must refuse.
	Required bool `json:"required,omitempty"`
	Body     Body `json:"-"`
	// Record is what is logged of Body if that is less: without what may be secret.
	Record Body `json:"-"`
}

// Recorded returns what is logged of the event, which is free of secrets as far as the
// session knows them.
func (e Event) Recorded() Body {
	if e.Record != nil {
		return e.Record
	}
	return e.Body
}

// Body is the content of an event, one of the types of this package. [Unknown]
// holds those of a newer version.
type Body interface {
	// Type is the event's name in JSON.
	Type() string
	body()
}

// IsDelta reports whether the event is a part of something that a later event
// holds in full. Deltas are not logged.
func (e Event) IsDelta() bool {
	switch e.Body.(type) {
	case MessageDelta, ReasoningDelta, ToolOutputDelta, ToolProgress:
		return true
	}
	return false
}

// Rebuilds reports whether a session cannot be rebuilt without the body. Its
// event is marked as required.
func Rebuilds(b Body) bool {
	switch b.(type) {
	case Prompt, User, Message, ToolResult, Steering, Compacted, Rewound:
		return true
	}
	return false
}

// MarshalJSON writes envelope and body as one object. An [Unknown] body is
// written as it was read, regardless of the envelope.
func (e Event) MarshalJSON() ([]byte, error) {
	if u, ok := e.Body.(Unknown); ok {
		if !json.Valid(u.Raw) {
			return nil, fmt.Errorf("event %d of unknown type %q does not hold valid JSON", e.Seq, u.Kind)
		}
		return slices.Clip(u.Raw), nil
	}
	if e.Body == nil {
		return nil, fmt.Errorf("event %d has no body", e.Seq)
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Body.Type(), err)
	}
	out, err := e.appendEnvelope(make([]byte, 0, len(body)+256))
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Body.Type(), err)
	}
	if len(body) > 2 {
		out = append(out, ',')
	}
	return append(out, body[1:]...), nil
}

// appendEnvelope writes the object up to the body's members. It does not use
// encoding/json, as it runs for every delta that is printed.
func (e Event) appendEnvelope(b []byte) ([]byte, error) {
	b = append(b, `{"v":`...)
	b = strconv.AppendInt(b, int64(e.V), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, uint64(e.Seq), 10)
	id := e.ID
	if id == "" { // built here, so that it costs nothing for a delta that is not printed
		id = e.Session + "-" + strconv.FormatUint(uint64(e.Seq), 10)
	}
	b = appendString(b, "id", id)
	b = append(b, `,"time":"`...)
	b, err := e.Time.AppendText(b)
	if err != nil {
		return nil, err
	}
	b = append(b, '"')
	b = appendString(b, "session", e.Session)
	b = appendOptional(b, "parent", e.Parent)
	if e.Iteration != 0 {
		b = append(b, `,"iteration":`...)
		b = strconv.AppendInt(b, int64(e.Iteration), 10)
	}
	if e.Tokens != 0 {
		b = append(b, `,"tokens":`...)
		b = strconv.AppendInt(b, int64(e.Tokens), 10)
	}
	b = appendOptional(b, "trace", e.Trace)
	b = appendOptional(b, "span", e.Span)
	b = appendOptional(b, "call", e.Call)
	if e.Required {
		b = append(b, `,"required":true`...)
	}
	return appendString(b, "type", e.Body.Type()), nil
}

func appendOptional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(b, name, value)
}

// appendString writes a member. The name needs no escapes.
func appendString(b []byte, name, value string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(value) // a string cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, value...)
	return append(b, '"')
}

// UnmarshalJSON reads what MarshalJSON wrote; an unknown type becomes an
// [Unknown], which is written back unchanged.
func (e *Event) UnmarshalJSON(data []byte) error {
	r := quickjson.New(data)
	head, name, ok := readEnvelope(&r)
	if ok && head.V == Version {
		if head.Body, ok = quickBody(name, r); ok {
			*e = head
			return nil
		}
	}
	kind, members := string(name), object(r.Rest())
	if name == nil || misplaced(members) {
		var err error
		if head, kind, err = decodeEnvelope(data); err != nil {
			return err
		}
		members = data
	}
	switch {
	case head.V < 1 || kind == "":
		return fmt.Errorf(`event: "v" or "type" is missing`)
	case head.V > Version:
		if !json.Valid(data) {
			return fmt.Errorf("event: version %d does not hold valid JSON", head.V)
		}
		head.Body = Unknown{Kind: kind, Raw: bytes.Clone(data)}
		*e = head
		return nil
	}
	body, err := decodeBody(kind, members, data)
	if err != nil {
		return fmt.Errorf("event %s: %w", kind, err)
	}
	head.Body = body
	*e = head
	return nil
}

// decodeEnvelope reads the envelope of an event in any JSON form.
func decodeEnvelope(data []byte) (Event, string, error) {
	type envelope Event
	var head struct {
		envelope
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Event{}, "", fmt.Errorf("event: %w", err)
	}
	return Event(head.envelope), head.Type, nil
}
