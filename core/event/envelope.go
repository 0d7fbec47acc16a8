package event

import (
	"bytes"
	"strconv"
)

// readEnvelope reads the envelope in exactly the form that appendEnvelope
// writes, and returns the body's members as a separate object, so that every
// line of a session log is parsed only once. Any other form is not ok. The
// strings do not point into data; members may.
func readEnvelope(data []byte) (e Event, kind string, members []byte, ok bool) {
	r := envelopeReader{rest: data}
	e.V = int(r.number(`{"v":`))
	e.Seq = Seq(r.number(`,"seq":`))
	e.ID = r.string(`,"id":"`)
	at := r.string(`,"time":"`)
	e.Session = r.string(`,"session":"`)
	e.Parent = r.optional(`,"parent":"`)
	if bytes.HasPrefix(r.rest, []byte(`,"iteration":`)) {
		e.Iteration = int(r.number(`,"iteration":`))
	}
	if bytes.HasPrefix(r.rest, []byte(`,"tokens":`)) {
		e.Tokens = int(r.number(`,"tokens":`))
	}
	e.Trace = r.optional(`,"trace":"`)
	e.Span = r.optional(`,"span":"`)
	e.Call = r.optional(`,"call":"`)
	if rest, is := bytes.CutPrefix(r.rest, []byte(`,"required":true`)); is {
		e.Required, r.rest = true, rest
	}
	kind = r.string(`,"type":"`)
	if r.failed || len(r.rest) == 0 || r.rest[0] != ',' && r.rest[0] != '}' {
		return Event{}, "", nil, false
	}
	if e.Time.UnmarshalText([]byte(at)) != nil || misplaced(r.rest) {
		return Event{}, "", nil, false
	}
	members = append(make([]byte, 0, len(r.rest)+1), '{')
	return e, kind, append(members, bytes.TrimPrefix(r.rest, []byte{','})...), true
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

// envelopeReader reads the members of an envelope in order. After a failure it
// reads nothing more.
type envelopeReader struct {
	rest   []byte
	failed bool
}

func (r *envelopeReader) begin(prefix string) {
	rest, ok := bytes.CutPrefix(r.rest, []byte(prefix))
	if !ok {
		r.failed = true
	}
	if !r.failed {
		r.rest = rest
	}
}

// number reads a positive whole number.
func (r *envelopeReader) number(prefix string) uint64 {
	r.begin(prefix)
	i := 0
	for i < len(r.rest) && r.rest[i] >= '0' && r.rest[i] <= '9' {
		i++
	}
	n, err := strconv.ParseUint(string(r.rest[:i]), 10, 63)
	if r.failed || err != nil || i > 1 && r.rest[0] == '0' {
		r.failed = true
		return 0
	}
	r.rest = r.rest[i:]
	return n
}

// string reads a string without escapes, and its closing quote.
func (r *envelopeReader) string(prefix string) string {
	r.begin(prefix)
	for i, c := range r.rest {
		if r.failed || c == '\\' || c < ' ' || c > '~' {
			break
		}
		if c == '"' {
			s := string(r.rest[:i])
			r.rest = r.rest[i+1:]
			return s
		}
	}
	r.failed = true
	return ""
}

func (r *envelopeReader) optional(prefix string) string {
	if r.failed || !bytes.HasPrefix(r.rest, []byte(prefix)) {
		return ""
	}
	return r.string(prefix)
}
