package modeltest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

// gemini is Google's API, of AI Studio or of Vertex AI. See
// https://ai.google.dev/api/generate-content, https://ai.google.dev/api/models,
// https://ai.google.dev/gemini-api/docs/thought-signatures and
// https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference.
type gemini struct{ vertex bool }

var (
	geminiPath = lazy.Regexp(`^/v1(?:beta|alpha)?/models/([^/:]+):(generateContent|streamGenerateContent)$`)
	vertexPath = lazy.Regexp(`^/v1(?:beta1)?/(?:projects/[^/]+/locations/[^/]+/)?publishers/google/models/([^/:]+):(generateContent|streamGenerateContent)$`)
	vertexList = lazy.Regexp(`^/v1(?:beta1)?/publishers/google/models$`)
)

func (g gemini) route(r *http.Request) route {
	path, list := geminiPath(), r.URL.Path == "/v1beta/models" || r.URL.Path == "/v1/models"
	if g.vertex {
		path, list = vertexPath(), vertexList().MatchString(r.URL.Path)
	}
	if list {
		return route{task: listTask}
	}
	m := path.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return route{}
	}
	return route{task: answerTask, model: m[1], stream: m[2] == "streamGenerateContent"}
}

func (g gemini) credential(h http.Header) string {
	if token := bearer(h); g.vertex && token != "" {
		return token
	}
	return h.Get("X-Goog-Api-Key") // also of Vertex, in express mode
}

// name does not set an id of the request: the service has none.
func (gemini) name(_ http.Header, n int) string { return fmt.Sprintf("resp%06d", n) }

func (g gemini) list(models []string, _ string, query url.Values) any {
	some, more := page(models, query.Get("pageToken"), queryInt(query, "pageSize", 50))
	list := []any{}
	token := ""
	for _, id := range some {
		token = id
		if g.vertex {
			list = append(list, object{"name": "publishers/google/models/" + id, "versionId": "001", "launchStage": "GA"})
			continue
		}
		list = append(list, object{
			"name": "models/" + id, "version": "001", "displayName": id, "description": "A model.",
			"inputTokenLimit": 1048576, "outputTokenLimit": 65536, "supportedGenerationMethods": []string{"generateContent", "countTokens"},
			"temperature": 1, "topP": 0.95, "topK": 64, "maxTemperature": 2, "thinking": true,
		})
	}
	out := object{"models": list}
	if g.vertex {
		out = object{"publisherModels": list}
	}
	if more {
		out["nextPageToken"] = token
	}
	return out
}

// geminiStatuses are the codes of google.rpc.Code for HTTP statuses.
var geminiStatuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
	429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// fault is a google.rpc.Status:
