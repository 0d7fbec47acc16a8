package modeltest

import (
	"context"
	"encoding/json"
	"net/http"
)

// The turns below answer with the error bodies of the real service.

// Unauthorized is a 401 whose message repeats key, as careless servers do.
func Unauthorized(key string) Turn {
	return Failure(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key",
		"Incorrect API key provided: "+key+". You can find your API key at https://platform.openai.com/account/api-keys.")
}

// NoSuchModel is a 404 for an unknown model.
func NoSuchModel(name string) Turn {
	return Failure(http.StatusNotFound, "invalid_request_error", "model_not_found",
		"The model `"+name+"` does not exist or you do not have access to it.")
}

// ContextLength is a 400 for a prompt that is too long.
func ContextLength() Turn {
	return Failure(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 204290 tokens. Please reduce the length of the messages.")
}

// RateLimited is a 429 with that Retry-After header, unless it is empty.
func RateLimited(retryAfter string) Turn {
	t := Failure(http.StatusTooManyRequests, "requests", "rate_limit_exceeded",
		"Rate limit reached for requests. Limit: 3 / min. Please try again later.")
	if retryAfter != "" {
		t.Header = http.Header{"Retry-After": {retryAfter}}
	}
	return t
}

// ServerError is a 500, 503, 529 or another status with the service's message.
func ServerError(status int) Turn {
	return Failure(status, "server_error", "", "The server had an error while processing your request. Sorry about that!")
}

// Failure is an HTTP error with the service's error body.
func Failure(status int, kind, code, message string) Turn {
	return Turn{Status: status, Body: string(errorBody(kind, code, message))}
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

func errorBody(kind, code, message string) []byte {
	var c any
	if code != "" {
		c = code
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{
		"message": message, "type": kind, "param": nil, "code": c,
	}}) // strings always marshal
	return body
}
