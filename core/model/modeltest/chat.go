package modeltest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

// chat is OpenAI's Chat Completions, and compatible APIs. See
// https://platform.openai.com/docs/api-reference/chat,
// https://platform.openai.com/docs/api-reference/chat-streaming,
// https://learn.microsoft.com/azure/ai-foundry/openai/reference and
// https://docs.ollama.com/api/openai-compatibility; the list at /catalog/models is
// that of https://docs.github.com/en/rest/models/catalog.
type chat struct{ api API }

var deployment = lazy.Regexp(`^/openai/deployments/([^/]+)/chat/completions$`)

func (c chat) route(r *http.Request) route {
	if c.api == Azure {
		return azureRoute(r.URL)
	}
	switch r.URL.Path {
	case "/v1/chat/completions":
		return route{task: answerTask}
	case "/v1/models", "/catalog/models":
		return route{task: listTask}
	case "/api/tags":
		if c.api == Ollama {
			return route{task: listTask}
		}
	}
	return route{}
}

// azureRoute matches the paths with a deployment, which need a version in the
// query, and the newer ones below /openai/v1, which do not.
func azureRoute(u *url.URL) route {
	switch u.Path {
	case "/openai/v1/chat/completions":
		return route{task: answerTask}
	case "/openai/v1/models":
		return route{task: listTask}
	}
	if u.Query().Get("api-version") == "" {
		return route{}
	}
	if m := deployment().FindStringSubmatch(u.Path); m != nil {
		return route{task: answerTask, model: m[1]}
	}
	if u.Path == "/openai/models" {
		return route{task: listTask}
	}
	return route{}
}

func (c chat) credential(h http.Header) string {
	if c.api == Azure {
		return cmp.Or(h.Get("Api-Key"), bearer(h))
	}
	return bearer(h)
}

func (c chat) name(h http.Header, n int) string {
	if c.api == Azure {
		h.Set("Apim-Request-Id", fmt.Sprintf("req_%06d", n))
	}
	h.Set("X-Request-Id", fmt.Sprintf("req_%06d", n))
	return fmt.Sprintf("chatcmpl-%06d", n)
}

func (c chat) list(models []string, path string, _ url.Values) any {
	list := []any{}
	for _, id := range models {
		switch path {
		case "/catalog/models":
			list = append(list, object{
				"id": id, "name": id, "registry": "azure-openai", "publisher": "modeltest", "summary": "A model.", "rate_limit_tier": "low", "version": "1",
				"supported_input_modalities": []string{"text"}, "supported_output_modalities": []string{"text"}, "capabilities": []string{"streaming", "tool-calling"},
				"limits": object{"max_input_tokens": 128000, "max_output_tokens": 16384}, "tags": []string{}, "html_url": "https://github.com/marketplace/models",
			})
			continue
		case "/api/tags":
			list = append(list, object{
				"name": id, "model": id, "modified_at": "2025-01-01T00:00:00Z", "size": 3338801804, "digest": strings.Repeat("a2", 32),
				"details": object{"parent_model": "", "format": "gguf", "family": "llama", "families": []string{"llama"}, "parameter_size": "4.3B", "quantization_level": "Q4_K_M"},
			})
			continue
		}
		list = append(list, object{"id": id, "object": "model", "created": created, "owned_by": "modeltest"})
	}
	switch path {
	case "/catalog/models":
		return list
	case "/api/tags":
		return object{"models": list}
	}
	return object{"object": "list", "data": list}
}

func (c chat) fault(f *Fault) (int, string) {
	if c.api == Azure {
		if body := azureFault(f); body != "" {
			return f.orElse(http.StatusInternalServerError), body
		}
	}
	return f.orElse(http.StatusInternalServerError), errorBody(f)
}

// azureFault returns errors of Azure itself, "" for those of the model. See
// https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter.
func azureFault(f *Fault) string {
	simple := func(code, message string) string {
		return text(object{"error": object{"code": code, "message": message}})
	}
	switch f.kind {
	case noKey, wrongKey:
		return simple("401", "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.")
	case noModel:
		return simple("DeploymentNotFound", "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.")
	case tooMany:
		return simple("429", "Requests to the ChatCompletions_Create Operation have exceeded the call rate limit of your current pricing tier. Please retry later.")
	case filtered:
		return text(object{"error": object{
			"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
			"type":    nil, "param": "prompt", "code": "content_filter", "status": 400,
			"innererror": object{"code": "ResponsibleAIPolicyViolation", "content_filter_result": object{"violence": object{"filtered": true, "severity": "high"}}},
		}})
	}
	if f.Code == "unknown_url" {
		return simple("404", "Resource not found")
	}
	return ""
}

