package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// responses is OpenAI's Responses API. See
// https://platform.openai.com/docs/api-reference/responses and
// https://platform.openai.com/docs/api-reference/responses-streaming.
type responses struct{}

func (responses) route(r *http.Request) route {
	switch r.URL.Path {
	case "/v1/responses":
		return route{task: answerTask}
	case "/v1/models":
		return route{task: listTask}
	}
	return route{}
}

func (responses) credential(h http.Header) string { return bearer(h) }

func (responses) name(h http.Header, n int) string {
	h.Set("X-Request-Id", fmt.Sprintf("req_%06d", n))
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "12")
	return fmt.Sprintf("resp_%06d", n)
}

func (responses) list(models []string, path string, query url.Values) any {
	return chat{}.list(models, path, query)
}

func (responses) fault(f *Fault) (int, string) {
	return f.orElse(http.StatusInternalServerError), errorBody(f)
}

// errorFrame is the event "error", whose members are at the top level.
func (responses) errorFrame(f *Fault) string {
	e := openAIFault(f)
	return eventFrame(object{"type": "error", "code": e.Code, "message": e.Message, "param": nil, "sequence_number": 3})
}

// failedFrame is the event "response.failed", the other way to report an error.
func (responses) failedFrame(f *Fault) string {
	e := openAIFault(f)
	r := (&responseRender{answer: &answer{Turn: &Turn{}, req: &Request{}, id: "resp_000001"}}).response("failed")
	r["error"] = object{"code": e.Code, "message": e.Message}
	return eventFrame(object{"type": "response.failed", "response": r, "sequence_number": 3})
}

// eventFrame returns an event whose type is that of its data.
func eventFrame(event object) string {
	return fmt.Sprintf("event: %s\ndata: %s\n\n", event["type"], text(event))
}

// responseRender renders the events of one answer.
type responseRender struct {
	*answer
	output []object // the finished items
	events []object
}

func (responses) frames(a *answer) []string {
	r := &responseRender{answer: a}
	r.emit(object{"type": "response.created", "response": r.response("in_progress")})
	r.emit(object{"type": "response.in_progress", "response": r.response("in_progress")})
	r.items()
	end, status := "response.completed", "completed"
	if r.incomplete() != "" {
		end, status = "response.incomplete", "incomplete"
	}
	r.emit(object{"type": end, "response": r.response(status)})
	frames := make([]string, len(r.events))
	for i, e := range r.events {
		e["sequence_number"] = i
		frames[i] = eventFrame(e)
	}
	return frames
}

func (responses) whole(a *answer) string {
	r := &responseRender{answer: a}
	r.items()
	if r.incomplete() != "" {
		return text(r.response("incomplete"))
	}
	return text(r.response("completed"))
}

func (r *responseRender) emit(events ...object) { r.events = append(r.events, events...) }

// incomplete returns why the answer is incomplete, "" if it is not.
func (r *responseRender) incomplete() string {
	switch stop := r.stop(); {
	case r.Finish != "":
		return r.Finish
	case stop == model.StopMaxTokens:
		return "max_output_tokens"
	case stop == model.StopContentFilter:
		return "content_filter"
	case stop == model.StopOther:
		return "something_new"
	}
	return ""
}

