package langchain

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// stopReason maps the stop reasons of langchaingo's models. A response with calls
// that ends normally always means StopToolCalls.
func stopReason(reason string, calls int) model.StopReason {
	switch strings.ToLower(strings.TrimPrefix(reason, "FinishReason")) {
	case "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "finish", "finished", "end":
		if calls > 0 {
			return model.StopToolCalls
		}
		return model.StopEnd
	case "tool_calls", "tool_use", "function_call", "tool_call":
		return model.StopToolCalls
	case "length", "max_tokens", "maxtokens", "model_length", "max_length", "model_context_window_exceeded":
		return model.StopMaxTokens
	case "content_filter", "content_filtered", "safety", "recitation", "guardrail_intervened", "error_toxic":
		return model.StopContentFilter
	case "refusal":
		return model.StopRefusal
	}
	return model.StopOther
}

// usage reads the token counts in the generation info of langchaingo's models,
// each with its own names and integer types.
func usage(info map[string]any) model.Usage {
	if nested, ok := info["usage"]; ok { // mistral's has the API's object
		if raw, err := json.Marshal(nested); err == nil {
			var u wireUsage
			if json.Unmarshal(raw, &u) == nil && u.Prompt+u.Completion > 0 {
				return model.Usage{Input: int(u.Prompt), CachedInput: int(u.PromptDetails.Cached), Output: int(u.Completion), Reasoning: int(u.Details.Reasoning)}
			}
		}
	}
	count := func(names ...string) int {
		for _, name := range names {
			if n := integer(info[name]); n != 0 {
				return n
			}
		}
		return 0
	}
	u := model.Usage{
		Input:       count("PromptTokens", "InputTokens", "input_tokens"),
		CachedInput: count("PromptCachedTokens", "CacheReadInputTokens", "CachedTokens"),
		CacheWrite:  count("CacheCreationInputTokens"),
		Output:      count("CompletionTokens", "OutputTokens", "output_tokens"),
		Reasoning:   count("CompletionReasoningTokens", "ReasoningTokens", "ThinkingTokens"),
	}
	if _, ok := info["CacheReadInputTokens"]; ok { // anthropic does not include what is cached
		u.Input += u.CachedInput + u.CacheWrite
	}
	return u
}

func integer(v any) int {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return int(r.Int())
	case r.CanUint():
		return int(r.Uint()) //nolint:gosec // token counts are small
	case r.CanFloat():
		return int(r.Float())
	}
	return 0
}
