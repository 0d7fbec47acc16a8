// Package openai is a provider for OpenAI's Responses API:
// https://platform.openai.com/docs/api-reference/responses. The older chat API,
// which other services imitate, is served by core/model/langchain.
//
// Nothing is stored by the service: each request sends the whole conversation,
// with the encrypted reasoning of earlier turns and the phases of its messages.
// Both are kept as [model.Opaque] and sent back unchanged, to the same provider
// and model only. Reasoning is shown as a summary, for which some organizations
// must be verified: the provider option {"reasoning":{"summary":null}} disables
// it.
//
// An effort is mapped to the nearest that the model supports. Models known not to
// reason get none, unknown models get the effort as it is. Without an effort the
// model decides, and no summary is requested.
//
// Provider options are members of the body. Include, reasoning and text are
// merged with those of the request; all others replace them.
//
// Schemas of tools and answers are sent unchanged, and not as strict ones, which
// must list every property as required.
//
// If the model supports tool search and there is the tool [model.ToolSearch],
// deferred tools are sent with the results of a search. Otherwise they are sent
// with all tools: adding them later would change the cached prefix.
package openai
