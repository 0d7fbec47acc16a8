// Package langchain joins the model package and langchaingo, both ways.
//
// [Local] and [OpenAI] make providers of langchaingo's openai client for
// servers that speak the Chat Completions API. [Provider] makes a provider of
// any langchaingo model, and [Model] makes a langchaingo model of any
// provider, for use in chains and agents.
//
// # How a chat call runs
//
// langchaingo composes the call: address, key, model and limits. The HTTP
// client that it is given, an exchange, completes the request's body, sends it
// and reads the streamed answer once, handing each delta to the consumer as it
// arrives. langchaingo then gets the gathered answer as an ordinary completion
// without streaming, so that nothing depends on its stream parser, which takes
// broken streams for whole ones, joins the arguments of interleaved calls and
// gives up on lines over 64 KiB. Stop reason and usage are taken from
// langchaingo's result, and its text and calls must be those that were
// streamed.
//
// The conversation and the tools are written to the body by this package:
// langchaingo's encoder handles every message several times over, which costs
// more than the rest of a turn once the conversation is long.
//
// # Cancelling
//
// All calls run on the consumer's goroutine. When the consumer stops or its
// context ends, the connection is closed before the sequence returns.
package langchain
