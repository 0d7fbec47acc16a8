package langchain

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/seed-009c0928/agent/core/model"
)

// chat is a provider over langchaingo's openai client.
type chat struct {
	cfg     Config
	dialect dialect
	url     *url.URL // of the chat completions, with the base URL's query
	models  *url.URL // of the list of models
	info    model.ProviderInfo
	client  *http.Client
	faults  faults

	conversation conversation
}

var _ model.Provider = (*chat)(nil)

// Info implements [model.Provider].
func (p *chat) Info() model.ProviderInfo { return p.info }

// Stream implements [model.Provider].
func (p *chat) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		callCtx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		x := &exchange{provider: p, req: req, ctx: ctx, cancel: cancel, yield: yield}
		done, err := x.run(callCtx)
		if !x.stopped {
			p.faults.end(ctx, done, err, yield)
		}
	}
}

// run makes the call through langchaingo and returns the last delta.
func (x *exchange) run(ctx context.Context) (model.Delta, error) {
	p := x.provider
	if err := p.faults.ended(x.ctx); err != nil {
		return model.Delta{}, err
	}
	name := p.modelOf(x.req)
	if name == "" {
		return model.Delta{}, notConfigured(p.info.Name, fmt.Sprintf("no model: set providers.%s.model in the settings (`agent config path` shows where they are) or name one for this run", p.info.Name))
	}
	llm, err := openai.New(
		openai.WithBaseURL(p.cfg.BaseURL),
		openai.WithToken(p.token()),
		openai.WithModel(name),
		openai.WithOrganization(""), // or langchaingo would take it from the environment
		openai.WithHTTPClient(x),
	)
	if err != nil {
		return model.Delta{}, p.faults.wrap(model.CodeNotConfigured, "langchaingo does not take the configuration", err)
	}
	result, err := llm.GenerateContent(ctx, nil, p.callOptions(x.req)...)
	switch {
	case x.err != nil: // langchaingo hides the cause of what its HTTP client returns
		return model.Delta{}, x.err
	case x.stopped:
		return model.Delta{}, nil
	case err != nil:
		return model.Delta{}, p.faults.wrap(model.CodeUnknown, "langchaingo could not make the call", err)
	}
	done, err := x.answer.reconcile(result)
	if err != nil {
		return model.Delta{}, p.faults.wrap(model.CodeInvalidResponse, "", err)
	}
	return done, nil
}

func (p *chat) modelOf(req *model.Request) string {
	if req.Model != "" {
		return req.Model
	}
	return p.cfg.Model
}

// token is what langchaingo, which insists on one, gets as the key. Without a
// key the exchange takes the header away again.
func (p *chat) token() string {
	if p.cfg.APIKey == "" {
		return "none"
	}
	return p.cfg.APIKey
}

// callOptions are the parts of the request that langchaingo encodes well.
func (p *chat) callOptions(req *model.Request) []llms.CallOption {
	var opts []llms.CallOption
	if req.Temperature != nil {
		opts = append(opts, llms.WithTemperature(*req.Temperature))
	}
	if req.MaxTokens > 0 {
		opts = append(opts, llms.WithMaxTokens(req.MaxTokens))
		if p.dialect.legacyMaxTokens {
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
