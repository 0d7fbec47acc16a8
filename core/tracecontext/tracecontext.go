package tracecontext

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Variable is the environment variable in which a process gets its place.
const Variable = "TRACEPARENT"

// Span is a span of a trace: IDs in lower-case hexadecimal digits. The zero value is
// no span.
type Span struct{ Trace, ID string }

// Child returns the span that begins with an event of a session. Without a span above
// it, it begins a trace.
func (s Span) Child(session string, seq uint64) Span {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(session), seq))
	child := Span{Trace: s.Trace, ID: hex.EncodeToString(sum[16:24])}
	if child.Trace == "" {
		child.Trace = hex.EncodeToString(sum[:16])
	}
	return child
}

type spanKey struct{}

// With returns a context whose work belongs to the span.
func With(ctx context.Context, s Span) context.Context { return context.WithValue(ctx, spanKey{}, s) }

// From returns the span that the work of ctx belongs to.
func From(ctx context.Context) Span {
	s, _ := ctx.Value(spanKey{}).(Span)
	return s
}

type samplerKey struct{}

// Propagate returns a context whose spans are handed on to other processes. Sampled
// reports whether a trace is recorded; nil stops handing them on.
func Propagate(ctx context.Context, sampled func(trace string) bool) context.Context {
	return context.WithValue(ctx, samplerKey{}, sampled)
}

// Header returns what another process gets: the value of traceparent; empty if ctx has
// no span, or none that is handed on.
func Header(ctx context.Context) string {
	s := From(ctx)
	sampled, _ := ctx.Value(samplerKey{}).(func(string) bool)
	if sampled == nil || s == (Span{}) {
		return ""
	}
	flags := "00"
	if sampled(s.Trace) {
		flags = "01"
	}
	return "00-" + s.Trace + "-" + s.ID + "-" + flags
}

// Environ returns the variable that another process gets; none if Header is empty.
func Environ(ctx context.Context) []string {
	if header := Header(ctx); header != "" {
		return []string{Variable + "=" + header}
	}
	return nil
}

// Parse reads a traceparent. What is not valid is not ok, and is to be ignored.
func Parse(header string) (s Span, sampled, ok bool) {
	parts := strings.Split(header, "-")
	if len(parts) < 4 || parts[0] == "00" && len(parts) > 4 {
		return Span{}, false, false
	}
	flags, valid := decode(parts[3], 1)
	version, known := decode(parts[0], 1)
	if !valid || !known || version[0] == 0xff || !id(parts[1], 16) || !id(parts[2], 8) {
		return Span{}, false, false
	}
	return Span{Trace: parts[1], ID: parts[2]}, flags[0]&1 == 1, true
}

// id reports whether s is an ID of that many bytes, not all of them 0.
func id(s string, size int) bool {
	_, ok := decode(s, size)
	return ok && strings.Trim(s, "0") != ""
}

func decode(s string, size int) ([]byte, bool) {
	b, err := hex.DecodeString(s)
	return b, err == nil && len(b) == size && s == strings.ToLower(s)
}
