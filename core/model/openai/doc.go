// Package openai is a provider for OpenAI's Responses API:
// https://platform.openai.com/docs/api-reference/responses. The older chat API,
// which other services imitate, is served by core/model/langchain.
//
// Nothing is stored at the service: each request brings the whole conversation,
// with the reasoning of earlier turns in the encrypted form that the service
// gave, and with the phases of its messages. Both are kept as [model.Opaque] and
// go back unchanged, to the same provider and model only. What is shown of
// reasoning is a summary, which some organizations must be verified for: the
// provider option {"reasoning":{"summary":null}} does without.
//
// An effort becomes the nearest that a model has. A model that is known not to
// reason is not asked for any; one of an unknown name is asked for what the
// request says. Without an effort the model decides, and no summary is asked for.
//
// Provider options are members of the body. Those for include, reasoning and
// text are joined to what the request says; any other replaces it.
//
// Schemas of tools and answers are passed on unchanged, and not strict: a strict
// one must list every property as required.
//
// Deferred tools come into the conversation with the results of a search for
// them, where a model can search and there is the tool [model.ToolSearch]. Others
// get them with all tools: those that came later would change the cached prefix.
package openai
