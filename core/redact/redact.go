package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// redacted replaces a secret.
const redacted = "[redacted]"

// minSecret is the length of the shortest secret to look for.
const minSecret = 8

// Redactor replaces secrets. It is immutable and safe for concurrent use.
type Redactor struct {
	forms  [][]byte // of the secrets in text: as such, and within JSON in the text; longest first
	probes [][]byte // the forms as they are encoded in a record
}

// New returns a redactor of these secrets and of the known shapes of keys.
// Secrets of fewer than eight bytes are ignored: they would match harmless text.
func New(secrets []string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if len(s) < minSecret || strings.Contains(redacted, s) {
			continue
		}
		for _, form := range []string{s, quoted(s, true), quoted(s, false)} {
			r.forms = appendNew(r.forms, form)
			r.probes = appendNew(appendNew(r.probes, quoted(form, true)), quoted(form, false))
		}
	}
	slices.SortFunc(r.forms, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	return r
}

func appendNew(list [][]byte, s string) [][]byte {
	if slices.ContainsFunc(list, func(b []byte) bool { return string(b) == s }) {
		return list
	}
	return append(list, []byte(s))
}

// quoted returns s as it is encoded in a JSON string.
func quoted(s string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// Record returns a record of a session, one JSON object, without secrets. If it
// has none, as nearly all, it is the same slice. A provider's state, which must
// not change, is left alone.
func (r *Redactor) Record(line []byte) []byte {
	if !r.suspicious(line) {
		return line
	}
	w := rewriter{Redactor: r, in: line, out: make([]byte, 0, len(line)+64)}
	w.value(0, eventData)
	return w.out
}

// suspicious reports whether a record may hold a secret. It may be wrong if so.
func (r *Redactor) suspicious(line []byte) bool {
	for _, p := range r.probes {
		if bytes.Contains(line, p) {
			return true
		}
	}
	return anyShape(line)
}

// Text returns s without secrets, and whether that changed it.
func (r *Redactor) Text(s []byte) ([]byte, bool) {
	changed := false
	for _, form := range r.forms {
		if bytes.Contains(s, form) {
			s, changed = bytes.ReplaceAll(s, form, []byte(redacted)), true
		}
	}
	for _, shape := range shapes {
		start, end := shape.find(s, 0)
		if start < 0 {
			continue
		}
		var out []byte
		from := 0
		for ; start >= 0; start, end = shape.find(s, from) {
			out = append(append(out, s[from:start]...), redacted...)
			from = end
		}
		s, changed = append(out, s[from:]...), true
	}
	return s, changed
}

// origin says where a part of a record comes from.
type origin uint8

const (
	eventData origin = iota // members of an event or a message part
	toolData                // JSON of a tool, whose keys mean nothing here
	opaque                  // a provider's state, which must not change
)

// rewriter copies a record, which is valid JSON, and redacts its strings. The
// rest is copied byte for byte.
type rewriter struct {
	*Redactor
	in, out []byte
	pos     int
}

func (w *rewriter) peek() byte {
	if w.pos < len(w.in) {
		return w.in[w.pos]
	}
	return 0
}

// copyUntil copies the bytes up to the first of a set.
func (w *rewriter) copyUntil(set string) {
	rest := w.in[w.pos:]
	if i := bytes.IndexAny(rest, set); i >= 0 {
		rest = rest[:i]
	}
	w.out = append(w.out, rest...)
	w.pos += len(rest)
}

func (w *rewriter) copyByte() {
	w.out = append(w.out, w.in[w.pos])
	w.pos++
}

// value copies the next value, at a depth in the record.
func (w *rewriter) value(depth int, from origin) {
	switch w.space(); w.peek() {
	case '{', '[':
		w.members(depth+1, from)
	case '"':
		w.string(from != opaque)
	default:
		w.copyUntil(",]} \t\r\n")
	}
}

func (w *rewriter) space() {
	for w.pos < len(w.in) && strings.IndexByte(" \t\r\n", w.in[w.pos]) >= 0 {
		w.copyByte()
	}
}

// members copies an object or an array.
func (w *rewriter) members(depth int, from origin) {
	isObject := w.peek() == '{'
	w.copyByte()
	for w.space(); w.pos < len(w.in); w.space() {
		switch w.peek() {
		case '}', ']':
			w.copyByte()
			return
		case ',':
			w.copyByte()
			continue
		}
		source := from
		if isObject {
			key := w.string(from == toolData)
			w.copyUntil(":")
			if w.pos < len(w.in) {
				w.copyByte()
			}
			source = originOf(key, depth, from)
		}
		w.value(depth, source)
	}
}

// originOf returns the origin of the value of a member. Within a tool's JSON
// every key is the tool's.
func originOf(key []byte, depth int, from origin) origin {
	if from != eventData {
		return from
	}
	switch string(key) {
	case `"raw"`, `"signature"`:
		return opaque
	case `"structured"`, `"meta"`, `"schema"`:
		if depth == 1 {
			return toolData
		}
	}
	return eventData
}

// string copies a string and returns its JSON.
func (w *rewriter) string(redact bool) []byte {
	end := w.pos + 1
	for end < len(w.in) && w.in[end] != '"' {
		if w.in[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end+1, len(w.in))
	raw := w.in[w.pos:end]
	w.pos = end
	if redact {
		if clean, ok := w.redactString(raw); ok {
			w.out = append(w.out, clean...)
			return raw
		}
	}
	w.out = append(w.out, raw...)
	return raw
}

func (w *rewriter) redactString(raw []byte) ([]byte, bool) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, false
	}
	clean, changed := w.Text([]byte(s))
	if !changed {
		return nil, false
	}
	out, err := json.Marshal(string(clean))
	return out, err == nil
}
