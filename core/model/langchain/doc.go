// Package langchain connects the model package and langchaingo, both ways.
//
// [Local] and [OpenAI] make providers of langchaingo's openai client for
// servers that speak the Chat Completions API. [Provider] makes a provider of
// any langchaingo model, and [Model] makes a langchaingo model of any
// provider, for use in chains and agents.
//
// # How a chat call runs
//
// langchaingo composes the call: model and limits. Its HTTP client, an exchange,
// completes the request body, sends it and reads the streamed answer, passing
// each delta to the consumer as it arrives. langchaingo then gets the complete
// answer as a completion that is not streamed, so that nothing depends on its
// stream parser, which accepts broken streams as complete, merges the arguments
// of interleaved calls and fails on lines over 64 KiB. Stop reason and usage are
// taken from langchaingo's result, whose text and calls must be those that were
// streamed.
//
// The conversation and the tools are written to the body by this package:
// langchaingo's encoder processes every message several times, which would take
// most of the time of a turn in a long conversation.
//
// # Cancelling
//
// All calls run on the consumer's goroutine. When the consumer stops or its
// context ends, the connection is closed before the sequence returns.
package langchain
