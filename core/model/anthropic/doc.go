// Package anthropic is a provider for Anthropic's Messages API, version
// 2023-06-01: https://platform.claude.com/docs/en/api/messages.
//
// The tools, the system prompt and the last two turns of the user are marked
// for the prompt cache, so that each request of a session reads what the one
// before it has written.
//
// Thinking becomes reasoning. The signature of a block is kept in
// [model.Reasoning.Signature], prefixed by the provider and the model; redacted
// blocks are kept as [model.Opaque]. Both are sent back unchanged, to the same
// model only. An effort becomes adaptive thinking if the model supports it, and a
// budget of tokens for models up to Claude 4.5.
//
// Schemas of tools and answers are sent unchanged.
package anthropic