// https://ai.google.dev/gemini-api/docs/troubleshooting and
// https://cloud.google.com/apis/design/errors.
func (g gemini) fault(f *Fault) (int, string) {
	status, message, details := f.orElse(http.StatusInternalServerError), f.Message, []any{}
	switch f.kind {
	case noKey:
		status, message = 403, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
	case wrongKey:
		status, message = g.wrongKey()
		if !g.vertex {
			details = append(details, object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com", "metadata": object{"service": "generativelanguage.googleapis.com"}})
		}
	case noModel:
		message = "models/" + f.name + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."
	case tooLong:
		message = "The input token count (1204290) exceeds the maximum number of tokens allowed (1048576)."
	case tooMany:
		message = "You exceeded your current quota, please check your plan and billing details."
	case overload:
		message = "The model is overloaded. Please try again later."
	case broken:
		message = "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
	}
	if f.RetryAfter > 0 {
		details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%gs", f.RetryAfter.Seconds())})
	}
	e := object{"code": status, "message": message, "status": cmp.Or(geminiStatuses[status], "UNKNOWN")}
	if len(details) > 0 {
		e["details"] = details
	}
	return status, text(object{"error": e})
}

func (g gemini) wrongKey() (status int, message string) {
	if g.vertex {
		return 401, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."
	}
	return 400, "API key not valid. Please pass a valid API key."
}

func (g gemini) errorFrame(f *Fault) string {
	_, body := g.fault(f)
	return geminiFrame(body)
}

// geminiFrame ends lines as the service does.
func geminiFrame(data string) string { return "data: " + data + "\r\n\r\n" }

// geminiRender renders the chunks of one answer.
type geminiRender struct {
	*answer
	vertex    bool
	signature string // not yet sent
	out       []string
}

func (g gemini) frames(a *answer) []string {
	r := &geminiRender{answer: a, vertex: g.vertex, signature: a.Turn.signature(a.id)}
	if a.Blocked != "" {
		return []string{geminiFrame(r.blocked())}
	}
	for _, p := range r.parts() {
		r.out = append(r.out, geminiFrame(r.chunk([]string{p}, "")))
	}
	return append(r.out, geminiFrame(r.chunk([]string{r.lastPart()}, r.finish())))
}

func (g gemini) whole(a *answer) string {
	r := &geminiRender{answer: a, vertex: g.vertex, signature: a.Turn.signature(a.id)}
	if a.Blocked != "" {
		return r.blocked()
	}
	joined := *a.Turn
	for _, list := range []*[]string{&joined.Reasoning, &joined.Text, &joined.Refusal} {
		if len(*list) > 0 {
			*list = []string{strings.Join(*list, "")}
		}
	}
	r.answer = &answer{Turn: &joined, server: a.server, req: a.req, id: a.id, model: a.model}
	parts := r.parts()
	if r.signature != "" || len(parts) == 0 {
		parts = append(parts, r.lastPart())
	}
	return r.chunk(parts, r.finish())
}

func (r *geminiRender) finish() string {
	switch stop := r.stop(); {
	case r.Finish != "":
		return r.Finish
	case stop == model.StopMaxTokens:
		return "MAX_TOKENS"
	case stop == model.StopContentFilter:
		return "SAFETY"
	case stop == model.StopRefusal:
		return "PROHIBITED_CONTENT"
	case stop == model.StopOther:
		return "SOMETHING_NEW"
	}
	return "STOP"
}

// parts returns the parts of the content as JSON. Arguments are unchanged, which
// encoding/json would not keep.
func (r *geminiRender) parts() []string {
	var out []string
	for _, s := range r.Reasoning {
		out = append(out, text(object{"text": s, "thought": true}))
	}
	for _, s := range append(append([]string{}, r.Text...), r.Refusal...) {
		out = append(out, text(object{"text": s}))
	}
	for i := range r.Calls {
		out = append(out, r.call(&r.Calls[i]))
	}
	return out
}

// call returns the part of a call. The first one of an answer has the signature
// of the thoughts.
func (r *geminiRender) call(c *Call) string {
	id, signature := "", ""
	if c.ID != "" {
		id = `"id":` + text(c.ID) + ","
	}
	if r.signature != "" {
		signature = `,"thoughtSignature":` + text(r.signature)
		r.server.issue(r.signature, c.Name)
		r.signature = ""
	}
	return fmt.Sprintf(`{"functionCall":{%s"name":%s,"args":%s}%s}`, id, text(c.Name), cmp.Or(c.args(), "{}"), signature)
}

// lastPart is an empty text, with the signature if no call had it.
func (r *geminiRender) lastPart() string {
	p := object{"text": ""}
	if r.signature != "" {
		p["thoughtSignature"] = r.signature
		r.server.issue(r.signature, "")
	}
	return text(p)
}

func (r *geminiRender) chunk(parts []string, finish string) string {
	end := ""
	if finish != "" {
		end = `,"finishReason":` + text(finish) + `,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"}]`
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],%s}`, strings.Join(parts, ","), end, r.about(finish != ""))
}

// blocked is the answer to a blocked prompt.
func (r *geminiRender) blocked() string {
	feedback := object{"blockReason": r.Blocked, "safetyRatings": []any{object{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH"}}}
	return `{"promptFeedback":` + text(feedback) + `,` + r.about(true) + `}`
}

// about returns the members of every chunk. The counts grow with the answer.
func (r *geminiRender) about(last bool) string {
	u := r.usage()
	counts := object{
		"promptTokenCount": u.Prompt, "totalTokenCount": u.Prompt + u.Completion,
		"promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": u.Prompt}},
	}
	if u.Cached > 0 {
		counts["cachedContentTokenCount"] = u.Cached
		counts["cacheTokensDetails"] = []any{object{"modality": "TEXT", "tokenCount": u.Cached}}
	}
	if u.Reasoning > 0 {
		counts["thoughtsTokenCount"] = u.Reasoning
	}
	if last {
		counts["candidatesTokenCount"] = u.Completion - u.Reasoning
	}
	more := ""
	if r.vertex {
		counts["trafficType"] = "ON_DEMAND"
		more = `,"createTime":"2025-01-01T00:00:00.000000Z"`
	}
	return fmt.Sprintf(`"usageMetadata":%s,"modelVersion":%s,"responseId":%s%s`, text(counts), text(r.model), text(r.id), more)
}
