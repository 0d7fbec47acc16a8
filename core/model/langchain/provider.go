package langchain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// Traits describe a langchaingo model to [Provider].
type Traits struct {
	Info model.ProviderInfo
	// OnePart is for models that send only the first part of a message, such as
	// langchaingo's anthropic: each part becomes a separate message.
	OnePart bool
	// ImageURLs is for models that need images as data URLs instead of bytes,
	// such as langchaingo's openai.
	ImageURLs bool
	// NoStopReason is for models without stop reasons, such as langchaingo's
	// ollama. Their broken streams cannot be told from complete ones.
	NoStopReason bool
	// OneText is for models that take a single text in a message, such as
	// langchaingo's ollama and cloudflare.
	OneText bool
	// OnePrompt is for models that send a single text instead of a conversation,
	// such as langchaingo's cohere and huggingface: it becomes a transcript.
	OnePrompt bool
	// NoTools is for models that send no tools, such as langchaingo's ollama and
	// cloudflare: earlier calls and results become text.
	NoTools bool
	// NoImages is for models that refuse images, such as langchaingo's cloudflare.
	NoImages bool
	// Streams reports whether the model can stream the answer to a request with
	// tools, if tools is true; langchaingo's bedrock cannot. By default it can.
	Streams func(model string, tools bool) bool
	// Chunk reads the text of what the streaming callback gets, such as the JSON
	// of langchaingo's cloudflare. By default it is the text itself.
	Chunk func([]byte) (string, error)
	// Secrets are removed from errors, such as the key, which servers may repeat.
	Secrets []string
}

// Provider makes a provider of any langchaingo model.
//
// Text arrives as the model streams it; tool calls, whose pieces langchaingo's
// callback does not tell apart, arrive when the response is complete. A response
// without a stop reason is an error, as is one whose text is not what was
// streamed. What models do not support is an error (a schema of the answer,
// provider options) or converted to text (images in tool results, parts of
// unknown kinds). The effort is a hint that some models ignore, and langchaingo
// sends a temperature of 0 if the request has none.
//
// Time limits are the model's own. When the consumer stops early, Stream returns
// after the model's call, which a model that ignores its context delays.
func Provider(m llms.Model, t Traits) model.Provider {
	return &adapter{llm: m, traits: t, Faults: wire.NewFaults(t.Info, t.Secrets)}
}

type adapter struct {
	llm    llms.Model
	traits Traits
	wire.Faults
}

var _ model.Provider = (*adapter)(nil)

// Info implements [model.Provider].
func (p *adapter) Info() model.ProviderInfo { return p.traits.Info }

// Stream implements [model.Provider].
func (p *adapter) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		c := &adapterCall{provider: p, req: req, pieces: make(chan piece)}
		c.answer.emit = func(d model.Delta) error {
			if !yield(d, nil) {
				return wire.ErrStopped
			}
			return nil
		}
		done, err := c.run(ctx)
		if !errors.Is(err, wire.ErrStopped) {
			p.End(ctx, done, err, yield)
		}
	}
}

// adapterCall is one call of a langchaingo model.
type adapterCall struct {
	provider *adapter
	req      *model.Request
	pieces   chan piece
	answer   answer
	hasCalls bool // the callback got tool calls; further text waits for the result
}

// piece is what a callback gets.
type piece struct{ text, reasoning string }

// run makes the call in a separate goroutine, since langchaingo does not document
// where its callbacks run, and waits for its end.
func (c *adapterCall) run(ctx context.Context) (model.Delta, error) {
	p := c.provider
	if err := p.Ended(ctx); err != nil {
		return model.Delta{}, err
	}
	messages := p.traits.messages(c.req)
	options, err := p.options(c.req)
	if err != nil {
		return model.Delta{}, err
	}
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var result *llms.ContentResponse
	var failed error
	go func() {
		defer close(c.pieces)
		defer func() {
			if r := recover(); r != nil {
				failed = fmt.Errorf("the langchaingo model panicked: %v", r)
			}
		}()
		result, failed = p.llm.GenerateContent(callCtx, messages, append(options, c.callbacks(callCtx)...)...)
	}()
	var stopped error
	for pc := range c.pieces {
		if stopped == nil {
			if stopped = c.emit(ctx, pc); stopped != nil {
				cancel()
			}
		}
	}
	switch {
	case stopped != nil:
		return model.Delta{}, stopped
	case ctx.Err() != nil: // some models return no error then
		return model.Delta{}, p.Ended(ctx)
	case failed != nil:
		return model.Delta{}, p.fault(failed)
	}
	return c.finish(result)
}

