package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// messages is Anthropic's Messages API, version 2023-06-01. See
// https://platform.claude.com/docs/en/api/messages,
// https://platform.claude.com/docs/en/build-with-claude/streaming and
// https://platform.claude.com/docs/en/api/errors.
type messages struct{}

func (messages) route(r *http.Request) route {
	switch r.URL.Path {
	case "/v1/messages":
		return route{task: answerTask}
	case "/v1/models":
		return route{task: listTask}
	}
	return route{}
}

func (messages) credential(h http.Header) string { return h.Get("X-Api-Key") }

func (messages) name(h http.Header, n int) string {
	h.Set("Request-Id", fmt.Sprintf("req_%06d", n))
	return fmt.Sprintf("msg_%06d", n)
}

// list is https://platform.claude.com/docs/en/api/models-list.
func (messages) list(models []string, _ string, query url.Values) any {
	some, more := page(models, query.Get("after_id"), queryInt(query, "limit", 20))
	list := []any{}
	var first, last any
	for i, id := range some {
		if i == 0 {
			first = id
		}
		last = id
		list = append(list, object{"type": "model", "id": id, "display_name": id, "created_at": "2025-01-01T00:00:00Z"})
	}
	return object{"data": list, "has_more": more, "first_id": first, "last_id": last}
}

// messagesTypes are the error types of the statuses.
var messagesTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

// words returns the status, type and message of an error.
func (messages) words(f *Fault) (status int, kind, message string) {
	status, message = f.orElse(http.StatusInternalServerError), f.Message
	switch f.kind {
	case noKey:
		message = "x-api-key header is required"
	case wrongKey:
		message = "invalid x-api-key"
	case noModel:
		message = "model: " + f.name
	case tooLong:
		message = "prompt is too long: 204290 tokens > 200000 maximum"
	case tooMany:
		message = "This request would exceed your organization's rate limit of 50 requests per minute."
	case overload:
		status, message = 529, "Overloaded"
	case broken:
		message = "Internal server error"
	}
	kind = f.Type
	for _, known := range messagesTypes {
		if known == kind {
			return status, kind, message
		}
	}
	if kind = messagesTypes[status]; kind == "" {
		kind = "api_error"
	}
	return status, kind, message
}

func (m messages) fault(f *Fault) (int, string) {
	status, kind, message := m.words(f)
	return status, text(object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_000001"})
}

func (m messages) errorFrame(f *Fault) string {
	_, kind, message := m.words(f)
	return eventFrame(object{"type": "error", "error": object{"type": kind, "message": message}})
}

// messageRender renders the events of one answer.
type messageRender struct {
	*answer
	blocks int
	out    []string
}

func (messages) frames(a *answer) []string {
	r := &messageRender{answer: a}
	start := r.message(nil, []any{})
	usage := r.counts()
	usage["output_tokens"] = 1
	start["usage"] = usage
	r.emit(object{"type": "message_start", "message": start})
	for _, b := range r.content() {
		r.block(b)
		if r.blocks == 1 {
			r.emit(object{"type": "ping"})
		}
	}
	total := r.counts()
	delete(total, "cache_creation")
	delete(total, "service_tier")
	r.emit(object{"type": "message_delta", "delta": object{"stop_reason": r.reason(), "stop_sequence": nil, "stop_details": nil}, "usage": total})
	r.emit(object{"type": "message_stop"})
	return r.out
}

func (messages) whole(a *answer) string {
	r := &messageRender{answer: a}
	content := []any{}
	for _, b := range r.content() {
		content = append(content, json.RawMessage(b.whole))
	}
	m := r.message(r.reason(), content)
	m["usage"] = r.counts()
	return text(m)
}

func (r *messageRender) emit(event object) { r.out = append(r.out, eventFrame(event)) }

// reason returns the stop reason.
func (r *messageRender) reason() string {
	switch stop := r.stop(); {
	case r.Finish != "":
		return r.Finish
	case stop == model.StopToolCalls:
		return "tool_use"
	case stop == model.StopMaxTokens:
		return "max_tokens"
	case stop == model.StopRefusal, stop == model.StopContentFilter:
		return "refusal"
	case stop == model.StopOther:
		return "something_new"
	}
	return "end_turn"
}

func (r *messageRender) message(reason any, content []any) object {
	return object{
		"id": r.id, "type": "message", "role": "assistant", "model": r.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "stop_details": nil,
	}
}

// counts returns the usage. Cached tokens are not included in the input.
func (r *messageRender) counts() object {
	u := r.usage()
	return object{
		"input_tokens": u.Prompt - u.Cached - u.CacheWrite, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWrite,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.CacheWrite, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  u.Completion, "output_tokens_details": object{"thinking_tokens": u.Reasoning}, "service_tier": "standard",
	}
}

// messageBlock is a block of content: its beginning, its deltas, and the complete
// block.
type messageBlock struct {
	start  object
	deltas []object
	whole  string
}

// content returns the blocks of the answer.
func (r *messageRender) content() []messageBlock {
	var out []messageBlock
	if signature := r.Turn.signature(r.id); signature != "" {
		out = append(out, r.thinking(signature))
	}
	if r.Redacted != "" {
		r.server.issue(r.Redacted, "")
		block := object{"type": "redacted_thinking", "data": r.Redacted}
		out = append(out, messageBlock{start: block, whole: text(block)})
	}
	if texts := append(append([]string{}, r.Text...), r.Refusal...); len(texts) > 0 {
		b := messageBlock{start: object{"type": "text", "text": ""}, whole: text(object{"type": "text", "text": strings.Join(texts, "")})}
		for _, s := range texts {
			b.deltas = append(b.deltas, object{"type": "text_delta", "text": s})
		}
		out = append(out, b)
	}
	for i := range r.Calls {
		out = append(out, messageCall(&r.Calls[i]))
	}
	return out
}

func (r *messageRender) thinking(signature string) messageBlock {
	all := strings.Join(r.Reasoning, "")
	r.server.issue(signature, all)
	b := messageBlock{
		start: object{"type": "thinking", "thinking": "", "signature": ""},
		whole: text(object{"type": "thinking", "thinking": all, "signature": signature}),
	}
	for _, s := range r.Reasoning {
		b.deltas = append(b.deltas, object{"type": "thinking_delta", "thinking": s})
	}
	b.deltas = append(b.deltas, object{"type": "signature_delta", "signature": signature})
	return b
}

// messageCall returns a call. Its arguments begin with an empty fragment, as
// those of the service do.
func messageCall(c *Call) messageBlock {
	b := messageBlock{start: object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}}
	for _, s := range append([]string{""}, c.Args...) {
		b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": s})
	}
	input := c.args()
	if !json.Valid([]byte(input)) {
		input = "{}"
	}
	b.whole = fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, text(c.ID), text(c.Name), input)
	return b
}

// block adds the events of a block.
func (r *messageRender) block(b messageBlock) {
	i := r.blocks
	r.blocks++
	r.emit(object{"type": "content_block_start", "index": i, "content_block": b.start})
	for _, d := range b.deltas {
		r.emit(object{"type": "content_block_delta", "index": i, "delta": d})
	}
	r.emit(object{"type": "content_block_stop", "index": i})
}
