package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// Config is the configuration of a client.
type Config struct {
	wire.Config        // BaseURL is by default that of the service
	Client      string // one of [Names]
	// MaxTokens returns the limit of an answer in tokens for requests that have
	// none, 0 if it is unknown. It may be nil.
	MaxTokens func(model string) int
}

// client is what is known about one of langchaingo's clients.
type client struct {
	baseURL   string
	keyless   bool   // the service needs no key, or has other credentials
	env       string // the usual variable of the key, for messages
	maxTokens int    // of an answer, if the client has a small default
	signs     bool   // the client signs the body, which must not be changed
	traits    langchain.Traits
	// open opens the client for one call.
	open func(c *call) (llms.Model, error)
	// patch corrects the members of the body; nil for bodies that need none.
	patch func(c *call, fields map[string]json.RawMessage) error
	// ended checks the end of a streamed answer, if the client does not; nil if it does.
	ended func(tail []byte) (model.StopReason, bool)
}

// table lists the clients.
func table() map[string]client {
	noTools := langchain.Traits{NoTools: true, NoStopReason: true, OneText: true}
	noChat := langchain.Traits{NoTools: true, NoStopReason: true, OnePrompt: true, Streams: func(string, bool) bool { return false }}
	workers := noTools
	workers.NoImages, workers.Chunk = true, cloudflareChunk
	return map[string]client{
		"bedrock": {
			baseURL: "https://bedrock-runtime.us-east-1.amazonaws.com", keyless: true,
			maxTokens: 4096, signs: true, open: openBedrock,
		},
		"cloudflare":  {env: "CLOUDFLARE_API_TOKEN", traits: workers, open: openCloudflare, ended: cloudflareEnded},
		"cohere":      {baseURL: "https://api.cohere.ai/v1", env: "COHERE_API_KEY", traits: noChat, open: openCohere},
		"huggingface": {baseURL: "https://router.huggingface.co/hf-inference", env: "HF_TOKEN", traits: noChat, open: openHuggingFace},
		"mistral":     {baseURL: "https://api.mistral.ai/v1", env: "MISTRAL_API_KEY", maxTokens: 4096, traits: langchain.Traits{NoImages: true}, open: openMistral, patch: patchMistral},
		"ollama":      {baseURL: "http://localhost:11434", keyless: true, traits: noTools, open: openOllama, ended: ollamaEnded},
	}
}

// Names returns the names of the clients, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table())) }

// Description is what is known about a client.
type Description struct {
	BaseURL  string // of its service; empty if there is no default
	NeedsKey bool
}

// Describe returns the description of a client, the zero value for others.
func Describe(name string) Description {
	c, ok := table()[name]
	return Description{BaseURL: c.baseURL, NeedsKey: ok && !c.keyless}
}

// HasTools reports whether a client supports tool calls for a model.
func HasTools(name, modelName string) bool {
	c, ok := table()[name]
	return ok && !c.traits.NoTools && (name != "bedrock" || isAnthropic(modelName))
}

// New returns a provider over a client. The error is a *model.Error with
// CodeNotConfigured, for example for a client without a key.
func New(cfg Config) (model.Provider, error) {
	c, ok := table()[cfg.Client]
	if !ok {
		return nil, notConfigured(cfg.Name, fmt.Sprintf("langchaingo has no client %q here: expected one of %s", cfg.Client, strings.Join(Names(), ", ")))
	}
	cfg.Default(cfg.Client, c.baseURL, "")
	if cfg.BaseURL == "" {
		return nil, notConfigured(cfg.Name, "no base URL: set providers."+cfg.Name+".baseUrl, such as https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID")
	}
	if !c.keyless && cfg.APIKey == "" {
		return nil, notConfigured(cfg.Name, "no API key: set providers."+cfg.Name+".apiKey in the settings, for example to ${"+c.env+"} (`agent config path` lists the files)")
	}
	w, err := wire.New(cfg.Config, wire.Dialect{})
	if err != nil {
		return nil, err
	}
	return &provider{Client: w, client: c, cfg: cfg, credentials: awsCredentials()}, nil
}

func notConfigured(provider, message string) error {
	return &model.Error{Code: model.CodeNotConfigured, Provider: provider, Message: message}
}

type provider struct {
	*wire.Client
	client      client
	cfg         Config
	credentials credentials
}

var _ model.Provider = (*provider)(nil)

// Stream implements [model.Provider].
func (p *provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		c, err := p.call(ctx, req)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		defer c.exchange.Close()
		for d, err := range langchain.Provider(c.llm, c.traits).Stream(ctx, c.req) {
			if d, err = c.check(ctx, d, err); !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// call is one call of a client.
type call struct {
	*provider
	ctx      context.Context
	exchange *wire.Exchange
	relay    *wire.Relay
	options  map[string]json.RawMessage // members added to the body
	model    string
	req      *model.Request
	traits   langchain.Traits
	llm      llms.Model
}

func (p *provider) call(ctx context.Context, req *model.Request) (*call, error) {
	name, err := p.Model(req)
	if err != nil {
		return nil, err
	}
	options, err := p.Options(req, "model", "messages", "prompt", "inputs", "tools", "stream")
	if err != nil {
		return nil, err
	}
	if len(options) > 0 && p.client.signs {
		return nil, p.Wrap(model.CodeNotSupported, "langchaingo's "+p.cfg.Client+" does not support provider options", nil)
	}
	own := *req
	own.Model, own.ProviderOptions = name, nil
	if own.MaxTokens == 0 && p.client.maxTokens > 0 {
		if own.MaxTokens = p.client.maxTokens; p.cfg.MaxTokens != nil {
			own.MaxTokens = max(own.MaxTokens, p.cfg.MaxTokens(name))
		}
	}
	c := &call{provider: p, ctx: ctx, options: options, model: name, req: &own, traits: p.client.traits}
	if p.cfg.Client == "bedrock" {
		c.traits = bedrockTraits(name)
	}
	c.traits.Info, c.traits.Secrets = p.Info(), []string{p.cfg.APIKey}
	c.exchange = p.Exchange(ctx)
	c.relay = c.exchange.Relay()
	if c.llm, err = p.client.open(c); err != nil {
		c.exchange.Close()
		if known := (*model.Error)(nil); asError(err, &known) {
			return nil, known
		}
		return nil, p.Wrap(model.CodeNotConfigured, "langchaingo rejects the configuration", err)
	}
	return c, nil
}

// check replaces a client's error by that of its request, and a success by the
// error that the client overlooked.
func (c *call) check(ctx context.Context, d model.Delta, err error) (model.Delta, error) {
	if err == nil && d.Kind != model.DeltaDone {
		return d, nil
	}
	if ended := c.Ended(ctx); ended != nil {
		return model.Delta{}, ended
	}
	// A client that has the whole answer may hang up before the service does.
	if failed := c.relay.Err(); failed != nil && (err != nil || !errors.Is(failed, context.Canceled)) {
		return model.Delta{}, failed
	}
	if err == nil && c.client.ended != nil {
		stop, ok := c.client.ended(c.relay.Tail())
		if !ok {
			return model.Delta{}, c.Wrap(model.CodeNetwork, "the response from "+c.Info().Endpoint+" ended early", io.ErrUnexpectedEOF)
		}
		d.Stop = stop
	}
	return d, err
}
