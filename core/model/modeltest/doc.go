// Package modeltest tests model providers over the wire.
//
// A [Server] is a fake service: OpenAI's Chat Completions and Responses, Azure
// OpenAI, Ollama, Anthropic's Messages, Google's Gemini and Vertex AI (see
// [API]). It uses the real protocol: the same events, the same error bodies, the
// same errors for invalid requests. Its answers are scripted as [Turn] values,
// which are the same for all APIs; their fields and the [Edit] functions break a
// stream in every possible way. It records the requests, and parses them into
// [Parsed]. The module sdkcheck tests the servers with the vendors' own clients.
//
// [TestProvider] is the contract of [model.Provider] as a test suite.
package modeltest