// response returns the object for the whole answer.
func (r *responseRender) response(status string) object {
	var usage, incomplete any
	output := []object{}
	if status == "completed" || status == "incomplete" {
		u := r.usage()
		usage = object{
			"input_tokens": u.Prompt, "input_tokens_details": object{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite},
			"output_tokens": u.Completion, "output_tokens_details": object{"reasoning_tokens": u.Reasoning},
			"total_tokens": u.Prompt + u.Completion,
		}
		output = append(output, r.output...)
	}
	if status == "incomplete" {
		incomplete = object{"reason": r.incomplete()}
	}
	return object{
		"id": r.id, "object": "response", "created_at": created, "status": status, "background": false, "error": nil,
		"incomplete_details": incomplete, "instructions": nil, "max_output_tokens": nil, "max_tool_calls": nil, "model": r.model,
		"output": output, "parallel_tool_calls": true, "previous_response_id": nil, "prompt_cache_key": nil,
		"reasoning": object{"effort": nil, "summary": nil}, "safety_identifier": nil, "service_tier": "default", "store": false,
		"temperature": 1.0, "text": object{"format": object{"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
		"tools": []any{}, "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": nil, "metadata": object{},
	}
}

// items adds the items of the answer.
func (r *responseRender) items() {
	if len(r.Reasoning) > 0 || r.Signature != "" {
		r.reasoning()
	}
	if len(r.Text)+len(r.Refusal) > 0 || len(r.Calls) == 0 {
		r.message()
	}
	var queues [][]object
	for i := range r.Calls {
		queues = append(queues, r.call(i))
	}
	r.emit(merge(queues, r.Interleave)...)
}

// merge returns the elements of the queues, interleaved or one queue after another.
func merge[E any](queues [][]E, turns bool) []E {
	var out []E
	for round, more := 0, true; more; round++ {
		more = false
		for _, q := range queues {
			switch {
			case !turns && round == 0:
				out = append(out, q...)
			case turns && round < len(q):
				out = append(out, q[round])
				more = true
			}
		}
	}
	return out
}

// reasoning adds the item of the reasoning. It has encrypted content only if that
// was requested, which is incomplete in the event at the beginning.
func (r *responseRender) reasoning() {
	id, index := "rs_"+r.id, len(r.output)
	item := object{"id": id, "type": "reasoning", "summary": []object{}}
	secret := r.Turn.signature(r.id)
	r.server.issue(secret, id)
	if r.req.encrypted {
		item["encrypted_content"] = secret
	}
	begun := copyOf(item)
	if r.req.encrypted {
		begun["encrypted_content"] = secret[:len(secret)/2]
	}
	r.emit(object{"type": "response.output_item.added", "output_index": index, "item": begun})
	if len(r.Reasoning) > 0 {
		at := func(kind string) object {
			return object{"type": "response.reasoning_summary_" + kind, "item_id": id, "output_index": index, "summary_index": 0}
		}
		r.emit(with(at("part.added"), "part", object{"type": "summary_text", "text": ""}))
		for _, s := range r.Reasoning {
			r.emit(with(at("text.delta"), "delta", s))
		}
		part := object{"type": "summary_text", "text": strings.Join(r.Reasoning, "")}
		r.emit(with(at("text.done"), "text", part["text"]), with(at("part.done"), "part", part))
		item["summary"] = []object{part}
	}
	r.finish(index, item)
}

// message adds the item of the text.
func (r *responseRender) message() {
	id, index := "msg_"+r.id, len(r.output)
	at := func(kind string, part int) object {
		return object{"type": "response." + kind, "item_id": id, "output_index": index, "content_index": part}
	}
	begun := object{"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []object{}}
	r.emit(object{"type": "response.output_item.added", "output_index": index, "item": begun})
	content := []object{}
	if len(r.Text) > 0 || len(r.Refusal) == 0 {
		part := object{"type": "output_text", "text": strings.Join(r.Text, ""), "annotations": []any{}, "logprobs": []any{}}
		r.emit(with(at("content_part.added", 0), "part", with(copyOf(part), "text", "")))
		for _, s := range r.Text {
			r.emit(with(with(at("output_text.delta", 0), "delta", s), "logprobs", []any{}))
		}
		r.emit(with(with(at("output_text.done", 0), "text", part["text"]), "logprobs", []any{}), with(at("content_part.done", 0), "part", part))
		content = append(content, part)
	}
	if len(r.Refusal) > 0 {
		n := len(content)
		part := object{"type": "refusal", "refusal": strings.Join(r.Refusal, "")}
		r.emit(with(at("content_part.added", n), "part", object{"type": "refusal", "refusal": ""}))
		for _, s := range r.Refusal {
			r.emit(with(at("refusal.delta", n), "delta", s))
		}
		r.emit(with(at("refusal.done", n), "refusal", part["refusal"]), with(at("content_part.done", n), "part", part))
		content = append(content, part)
	}
	status := "completed"
	if r.incomplete() != "" && len(r.Calls) == 0 {
		status = "incomplete"
	}
	r.finish(index, object{"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

// finish adds the end of an item.
func (r *responseRender) finish(index int, item object) {
	r.output = append(r.output, item)
	r.emit(object{"type": "response.output_item.done", "output_index": index, "item": item})
}

// call returns the events of call i.
func (r *responseRender) call(i int) []object {
	c := &r.Calls[i]
	if r.req.searches && c.Name == model.ToolSearch {
		return r.search(c)
	}
	id, index := fmt.Sprintf("fc_%s_%d", r.id, i), len(r.output)
	status := "completed"
	if r.incomplete() == "max_output_tokens" && i == len(r.Calls)-1 {
		status = "incomplete"
	}
	begun := object{"id": id, "type": "function_call", "status": "in_progress", "arguments": "", "call_id": c.ID, "name": c.Name}
	item := with(with(copyOf(begun), "status", status), "arguments", c.args())
	r.output = append(r.output, item)
	events := []object{{"type": "response.output_item.added", "output_index": index, "item": begun}}
	at := func(kind string) object {
		return object{"type": "response.function_call_arguments." + kind, "item_id": id, "output_index": index}
	}
	for _, s := range c.Args {
		events = append(events, with(at("delta"), "delta", s))
	}
	return append(events, with(with(at("done"), "arguments", c.args()), "name", c.Name),
		object{"type": "response.output_item.done", "output_index": index, "item": item})
}

// search returns the events of a tool search for the client.
func (r *responseRender) search(c *Call) []object {
	index := len(r.output)
	item := object{
		"id": "ts_" + r.id, "type": "tool_search_call", "status": "completed", "execution": "client",
		"call_id": c.ID, "arguments": json.RawMessage(c.args()),
	}
	r.output = append(r.output, item)
	begun := with(with(copyOf(item), "status", "in_progress"), "arguments", object{})
	return []object{
		{"type": "response.output_item.added", "output_index": index, "item": begun},
		{"type": "response.output_item.done", "output_index": index, "item": item},
	}
}

// with sets a member of o, and returns o.
func with(o object, name string, value any) object {
	o[name] = value
	return o
}

func copyOf(o object) object {
	c := object{}
	for name, value := range o {
		c[name] = value
	}
	return c
}