// callbacks returns the options that stream the answer, if the model can.
func (c *adapterCall) callbacks(ctx context.Context) []llms.CallOption {
	t := c.provider.traits
	if t.Streams != nil && !t.Streams(cmp.Or(c.req.Model, t.Info.Model), len(c.req.Tools) > 0) {
		return nil
	}
	return []llms.CallOption{
		llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
			text, err := string(chunk), error(nil)
			if t.Chunk != nil {
				if text, err = t.Chunk(chunk); err != nil {
					return err
				}
			}
			return c.send(ctx, piece{text: text})
		}),
		llms.WithStreamingReasoningFunc(func(_ context.Context, reasoning, _ []byte) error {
			return c.send(ctx, piece{reasoning: string(reasoning)})
		}),
	}
}

func (c *adapterCall) send(ctx context.Context, pc piece) error {
	if pc == (piece{}) {
		return nil
	}
	select {
	case c.pieces <- pc:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *adapterCall) emit(ctx context.Context, pc piece) error {
	if err := c.provider.Ended(ctx); err != nil {
		return err
	}
	if err := c.answer.addText(&c.answer.reasoning, model.DeltaReasoning, pc.reasoning); err != nil {
		return err
	}
	c.hasCalls = c.hasCalls || len(c.req.Tools) > 0 && isCalls(pc.text)
	if c.hasCalls {
		return nil
	}
	return c.answer.addText(&c.answer.text, model.DeltaText, pc.text)
}

// isCalls reports whether a piece of text is the JSON of tool calls that
// langchaingo's openai passes to the callback for text.
func isCalls(text string) bool {
	if !strings.HasPrefix(text, "[{") {
		return false
	}
	var calls []struct {
		Function *struct{} `json:"function"`
	}
	if json.Unmarshal([]byte(text), &calls) != nil {
		return false
	}
	for _, call := range calls {
		if call.Function == nil {
			return false
		}
	}
	return true
}

// finish emits the rest of the result, which was not streamed.
func (c *adapterCall) finish(result *llms.ContentResponse) (model.Delta, error) {
	var text, thought strings.Builder
	var counted model.Usage
	a := &c.answer
	var calls []llms.ToolCall
	if result != nil {
		for _, choice := range result.Choices { // anthropic has one for each block
			text.WriteString(choice.Content)
			thought.WriteString(choice.ReasoningContent)
			calls = append(calls, choice.ToolCalls...)
			if choice.StopReason != "" {
				a.finishing = choice.StopReason
			}
			if u := usage(choice.GenerationInfo); u != (model.Usage{}) {
				counted = u
			}
		}
	}
	if a.finishing == "" && c.provider.traits.NoStopReason {
		a.finishing = "stop"
	}
	if !a.finished() {
		return model.Delta{}, c.provider.Wrap(model.CodeNetwork, "the answer ended early: it has no stop reason", io.ErrUnexpectedEOF)
	}
	err := c.rest(&a.reasoning, model.DeltaReasoning, thought.String())
	if err == nil {
		err = c.rest(&a.text, model.DeltaText, text.String())
	}
	for i := 0; err == nil && i < len(calls); i++ {
		part := callPart{Index: &i, ID: calls[i].ID}
		if fn := calls[i].FunctionCall; fn != nil {
			part.Function.Name, part.Function.Arguments = fn.Name, argsText(fn.Arguments)
		}
		if part.ID == "" && part.Function.Name == "" {
			part.Index = nil // mistral does not join the pieces of a streamed call
		}
		err = a.addCall(i, &part)
	}
	if err == nil {
		err = a.finish()
	}
	if err != nil && !errors.Is(err, wire.ErrStopped) {
		err = c.provider.Wrap(model.CodeInvalidResponse, "invalid answer of the langchaingo model", err)
	}
	return model.Delta{Kind: model.DeltaDone, Stop: stopReason(a.finishing, len(a.calls)), Usage: counted}, err
}

// rest emits the part of a text that was not streamed. The result of some models
// does not repeat streamed text.
func (c *adapterCall) rest(b *block, kind model.DeltaKind, whole string) error {
	if whole == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(whole, string(b.text))
	if !ok {
		return errors.New("its text is not what was streamed")
	}
	return c.answer.addText(b, kind, rest)
}

// options returns the call options for a request.
func (p *adapter) options(req *model.Request) ([]llms.CallOption, error) {
	switch {
	case len(req.OutputSchema) > 0:
		return nil, p.Wrap(model.CodeNotSupported, "a langchaingo model does not support a schema of its answer", nil)
	case len(req.ProviderOptions[p.traits.Info.Name]) > 0:
		return nil, p.Wrap(model.CodeNotSupported, "a langchaingo model does not support provider options", nil)
	}
	var opts []llms.CallOption
	if req.Model != "" {
		opts = append(opts, llms.WithModel(req.Model))
	}
	if req.MaxTokens > 0 {
		opts = append(opts, llms.WithMaxTokens(req.MaxTokens))
	}
	if req.Temperature != nil {
		opts = append(opts, llms.WithTemperature(*req.Temperature))
	}
	switch req.Effort {
	case "":
	case model.EffortXHigh:
		opts = append(opts, llms.WithThinkingMode(llms.ThinkingModeHigh))
	default:
		opts = append(opts, llms.WithThinkingMode(llms.ThinkingMode(req.Effort)))
	}
	if p.traits.NoTools {
		return opts, nil
	}
	if len(req.Tools) > 0 {
		tools, err := p.tools(req.Tools)
		if err != nil {
			return nil, err
		}
		opts = append(opts, llms.WithTools(tools))
	}
	if choice := toolChoice(req); choice != nil {
		opts = append(opts, llms.WithToolChoice(choice))
	}
	return opts, nil
}

// tools converts the definitions. Schemas become maps, as googleai requires.
func (p *adapter) tools(defs []model.ToolDef) ([]llms.Tool, error) {
	tools := make([]llms.Tool, len(defs))
	for i, d := range defs {
		params := map[string]any{"type": "object", "properties": map[string]any{}}
		if len(d.Schema) > 0 {
			params = nil
			dec := json.NewDecoder(bytes.NewReader(d.Schema))
			dec.UseNumber() // or large numbers would be rounded
			if err := dec.Decode(&params); err != nil {
				return nil, p.Wrap(model.CodeInvalidRequest, "the schema of tool "+d.Name+" is not a JSON object", err)
			}
		}
		tools[i] = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: d.Name, Description: d.Description, Parameters: params}}
	}
	return tools, nil
}

