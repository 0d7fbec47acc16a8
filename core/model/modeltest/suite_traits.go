package modeltest

import "github.com/seed-009c0928/agent/core/model"

// traits are the properties of an API that checks depend on.
type traits struct {
	model string // a model that thinks, if the API has any
	other string // another model, with other rules for thinking
	plain string // a model that accepts a temperature

	anyArgs    bool   // arguments need not be JSON
	noArgs     string // arguments of a call without arguments
	badArgs    bool   // arguments that are not JSON may be sent back
	interleave bool   // the fragments of calls may be interleaved
	lazyIDs    bool   // a call may have no id
	cutCalls   bool   // an answer may end within a call
	separate   bool   // a refusal is separate from the text
	state      bool   // state of the service is sent back with the next request
	redacts    bool   // thinking may be redacted
	errorFlag  bool   // a result has a flag for errors
	writes     bool   // cache writes are counted
	requestIDs bool   // responses have a request id
	needsLimit bool   // requests need the maximum length of the answer

	refusal model.StopReason // for a Turn with a Refusal; empty if the API has none
	filter  model.StopReason // for StopContentFilter

	conversation string // the body's member with the conversation
	option       string // an option that requests do not have otherwise
}

func (a API) traits() traits {
	switch a {
	case Responses:
		return traits{
			model: "gpt-5-test", other: "o4-mini", plain: "gpt-4.1", anyArgs: true, badArgs: true, interleave: true, cutCalls: true, separate: true,
			state: true, requestIDs: true, refusal: model.StopRefusal, filter: model.StopContentFilter,
			conversation: "input", option: `{"metadata":{"purpose":"a test"}}`,
		}
	case Messages:
		return traits{
			model: "claude-sonnet-4-5", other: "claude-opus-4-6", plain: "claude-sonnet-4-5", anyArgs: true, noArgs: "{}", cutCalls: true,
			state: true, redacts: true, errorFlag: true, writes: true, requestIDs: true, needsLimit: true, refusal: model.StopRefusal, filter: model.StopRefusal,
			conversation: "messages", option: `{"metadata":{"user_id":"a test"}}`,
		}
	case Gemini, Vertex:
		return traits{
			model: "gemini-3-test", other: "gemini-2.5-flash", plain: "gemini-2.5-flash", noArgs: "{}", lazyIDs: true,
			state: true, errorFlag: true, filter: model.StopContentFilter,
			conversation: "contents", option: `{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]}`,
		}
	}
	t := traits{
		model: "gpt-test", other: "o4-mini", plain: "gpt-test", anyArgs: true, interleave: true, lazyIDs: true, cutCalls: true, separate: true,
		requestIDs: true, refusal: model.StopRefusal, filter: model.StopContentFilter,
		conversation: "messages", option: `{"seed":7}`,
	}
	if a == Ollama {
		t.model, t.plain = "llama3.3:latest", "llama3.3:latest"
	}
	return t
}
