package event

import (
	"bytes"

	"github.com/seed-009c0928/agent/core/internal/quickjson"
)

// readEnvelope reads the envelope in the form that appendEnvelope writes, and leaves
// the reader at the members of the body. Any other form is not ok. The kind points into
// data.
func readEnvelope(r *quickjson.Reader) (e Event, kind []byte, ok bool) {
	r.Open()
	e.V = int(r.Int("v"))
	seq := r.Int("seq")
	e.Seq = Seq(seq)
	e.ID = string(r.Bytes("id"))
	at := r.Bytes("time")
	e.Session = beginning(e.ID, r.Bytes("session"))
	e.Parent = string(r.Bytes("parent"))
	e.Iteration = int(r.Int("iteration"))
	e.Tokens = int(r.Int("tokens"))
	e.Trace = string(r.Bytes("trace"))
	e.Span = string(r.Bytes("span"))
	e.Call = string(r.Bytes("call"))
	e.Required = r.True("required")
	kind = r.Bytes("type")
	if !r.OK() || seq < 0 || len(kind) == 0 || e.Time.UnmarshalText(at) != nil {
		return Event{}, nil, false
	}
	return e, kind, true
}

// beginning returns a text as the beginning of another, if it is: an event's ID begins
// with its session.
func beginning(of string, text []byte) string {
	if n := len(text); n <= len(of) && of[:n] == string(text) {
		return of[:n]
	}
	return string(text)
}

// misplaced reports whether a member of the envelope may be among those of the
// body, as another program may write it.
func misplaced(members []byte) bool {
	for _, name := range [...]string{`"required":`, `"call":`, `"parent":`, `"iteration":`, `"tokens":`, `"trace":`, `"span":`} {
		if bytes.Contains(members, []byte(name)) {
			return true
		}
	}
	return false
}

// object returns the rest of an object, without members that were read, as an object.
func object(rest []byte) []byte {
	return append(append(make([]byte, 0, len(rest)+1), '{'), bytes.TrimPrefix(rest, []byte{','})...)
}