// fault classifies the error of a langchaingo model, which is mostly just text.
func (p *adapter) fault(err error) *model.Error {
	var own *model.Error
	if errors.As(err, &own) {
		return own
	}
	text := err.Error()
	e := p.Wrap(wire.CodeOfText(text), "", err)
	e.Message = p.Clean(text)
	var known *llms.Error
	var op net.Error
	switch {
	case errors.As(err, &known):
		if code, ok := langchainCodes[known.Code]; ok {
			e.Code = code
		}
	case statusWords().MatchString(text):
		e.Status, _ = strconv.Atoi(statusWords().FindStringSubmatch(text)[1]) // three digits
		e.Code = wire.Fault{Message: text}.Classify(e.Status)
	case errors.As(err, &op) && op.Timeout():
		e.Code = model.CodeTimeout
	case errors.As(err, &op) || errors.Is(err, io.ErrUnexpectedEOF):
		e.Code = model.CodeNetwork
	}
	return e
}

var langchainCodes = map[llms.ErrorCode]model.ErrorCode{
	llms.ErrCodeAuthentication:      model.CodeAuthentication,
	llms.ErrCodeRateLimit:           model.CodeRateLimited,
	llms.ErrCodeQuotaExceeded:       model.CodeRateLimited,
	llms.ErrCodeInvalidRequest:      model.CodeInvalidRequest,
	llms.ErrCodeContentFilter:       model.CodeInvalidRequest,
	llms.ErrCodeResourceNotFound:    model.CodeModelNotFound,
	llms.ErrCodeTimeout:             model.CodeTimeout,
	llms.ErrCodeTokenLimit:          model.CodeContextLength,
	llms.ErrCodeProviderUnavailable: model.CodeNetwork,
	llms.ErrCodeNotImplemented:      model.CodeNotSupported,
}

// statusWords finds the status in an error of langchaingo.
var statusWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:status(?: code)?|HTTP)[: ]+([45]\d\d)\b`)
})
