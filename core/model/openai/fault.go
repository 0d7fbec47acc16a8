package openai

import (
	"encoding/json"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// fault parses the body of an error, and the events "error" and
// "response.failed", which contains the error in its response.
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
	if strings.HasPrefix(f.Message, "Request too large") {
		f.As = model.CodeContextLength // it exceeds the limit per minute, and always will
	}
	switch f.Code {
	case "billing_hard_limit_reached", "billing_not_active":
		f.Permanent = true
	case "unknown_url":
		f.Message += " (for a service that only has the chat API, set api to chat)"
	case "invalid_encrypted_content":
		f.Message += " (the reasoning in this session belongs to another account or service: use another model, or start a new session)"
	}
	return f
}

// classify returns the code if the service's own is more precise than the
// status, otherwise "". The codes are from
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
	case strings.Contains(code, "image"), strings.Contains(code, "policy"): // would be rejected again
		return model.CodeInvalidRequest
	case kind == "service_unavailable_error": // with any status
		return model.CodeNetwork
	}
	return ""
}
