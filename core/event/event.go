package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Version is the version of the JSON form.
const Version = 1

// Seq numbers the events of a session from 1. It only ever grows; deltas take
// numbers too, so a log without them has gaps.
type Seq uint64

// Event is the envelope around one event.
type Event struct {
	V         int       `json:"v"`
	Seq       Seq       `json:"seq"`
	ID        string    `json:"id"` // unique over all sessions: the session's id and Seq
	Time      time.Time `json:"time"`
	Session   string    `json:"session"`
	Parent    string    `json:"parent,omitempty"`    // the parent session of a subagent's
	Iteration int       `json:"iteration,omitempty"` // model call within the present input, from 1
	Tokens    int       `json:"tokens,omitempty"`    // used by the session so far
	Trace     string    `json:"trace,omitempty"`
	Span      string    `json:"span,omitempty"`
	Call      string    `json:"call,omitempty"` // the tool call that this belongs to
	// Required marks a record without whose meaning a session cannot be
	// rebuilt: who does not know its type must refuse to resume.
	Required bool `json:"required,omitempty"`
	Body     Body `json:"-"`
}

// Body is what happened. The set is sealed; [Unknown] keeps what a newer
// version wrote.
type Body interface {
	// Type is the event's name in JSON.
	Type() string
	body()
}

// IsDelta reports whether the event is a piece of something that a later event
// holds whole. Deltas are not logged.
func (e Event) IsDelta() bool {
	switch e.Body.(type) {
	case MessageDelta, ReasoningDelta, ToolOutputDelta, ToolProgress:
		return true
	}
	return false
}

// MarshalJSON writes envelope and body as one object.
func (e Event) MarshalJSON() ([]byte, error) {
	type envelope Event // drops the method
	if e.ID == "" {     // built here, so that a delta nobody prints costs nothing
		e.ID = e.Session + "-" + strconv.FormatUint(uint64(e.Seq), 10)
	}
	head, err := json.Marshal(envelope(e))
	if err != nil {
		return nil, err
	}
	if u, ok := e.Body.(Unknown); ok {
		return u.Raw, nil
	}
	if e.Body == nil {
		return nil, fmt.Errorf("event %d has no body", e.Seq)
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Body.Type(), err)
	}
	out := make([]byte, 0, len(head)+len(body)+len(e.Body.Type())+12)
	out = append(out, head[:len(head)-1]...)
	out = append(out, `,"type":"`...)
	out = append(out, e.Body.Type()...)
	out = append(out, '"')
	if len(body) > 2 {
		out = append(out, ',')
	}
	return append(out, body[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON wrote; a type that is not known becomes
// an [Unknown] that writes itself back unchanged.
func (e *Event) UnmarshalJSON(data []byte) error {
	type envelope Event
	var head struct {
		envelope
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	*e = Event(head.envelope)
	switch {
	case head.V == 0 || head.Type == "":
		return fmt.Errorf(`event: "v" or "type" is missing`)
	case head.V > Version:
		e.Body = Unknown{Kind: head.Type, Raw: bytes.Clone(data)}
		return nil
	}
	body, err := decodeBody(head.Type, data)
	if err != nil {
		return fmt.Errorf("event %s: %w", head.Type, err)
	}
	e.Body = body
	return nil
}
