package openai

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// fault reads the body of an error, and the events "error" and
// "response.failed", which has the error in its response.
func fault(_ int, body []byte) wire.Fault {
	var failed struct {
		Response struct {
			Error json.RawMessage
		}
	}
	if json.Unmarshal(body, &failed) == nil && len(failed.Response.Error) > 0 {
		body = failed.Response.Error
	}
	f := wire.ParseFault(body)
	f.As = classify(f.Code, f.Type)
	f.RetryAfter = wait(f.Message)
	if strings.HasPrefix(f.Message, "Request too large") {
		f.As = model.CodeContextLength // it exceeds what a minute allows, and will in the next one
	}
	switch f.Code {
	case "billing_hard_limit_reached", "billing_not_active":
		f.Permanent = true
	case "unknown_url":
		f.Message += " (a service that only has the chat API needs the setting api: chat)"
	case "invalid_encrypted_content":
		f.Message += " (the reasoning kept in this session belongs to another account or service: go on with another model, or begin a new session)"
	}
	return f
}

// classify tells the code where the service's own tells more than the status.
// Empty is none of that kind. The codes come from
// https://platform.openai.com/docs/guides/error-codes and from the error of
// https://platform.openai.com/docs/api-reference/responses/object.
func classify(code, kind string) model.ErrorCode {
	switch code {
	case "context_length_exceeded":
		return model.CodeContextLength
	case "invalid_api_key":
		return model.CodeAuthentication
	case "model_not_found":
		return model.CodeModelNotFound
	case "rate_limit_exceeded", "insufficient_quota", "slow_down", "billing_hard_limit_reached", "billing_not_active":
		return model.CodeRateLimited
	case "server_error", "server_is_overloaded":
		return model.CodeNetwork
	case "unknown_url":
		return model.CodeNotConfigured
	case "invalid_prompt", "invalid_encrypted_content", "data_residency_mismatch":
		return model.CodeInvalidRequest
	}
	switch {
	case strings.Contains(code, "image"), strings.Contains(code, "policy"): // the same again would not be taken either
		return model.CodeInvalidRequest
	case kind == "service_unavailable_error": // under any status
		return model.CodeNetwork
	}
	return ""
}

// again matches the time that a message about a limit names.
var again = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\btry again in ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)`)
})

// wait returns how long to wait, 0 if the message does not say.
func wait(message string) time.Duration {
	m := again().FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(strings.ToLower(m[1]))
	if err != nil {
		return 0
	}
	return d
}