func (chat) errorFrame(f *Fault) string { return frame(errorBody(f)) }

// chatFinish returns the finish reason.
func chatFinish(t *Turn) string {
	switch stop := t.stop(); {
	case t.Finish != "":
		return t.Finish
	case stop == model.StopToolCalls:
		return "tool_calls"
	case stop == model.StopMaxTokens:
		return "length"
	case stop == model.StopContentFilter:
		return "content_filter"
	case stop == model.StopOther:
		return "something_new"
	}
	return "stop"
}

// chatRender renders the chunks of one answer.
type chatRender struct {
	id, model    string
	includeUsage bool
	azure        bool
	out          []string
}

const created = 1735689600

func (c chat) frames(a *answer) []string {
	r := &chatRender{id: a.id, model: a.model, azure: c.api == Azure}
	r.includeUsage = a.req.StreamOptions != nil && a.req.StreamOptions.IncludeUsage
	if r.azure {
		r.filterResults()
	}
	if len(a.Calls) > 0 && len(a.Text) == 0 {
		r.delta(`{"role":"assistant","content":null,"refusal":null}`, "null")
	} else {
		r.delta(`{"role":"assistant","content":"","refusal":null}`, "null")
	}
	for _, s := range a.Reasoning {
		r.delta(`{"reasoning_content":`+text(s)+`}`, "null")
	}
	for _, s := range a.Text {
		r.delta(`{"content":`+text(s)+`}`, "null")
	}
	for _, s := range a.Refusal {
		r.delta(`{"refusal":`+text(s)+`}`, "null")
	}
	r.calls(a.Calls, a.Interleave)
	r.delta(`{}`, text(chatFinish(a.Turn)))
	if r.includeUsage {
		r.chunk("", chatUsage(a.Turn))
	}
	return append(r.out, doneFrame)
}

// filterResults adds the first chunk of Azure: without choices and model, but with
// the results of the prompt filters. See
// https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming.
func (r *chatRender) filterResults() {
	safe := object{"filtered": false, "severity": "safe"}
	r.out = append(r.out, frame(text(object{
		"choices": []any{}, "created": 0, "id": "", "model": "", "object": "",
		"prompt_filter_results": []any{object{"prompt_index": 0, "content_filter_results": object{
			"hate": safe, "self_harm": safe, "sexual": safe, "violence": safe, "jailbreak": object{"filtered": false, "detected": false},
		}}},
	})))
}

// delta adds a chunk with one choice.
func (r *chatRender) delta(delta, finish string) {
	filter := ""
	if r.azure {
		filter = `,"content_filter_results":{}`
	}
	r.chunk(`{"index":0,"delta":`+delta+filter+`,"logprobs":null,"finish_reason":`+finish+`}`, "null")
}

func (r *chatRender) chunk(choice, usage string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `data: {"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_0a1b2c3d4e","choices":[%s]`,
		text(r.id), created, text(r.model), choice)
	if r.includeUsage {
		b.WriteString(`,"usage":` + usage)
	}
	b.WriteString("}\n\n")
	r.out = append(r.out, b.String())
}

// calls adds the chunks of the tool calls: for each, one with id and name, then
// one for each fragment of the arguments.
func (r *chatRender) calls(calls []Call, interleave bool) {
	var queues [][]string
	for i, c := range calls {
		q := []string{fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, text(c.ID), text(c.Name))}
		for _, a := range c.Args {
			q = append(q, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, text(a)))
		}
		queues = append(queues, q)
	}
	for _, d := range merge(queues, interleave) {
		r.delta(d, "null")
	}
}

func chatUsage(t *Turn) string {
	u := t.usage()
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached, u.Reasoning)
}

func (chat) whole(a *answer) string {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if len(a.Text) > 0 || len(a.Calls) == 0 {
		message["content"] = strings.Join(a.Text, "")
	}
	if len(a.Refusal) > 0 {
		message["refusal"] = strings.Join(a.Refusal, "")
	}
	if len(a.Reasoning) > 0 {
		message["reasoning_content"] = strings.Join(a.Reasoning, "")
	}
	var calls []any
	for _, c := range a.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.args()}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return fmt.Sprintf(`{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}],"usage":%s,"service_tier":"default","system_fingerprint":"fp_0a1b2c3d4e"}`,
		text(a.id), created, text(a.model), text(message), text(chatFinish(a.Turn)), chatUsage(a.Turn))
}
