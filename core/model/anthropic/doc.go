// Package anthropic is a provider for Anthropic's Messages API, version
// 2023-06-01: https://platform.claude.com/docs/en/api/messages.
//
// The tools, the system prompt and the last two turns of the user are marked
// for the prompt cache, so that each request of a session reads what the one
// before it has written.
//
// Thinking comes as reasoning. A block's signature is kept in
// [model.Reasoning.Signature], behind the provider and the model that wrote it;
// redacted blocks are kept as [model.Opaque]. Both go back unchanged, to the
// same model only. An effort becomes adaptive thinking where the model has
// that, and a budget of tokens for the models up to Claude 4.5.
//
// Schemas of tools and answers are passed on unchanged.
package anthropic
