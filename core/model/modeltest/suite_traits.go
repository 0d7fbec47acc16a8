package modeltest

import "github.com/seed-009c0928/agent/core/model"

// traits are what an API can do and what it is like, so far as a check must
// know.
type traits struct {
	model string // a model that thinks, where the API has such
	other string // another model, with other rules for thinking
	plain string // a model that takes a temperature

	anyArgs    bool   // arguments may be what is no JSON
	noArgs     string // how a call without arguments arrives
	badArgs    bool   // such arguments of a call may go back as they are
	interleave bool   // the fragments of calls may come by turns
	lazyIDs    bool   // a call may come without an id
	cutCalls   bool   // an answer may end within a call
	separate   bool   // a refusal is not among the texts
	state      bool   // state of the service goes back with the next request
	redacts    bool   // thinking may be hidden
	errorFlag  bool   // a result says whether it is an error
	writes     bool   // writing to the cache is counted
	requestIDs bool   // an answer's header names the request
	needsLimit bool   // a request must say how long the answer may be

	refusal model.StopReason // of a Turn with a Refusal; empty if the API has none
	filter  model.StopReason // of StopContentFilter

	conversation string // the member of the body that grows
	option       string // a member that requests do not have otherwise
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
