package langchain

import (
	"cmp"
	"context"
	"iter"
	"net/url"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// chat is a provider over langchaingo's openai client.
type chat struct {
	*wire.Client
	dialect dialect
	url     func(model string) *url.URL // of chat completions, with the base URL's query
	alias   *aliases                    // nil if there are none

	conversation conversation
	schemas      *adapt.Adapter
}

var _ model.Provider = (*chat)(nil)

// dialect is what differs between servers of the API.
type dialect struct {
	legacyMaxTokens func(model string) bool // max_tokens instead of max_completion_tokens; nil means never
	noStreamOptions bool                    // no stream_options; some then send no usage
	schemas         adapt.Dialect           // of tools; default adapt.Chat
	efforts         map[model.Effort]string // efforts with another name
}

func newChat(cfg wire.Config, d dialect, w wire.Dialect) (*chat, error) {
	c, err := wire.New(cfg, w)
	if err != nil {
		return nil, err
	}
	return &chat{Client: c, dialect: d, schemas: adapt.New(cmp.Or(d.schemas, adapt.Chat)), url: func(string) *url.URL { return c.URL("chat/completions") }}, nil
}

// Stream implements [model.Provider].
func (p *chat) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		x := &exchange{Exchange: p.Exchange(ctx), provider: p, req: req, yield: yield}
		defer x.Close()
		done, err := x.run()
		if !x.stopped {
			p.End(ctx, done, err, yield)
		}
	}
}

// run makes the call through langchaingo and returns the last delta.
func (x *exchange) run() (model.Delta, error) {
	p := x.provider
	if err := p.Ended(x.Context()); err != nil {
		return model.Delta{}, err
	}
	name, err := p.Model(x.req)
	if err != nil {
		return model.Delta{}, err
	}
	if p.alias != nil {
		name = p.alias.resolve(x.Context(), name)
	}
	x.model = name
	llm, err := openai.New(
		openai.WithBaseURL("http://unused.invalid"), // the exchange sets the URL
		openai.WithToken("unused"),                  // and the key, but langchaingo requires one
		openai.WithModel(name),
		openai.WithOrganization(""), // or langchaingo reads it from the environment
		openai.WithHTTPClient(x),
	)
	if err != nil {
		return model.Delta{}, p.Wrap(model.CodeNotConfigured, "langchaingo rejects the configuration", err)
	}
	result, err := llm.GenerateContent(x.Context(), nil, p.callOptions(name, x.req)...)
	switch {
	case x.err != nil: // langchaingo does not wrap the errors of its HTTP client
		return model.Delta{}, x.err
	case x.stopped:
		return model.Delta{}, nil
	case err != nil:
		return model.Delta{}, p.Wrap(model.CodeUnknown, "langchaingo failed", err)
	}
	done, err := x.answer.reconcile(result)
	if err != nil {
		return model.Delta{}, p.Wrap(model.CodeInvalidResponse, "", err)
	}
	return done, nil
}

// callOptions returns the parts of the request that langchaingo encodes correctly.
func (p *chat) callOptions(name string, req *model.Request) []llms.CallOption {
	var opts []llms.CallOption
	if req.Temperature != nil {
		opts = append(opts, llms.WithTemperature(*req.Temperature))
	}
	if req.MaxTokens > 0 {
		opts = append(opts, llms.WithMaxTokens(req.MaxTokens))
		if legacy := p.dialect.legacyMaxTokens; legacy != nil && legacy(name) {
			opts = append(opts, openai.WithLegacyMaxTokensField())
		}
	}
	if choice := toolChoice(req); choice != nil {
		opts = append(opts, llms.WithToolChoice(choice))
	}
	return opts
}

// toolChoice returns langchaingo's form of the choice, nil for the default.
func toolChoice(req *model.Request) any {
	switch {
	case len(req.Tools) == 0 || req.ToolChoice == "" || req.ToolChoice == model.ToolChoiceAuto:
		return nil
	case req.ToolChoice == model.ToolChoiceNone || req.ToolChoice == model.ToolChoiceRequired:
		return string(req.ToolChoice)
	}
	return llms.ToolChoice{Type: "function", Function: &llms.FunctionReference{Name: string(req.ToolChoice)}}
}
