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
	// Signature goes with the reasoning, where the API has that: the signature of
	// a thinking block, encrypted content, a thought signature. Empty means one
	// that the server makes if there is reasoning.
	Signature string
	Redacted  string   // data of a redacted thinking block; of Messages only
	Text      []string // one chunk each
	Refusal   []string // one chunk each; the text of the answer where the API has no other place
	Calls     []Call
	// Interleave lets the calls take turns, one fragment each, instead of
	// sending one call after the other, where the API can do that.
	Interleave bool
	// Stop is why the answer ends; empty means StopToolCalls, StopRefusal or
	// StopEnd, by what it holds.
	Stop   model.StopReason
	Finish string // the API's own word instead of Stop
	// Blocked is why the prompt was refused, such as "SAFETY"; there is no other
	// answer then. Of Gemini only.
	Blocked string
	Usage   Usage  // zero means [DefaultUsage]
	Model   string // the model that answers; empty means the requested one

	// Status other than 0 and 200 answers with Fault, or else with Body, instead
	// of a completion.
	Status int
	Header http.Header // added to the answer's header, with every status
	Body   string
	Fault  *Fault // its status counts if there is no other

	Edits []Edit // changes of the stream, in order
	Break *Break // where the stream breaks off; nil means nowhere
	Split int    // bytes in each write; 0 means one write for each frame
	// Gate is called before each frame, with -1 before the header, and may
	// block until the test lets the answer go on or ctx, the request's
	// context, ends.
	Gate func(ctx context.Context, frame int)
}

// Call is one tool call of an answer.
type Call struct {
	ID, Name string   // without an ID, where the API can do that
	Args     []string // the argument text, one fragment for each chunk
}

func (c *Call) args() string { return strings.Join(c.Args, "") }

// Usage is the token count that an answer reports, as far as the API can. Prompt
// includes Cached and CacheWrite, Completion includes Reasoning.
type Usage struct{ Prompt, Cached, CacheWrite, Completion, Reasoning int }

// DefaultUsage is reported by a turn that names no usage.
var DefaultUsage = Usage{Prompt: 120, Cached: 64, Completion: 30, Reasoning: 8}

// Break says where and how a stream ends too early.
type Break struct {
	After int // bytes of the stream that are still sent
	How   Ending
}

// Ending is how a broken stream ends.
type Ending uint8

// The endings.
const (
	End   Ending = iota // as if the answer were whole
	Abort               // without the last chunk of the transfer encoding
	Reset               // with a TCP reset
)

// Edit changes the frames of a stream. A frame is one server-sent event with
// its blank line, and is written at once.
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

// NullAfterFinish adds a chunk whose finish reason is null after the one that
// names it.
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

// ErrorFrame returns an error event as it appears in the middle of a stream.
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

// signature returns what goes with the reasoning of answer id: the turn's own,
// or one that is made of the id.
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
