// Package modeltest tests model providers over the wire.
//
// [Chat] is a fake OpenAI Chat Completions server. It speaks the real
// protocol: the same chunk shapes, the same error bodies, the same complaints
// about a request that the real service would refuse. What it answers is
// scripted as [Turn] values, and every way in which a stream can go wrong is
// one of their fields or one of the [Edit] functions.
//
// [TestProvider] is the contract of model.Provider as a test suite. A provider
// passes it before anything is built on that provider.
package modeltest
