package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Turn is what the server answers to one request. The zero Turn is an empty
// answer that stops.
type Turn struct {
	Reasoning []string // reasoning_content, one chunk each, before the text
	Text      []string // content, one chunk each
	Refusal   []string // refusal, one chunk each
	Calls     []Call
	// Interleave lets the calls take turns, one fragment each, instead of
	// sending one call after the other.
	Interleave bool
	Finish     string // finish_reason; empty means "tool_calls" or "stop"
	Usage      Usage  // zero means [DefaultUsage]
	Model      string // the model that answers; empty means the requested one

	// Status other than 0 and 200 answers with Body instead of a completion.
	Status int
	Header http.Header // added to the answer's header, with every status
	Body   string

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
	ID, Name string
	Args     []string // the argument text, one fragment for each chunk
}

// Usage is the token count that an answer reports.
type Usage struct{ Prompt, Cached, Completion, Reasoning int }

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

// WithoutDone leaves out the closing [DONE].
func WithoutDone(frames []string) []string {
	return without(frames, func(f string) bool { return f == doneFrame })
}

// WithoutFinish leaves out the chunk with the finish reason.
func WithoutFinish(frames []string) []string { return without(frames, isFinish) }

// WithoutType leaves the "type" out of every tool call.
func WithoutType(frames []string) []string { return Replace(`"type":"function",`, "")(frames) }

// WithoutIndex leaves the "index" out of every tool call.
func WithoutIndex(frames []string) []string {
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

// Join sends the whole stream at once.
func Join(frames []string) []string { return []string{strings.Join(frames, "")} }

// KeepAlives puts a comment before each frame.
func KeepAlives(frames []string) []string {
	var out []string
	for _, f := range frames {
		out = append(out, ": keep-alive\n\n", f)
	}
	return out
}

// CarriageReturns ends every line with CR LF.
func CarriageReturns(frames []string) []string { return Replace("\n", "\r\n")(frames) }

// BadJSON returns a frame that is not JSON.
func BadJSON() string { return frame(`{"id":"chatcmpl-1","choices":[{"ind`) }

// ErrorFrame returns an error event as it appears in the middle of a stream.
func ErrorFrame(kind, code, message string) string {
	return frame(string(errorBody(kind, code, message)))
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

// finish returns the finish reason.
func (t *Turn) finish() string {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// render holds what all chunks of one answer share.
type render struct {
	id, model    string
	includeUsage bool
	frames       []string
}

const created = 1735689600

// frames renders the stream that answers a request.
func (t *Turn) frames(id, model string, includeUsage bool) []string {
	r := &render{id: id, model: model, includeUsage: includeUsage}
	if len(t.Calls) > 0 && len(t.Text) == 0 {
		r.delta(`{"role":"assistant","content":null,"refusal":null}`, "null")
	} else {
		r.delta(`{"role":"assistant","content":"","refusal":null}`, "null")
	}
	for _, s := range t.Reasoning {
		r.delta(`{"reasoning_content":`+quote(s)+`}`, "null")
	}
	for _, s := range t.Text {
		r.delta(`{"content":`+quote(s)+`}`, "null")
	}
	for _, s := range t.Refusal {
		r.delta(`{"refusal":`+quote(s)+`}`, "null")
	}
	r.calls(t.Calls, t.Interleave)
	r.delta(`{}`, quote(t.finish()))
	if includeUsage {
		r.chunk("", t.usage())
	}
	r.frames = append(r.frames, doneFrame)
	out := r.frames
	for _, edit := range t.Edits {
		out = edit(out)
	}
	return out
}

// delta adds a chunk with one choice.
func (r *render) delta(delta, finish string) {
	r.chunk(`{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+finish+`}`, "null")
}

func (r *render) chunk(choice, usage string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `data: {"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_0a1b2c3d4e","choices":[%s]`,
		quote(r.id), created, quote(r.model), choice)
	if r.includeUsage {
		b.WriteString(`,"usage":` + usage)
	}
	b.WriteString("}\n\n")
	r.frames = append(r.frames, b.String())
}

// calls adds the chunks of the tool calls: for each a first one with id and
// name, then one for each fragment of the arguments.
func (r *render) calls(calls []Call, interleave bool) {
	var queues [][]string
	for i, c := range calls {
		q := []string{fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, quote(c.ID), quote(c.Name))}
		for _, a := range c.Args {
			q = append(q, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(a)))
		}
		queues = append(queues, q)
	}
	if !interleave {
		for _, q := range queues {
			for _, d := range q {
				r.delta(d, "null")
			}
		}
		return
	}
	for round, more := 0, true; more; round++ {
		more = false
		for _, q := range queues {
			if round < len(q) {
				r.delta(q[round], "null")
				more = true
			}
		}
	}
}

func (t *Turn) usage() string {
	u := t.Usage
	if u == (Usage{}) {
		u = DefaultUsage
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached, u.Reasoning)
}

// completion renders the answer as one JSON object.
func (t *Turn) completion(id, model string) string {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if len(t.Text) > 0 || len(t.Calls) == 0 {
		message["content"] = strings.Join(t.Text, "")
	}
	if len(t.Refusal) > 0 {
		message["refusal"] = strings.Join(t.Refusal, "")
	}
	if len(t.Reasoning) > 0 {
		message["reasoning_content"] = strings.Join(t.Reasoning, "")
	}
	var calls []any
	for _, c := range t.Calls {
		calls = append(calls, map[string]any{
			"id": c.ID, "type": "function",
			"function": map[string]string{"name": c.Name, "arguments": strings.Join(c.Args, "")},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	body, _ := json.Marshal(message) // strings and maps of them always marshal
	return fmt.Sprintf(`{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}],"usage":%s,"service_tier":"default","system_fingerprint":"fp_0a1b2c3d4e"}`,
		quote(id), created, quote(model), body, quote(t.finish()), t.usage())
}

// quote returns s as a JSON string, without the escapes that HTML would need.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
