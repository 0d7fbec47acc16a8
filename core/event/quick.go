package event

import (
	"encoding/json"

	"github.com/seed-009c0928/agent/core/internal/quickjson"
	"github.com/seed-009c0928/agent/core/model"
)

// quickBody reads the members of a body and the end of its event, for the types of which
// a session log has most. It is not ok for other types, and for any form but that of
// MarshalJSON.
func quickBody(kind []byte, r quickjson.Reader) (b Body, ok bool) {
	switch string(kind) {
	case "session_start":
		b = quickSessionStart(&r)
	case "user":
		b = User{Content: quickParts(&r), Run: r.String("run"), Input: r.String("input")}
	case "idle":
		b = Idle{State: r.String("state"), Stop: r.String("stop")}
	case "message_start":
		b = MessageStart{Model: r.String("model")}
	case "message":
		b = quickMessage(&r)
	case "llm_start":
		b = quickLLMStart(&r)
	case "llm_end":
		b = quickLLMEnd(&r)
	case "tool_use":
		b = ToolUse{Name: r.String("name"), Source: r.String("source"), Args: r.String("args")}
	case "tool_result":
		b = quickToolResult(&r)
	case "permission":
		b = quickPermission(&r)
	default:
		return nil, false
	}
	r.Close()
	return b, r.End()
}

func quickSessionStart(r *quickjson.Reader) SessionStart {
	return SessionStart{
		Agent: r.String("agent"), Cwd: r.String("cwd"), Provider: r.String("provider"), Model: r.String("model"), Profile: r.String("profile"),
		Resumed: r.True("resumed"), Path: quickValue[[]string](r, "path"),
	}
}

func quickParts(r *quickjson.Reader) (parts model.Parts) {
	r.Decode("content", parts.UnmarshalJSON)
	return parts
}

// quickValue reads a member that few events have, or that has little in it.
func quickValue[T any](r *quickjson.Reader, name string) (v T) {
	r.Decode(name, func(text []byte) error { return json.Unmarshal(text, &v) })
	return v
}

func quickMessage(r *quickjson.Reader) Message {
	return Message{
		Content: quickParts(r), Usage: quickUsage(r), Stop: model.StopReason(r.String("stop")), ResponseID: r.String("responseId"),
		Provider: r.String("provider"), Model: r.String("model"), Partial: r.True("partial"),
	}
}

func quickUsage(r *quickjson.Reader) (u model.Usage) {
	if !r.Member("usage") {
		return u
	}
	r.Open()
	u = model.Usage{
		Input: int(r.Int("input")), CachedInput: int(r.Int("cachedInput")), CacheWrite: int(r.Int("cacheWrite")),
		Output: int(r.Int("output")), Reasoning: int(r.Int("reasoning")),
	}
	r.Close()
	return u
}

func quickLLMStart(r *quickjson.Reader) LLMStart {
	return LLMStart{
		Provider: r.String("provider"), Model: r.String("model"), Server: r.String("server"), Purpose: r.String("purpose"),
		Messages: int(r.Int("messages")), Tools: int(r.Int("tools")),
		FirstByteMS: r.Int("firstByteTimeoutMs"), IdleMS: r.Int("idleTimeoutMs"), TotalMS: r.Int("totalTimeoutMs"),
	}
}

func quickLLMEnd(r *quickjson.Reader) LLMEnd {
	return LLMEnd{
		Provider: r.String("provider"), Model: r.String("model"), Usage: quickUsage(r), Stop: model.StopReason(r.String("stop")),
		LatencyMS: r.Int("latencyMs"), FirstMS: r.Int("firstMs"), Error: r.String("error"), Code: model.ErrorCode(r.String("code")),
	}
}

func quickToolResult(r *quickjson.Reader) ToolResult {
	return ToolResult{
		Name: r.String("name"), Content: quickParts(r), IsError: r.True("isError"), Code: r.String("code"), Output: quickValue[*Output](r, "output"),
		DurationMS: r.Int("durationMs"), WaitedMS: r.Int("waitedMs"), Bytes: r.Int("bytes"),
		Structured: r.Raw("structured"), Meta: quickValue[map[string]json.RawMessage](r, "meta"),
	}
}

func quickPermission(r *quickjson.Reader) Permission {
	return Permission{
		Tool: r.String("tool"), Decision: r.String("decision"), Decider: r.String("decider"), Rule: r.String("rule"),
		Source: r.String("source"), Reason: r.String("reason"), Choice: r.String("choice"),
		Rules: quickValue[[]string](r, "rules"), Accesses: quickValue[[]Access](r, "accesses"),
	}
}
