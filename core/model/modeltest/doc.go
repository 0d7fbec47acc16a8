// Package modeltest tests model providers over the wire.
//
// A [Server] is a fake service: OpenAI's Chat Completions and Responses, Azure
// OpenAI, Ollama, Anthropic's Messages, Google's Gemini and Vertex AI (see
// [API]). It speaks the real protocol: the same events, the same error bodies,
// the same complaints about a request that the real service would refuse. What
// it answers is scripted as [Turn] values, which are the same for all APIs, and
// every way in which a stream can go wrong is one of their fields or one of the
// [Edit] functions. It keeps the requests, and tells as [Said] what each says.
// The vendors' own clients check the servers, in the module sdkcheck.
//
// [TestProvider] is the contract of model.Provider as a test suite. A provider
// passes it before anything is built on that provider. [TestMutants] checks the
// suite itself.
package modeltest
