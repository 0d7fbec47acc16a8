// Package openai is a provider for OpenAI's Responses API:
// https://platform.openai.com/docs/api-reference/responses. The older chat API,
// which other services imitate, is served by core/model/langchain.
//
// Nothing is stored at the service: each request brings the whole conversation,
// with the reasoning of earlier turns in the encrypted form that the service
// gave. It is kept as [model.Opaque] and goes back unchanged, to the same
// provider and model only. What is shown of reasoning is a summary.
//
// Schemas of tools and answers are passed on unchanged, and not strict: a strict
// one must list every property as required.
package openai
