package modeltest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Fault is an error of a service. Each API reports it in its own form.
type Fault struct {
	Status              int
	Type, Code, Message string // as in OpenAI's API; others derive theirs from the status
	// RetryAfter is the RetryInfo of a Gemini error.
	RetryAfter time.Duration

	kind faultKind
	name string // a key or a model that the message repeats
}

// faultKind is an error of every service, with the service's own message.
type faultKind uint8

const (
	otherFault faultKind = iota
	noKey
	wrongKey
	noModel
	tooLong
	tooMany
	overload
	broken
	filtered
)

// The turns below answer with the error bodies of the real services.

// Unauthorized is the error for an invalid key. OpenAI's message repeats it.
func Unauthorized(key string) Turn {
	return failure(Fault{Status: http.StatusUnauthorized, kind: wrongKey, name: key})
}

// NoSuchModel is a 404 for an unknown model.
func NoSuchModel(name string) Turn {
	return failure(Fault{Status: http.StatusNotFound, kind: noModel, name: name})
}

// ContextLength is a 400 for a prompt that is too long.
func ContextLength() Turn {
	return failure(Fault{Status: http.StatusBadRequest, kind: tooLong})
}

// RateLimited is a 429 with that Retry-After header, unless it is empty.
func RateLimited(retryAfter string) Turn {
	t := failure(Fault{Status: http.StatusTooManyRequests, kind: tooMany})
	if retryAfter != "" {
		t.Header = http.Header{"Retry-After": {retryAfter}}
	}
	return t
}

// ServerError is a 500, 503, 529 or another status with the service's message.
func ServerError(status int) Turn {
	return failure(Fault{Status: status, kind: broken})
}

// Overloaded is the error of an overloaded service, as a status or within a
// stream.
func Overloaded() Turn {
	return failure(Fault{Status: http.StatusServiceUnavailable, kind: overload})
}

// PromptFiltered is the error for a prompt blocked by a content filter; Azure only.
func PromptFiltered() Turn {
	return failure(Fault{Status: http.StatusBadRequest, kind: filtered})
}

// Failure is an HTTP error with the service's error body.
func Failure(status int, kind, code, message string) Turn {
	return failure(Fault{Status: status, Type: kind, Code: code, Message: message})
}

func failure(f Fault) Turn { return Turn{Status: f.Status, Fault: &f} }

// refuse returns the error for an invalid request.
func refuse(code, format string, args ...any) *Fault {
	return &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: code, Message: fmt.Sprintf(format, args...)}
}

// HoldAt returns a gate that blocks before frame i until release is closed or
// the client goes away. Frame -1 is the header.
func HoldAt(i int, release <-chan struct{}) func(context.Context, int) {
	return func(ctx context.Context, frame int) {
		if frame != i {
			return
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
}

// openAIFault sets type, code and message, as in
// https://platform.openai.com/docs/guides/error-codes.
func openAIFault(f *Fault) Fault {
	known := map[faultKind]Fault{
		noKey:    {Type: "invalid_request_error", Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."},
		wrongKey: {Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided: " + f.name + ". You can find your API key at https://platform.openai.com/account/api-keys."},
		noModel:  {Type: "invalid_request_error", Code: "model_not_found", Message: "The model `" + f.name + "` does not exist or you do not have access to it."},
		tooLong:  {Type: "invalid_request_error", Code: "context_length_exceeded", Message: "This model's maximum context length is 128000 tokens. However, your messages resulted in 204290 tokens. Please reduce the length of the messages."},
		tooMany:  {Type: "requests", Code: "rate_limit_exceeded", Message: "Rate limit reached for requests. Limit: 3 / min. Please try again later."},
		overload: {Type: "server_error", Code: "server_error", Message: "The engine is currently overloaded, please try again later"},
		broken:   {Type: "server_error", Message: "The server had an error while processing your request. Sorry about that!"},
	}
	out := *f
	if k, ok := known[f.kind]; ok {
		out.Type, out.Code, out.Message = k.Type, k.Code, k.Message
	}
	return out
}

// errorBody is {"error":{…}} with all members that the service sends.
func errorBody(f *Fault) string {
	e := openAIFault(f)
	var code any
	if e.Code != "" {
		code = e.Code
	}
	return text(object{"error": object{"message": e.Message, "type": e.Type, "param": nil, "code": code}})
}

// object is a JSON object.
type object = map[string]any

// text returns v as JSON, without escapes for HTML. It is for values that always
// marshal.
func text(v any) string {
	var b jsonBuilder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return string(b[:max(len(b)-1, 0)])
}

type jsonBuilder []byte

// Write implements io.Writer.
func (b *jsonBuilder) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// orElse returns the status of the fault, or else the given one.
func (f *Fault) orElse(status int) int { return cmp.Or(f.Status, status) }
