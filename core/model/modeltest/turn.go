package modeltest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// Turn is what the server answers to one request. The zero Turn is an empty
// answer that stops.
type Turn struct {
	Reasoning []string // one chunk each, before the text
	// Signature is that of the reasoning, if the API has one: the signature of a
	// thinking block, encrypted content, a thought signature. If it is empty and
	// there is reasoning, the server makes one.
	Signature string
	Redacted  string   // data of a redacted thinking block; Messages only
	Text      []string // one chunk each
	Refusal   []string // one chunk each; sent as text if the API has no refusals
	Calls     []Call
	// Interleave sends one fragment of each call in turn, instead of one call
	// after the other, if the API supports that.
	Interleave bool
	// Stop is why the answer ends; empty means StopToolCalls, StopRefusal or
	// StopEnd, depending on the content.
	Stop   model.StopReason
	Finish string // the API's own stop reason, instead of Stop
	// Blocked is why the prompt was blocked, such as "SAFETY"; then there is no
	// other answer. Gemini only.
	Blocked string
	Usage   Usage  // zero means [DefaultUsage]
	Model   string // the model that answers; empty means the requested one

	// Status other than 0 and 200 answers with Fault, or else with Body, instead
	// of a completion.
	Status int
	Header http.Header // added to the response header, with every status
	Body   string
	Fault  *Fault // sets the status if Status is 0

	Edits []Edit // changes of the stream, in order
	Break *Break // where the stream breaks off, if not nil
	Split int    // bytes of each write; 0 means one write for each frame
	// Gate is called before each frame, with -1 before the header. It may block
	// until the test continues the answer, or ctx, the request's context, ends.
	Gate func(ctx context.Context, frame int)
}

// Call is one tool call of an answer.
type Call struct {
	ID, Name string   // ID may be empty if the API allows it
	Args     []string // the argument text, one fragment for each chunk
}

func (c *Call) args() string { return strings.Join(c.Args, "") }

// Usage is the reported token count, as far as the API supports it. Prompt
// includes Cached and CacheWrite, Completion includes Reasoning.
type Usage struct{ Prompt, Cached, CacheWrite, Completion, Reasoning int }

// DefaultUsage is reported by a turn without usage.
var DefaultUsage = Usage{Prompt: 120, Cached: 64, Completion: 30, Reasoning: 8}

// Break is where and how a stream breaks off.
type Break struct {
	After int // bytes of the stream that are sent
	How   Ending
}

// Ending is how a broken stream ends.
type Ending uint8

// The endings.
const (
	End   Ending = iota // as if the answer were complete
	Abort               // without the last chunk of the transfer encoding
	Reset               // with a TCP reset
)

// Edit changes the frames of a stream. A frame is a server-sent event with its
// blank line, and is written at once.
type Edit func(frames []string) []string

// Insert puts a frame before frame i; a negative i counts from the end.
func Insert(i int, frame string) Edit {
	return func(frames []string) []string {
		if i < 0 {
			i += len(frames)
		}
		out := append([]string{}, frames[:i]...)
		return append(append(out, frame), frames[i:]...)
	}
}

// CutFrames ends the stream before frame i; a negative i counts from the end.
func CutFrames(i int) Edit {
	return func(frames []string) []string {
		if i < 0 {
			i += len(frames)
		}
		return frames[:i]
	}
}

// Replace substitutes text in every frame.
func Replace(before, after string) Edit {
	return func(frames []string) []string {
		out := make([]string, len(frames))
		for i, f := range frames {
			out[i] = strings.ReplaceAll(f, before, after)
		}
		return out
	}
}

// joinFrames sends the whole stream at once.
func joinFrames(frames []string) []string { return []string{strings.Join(frames, "")} }

// keepAlives puts a comment before each frame.
func keepAlives(frames []string) []string {
	var out []string
	for _, f := range frames {
		out = append(out, ": keep-alive\n\n", f)
	}
	return out
}

// carriageReturns ends every line with CR LF.
func carriageReturns(frames []string) []string { return Replace("\n", "\r\n")(frames) }

// The edits below are for answers of [ChatCompletions].

// withoutDone leaves out the closing [DONE].
func withoutDone(frames []string) []string {
	return without(frames, func(f string) bool { return f == doneFrame })
}

// withoutFinish leaves out the chunk with the finish reason.
func withoutFinish(frames []string) []string { return without(frames, isFinish) }

// WithoutType leaves the "type" out of every tool call.
func WithoutType(frames []string) []string { return Replace(`"type":"function",`, "")(frames) }

// withoutIndex leaves the "index" out of every tool call.
func withoutIndex(frames []string) []string {
	for i := range 8 {
		frames = Replace(fmt.Sprintf(`"tool_calls":[{"index":%d,`, i), `"tool_calls":[{`)(frames)
	}
	return frames
}

// NullAfterFinish adds a chunk with a null finish reason after the one with the
// finish reason.
func NullAfterFinish(frames []string) []string {
	var out []string
	for _, f := range frames {
		out = append(out, f)
		if isFinish(f) {
			out = append(out, frame(`{"choices":[{"index":0,"delta":{},"finish_reason":null}]}`))
		}
	}
	return out
}

// BadJSON returns a frame that is not JSON.
func BadJSON() string { return frame(`{"id":"chatcmpl-1","choices":[{"ind`) }

// ErrorFrame returns an error event within a stream.
func ErrorFrame(kind, code, message string) string {
	return ChatCompletions.ErrorFrame(Fault{Type: kind, Code: code, Message: message})
}

const doneFrame = "data: [DONE]\n\n"

func frame(data string) string { return "data: " + data + "\n\n" }

func isFinish(f string) bool {
	i := strings.Index(f, `"finish_reason":`)
	return i >= 0 && !strings.HasPrefix(f[i+len(`"finish_reason":`):], "null")
}

func without(frames []string, drop func(string) bool) []string {
	var out []string
	for _, f := range frames {
		if !drop(f) {
			out = append(out, f)
		}
	}
	return out
}

// stop returns why the answer ends.
func (t *Turn) stop() model.StopReason {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return model.StopToolCalls
	case len(t.Refusal) > 0:
		return model.StopRefusal
	}
	return model.StopEnd
}

// signature returns the signature of the reasoning of answer id: that of the
// turn, or one made from the id.
func (t *Turn) signature(id string) string {
	if t.Signature == "" && len(t.Reasoning) > 0 {
		return base64.StdEncoding.EncodeToString([]byte("signed:" + id))
	}
	return t.Signature
}

func (t *Turn) usage() Usage {
	if t.Usage == (Usage{}) {
		return DefaultUsage
	}
	return t.Usage
}
