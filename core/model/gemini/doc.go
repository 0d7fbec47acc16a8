// Package gemini is a provider for Google's Gemini: the Developer API
// (https://ai.google.dev/api/generate-content) and Vertex AI
// (https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference).
//
// Thoughts become reasoning, as a summary. Thought signatures, which the models
// need back with their calls and texts, are kept as [model.Opaque] before them,
// and sent back to the same provider only. Calls of other providers' models have
// none; they get the value that Google documents for that.
//
// Schemas of tools and answers are sent unchanged, as JSON Schema.
package gemini
