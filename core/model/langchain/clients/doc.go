// Package clients makes providers of langchaingo's own clients, by name: bedrock,
// cloudflare, cohere, huggingface, mistral and ollama.
//
// The agent's own clients do more for services that have an API they know: a
// service with the Chat Completions API is better reached by
// [langchain.Compatible]. What langchaingo's clients lack is lacking here:
//
//	             conversation  images  tool calls  streaming
//	bedrock      yes           yes     Anthropic   Anthropic, without tools
//	cloudflare   yes           –       –           yes
//	cohere       as one text   –       –           –
//	huggingface  as one text   –       –           –
//	mistral      yes           –       yes         yes
//	ollama       yes           yes     –           yes
//
// Where there are no tool calls, the request's tools are left out and earlier
// calls and results are sent as text; [HasTools] says so.
//
// # Requests
//
// Requests go through the transport of package wire: with its time limits, its
// errors, the configured headers and options, and without retries. The clients of
// cohere and mistral accept no transport, so they talk to a server on a loopback
// address, for one call each, which requires a random key and passes requests on.
package clients
