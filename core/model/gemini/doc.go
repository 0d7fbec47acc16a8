// Package gemini is a provider for Google's Gemini: the Developer API
// (https://ai.google.dev/api/generate-content) and Vertex AI
// (https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference).
//
// Thoughts come as reasoning, in a summary. The signatures of thoughts, which
// the models need back with the calls and texts that they came with, are kept as
// [model.Opaque] before them, and go back to the same provider only. A call that
// another provider's model made has none; it gets the value that Google
// documents for that.
//
// Schemas of tools and answers are passed on unchanged, as JSON Schema.
package gemini
