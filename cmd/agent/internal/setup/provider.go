package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// Setting returns the dotted key of a provider's setting. The name is apiKey,
// baseUrl or model, even if the provider calls it otherwise.
func (s *Setup) Setting(k ProviderKind, name string) string {
	names := k.Values(&s.Settings.Providers).names
	switch name {
	case "apiKey":
		name = cmp.Or(names.APIKey, name)
	case "baseUrl":
		name = cmp.Or(names.BaseURL, name)
	case "model":
		name = cmp.Or(names.Model, name)
	}
	return "providers." + k.Name + "." + name
}

// FindProvider returns the provider with a name. The error is a usage error.
func (s *Setup) FindProvider(name string) (ProviderKind, error) {
	kinds, names := s.ProviderKinds(), s.Settings.Providers.Names()
	if i := slices.Index(names, name); i >= 0 {
		return kinds[i], nil
	}
	hint := ""
	if near := jsonpos.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return ProviderKind{}, cmdutil.Usagef("unknown provider %q: expected one of %s%s", name, strings.Join(names, ", "), hint)
}

// Kind returns the default provider.
func (s *Setup) Kind() (ProviderKind, error) { return s.FindProvider(s.Settings.Providers.Default) }

// Provider makes the default provider, without fallbacks.
func (s *Setup) Provider(ctx context.Context) (model.Provider, error) {
	k, err := s.Kind()
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, k, "")
}

// Providers makes the default provider with its fallbacks.
func (s *Setup) Providers(ctx context.Context) (model.Provider, error) {
	first, err := s.Provider(ctx)
	if err != nil || len(s.Settings.Providers.Fallback) == 0 {
		return first, err
	}
	return s.withFallbacks(ctx, first)
}

// Switch makes another provider for a running session, with the same retries and
// fallbacks.
func (s *Setup) Switch(ctx context.Context, name, modelName string) (model.Provider, error) {
	k, err := s.FindProvider(name)
	if err != nil {
		return nil, err
	}
	first, err := s.Open(ctx, k, modelName)
	if err != nil {
		return nil, err
	}
	return s.withFallbacks(ctx, first)
}

// withFallbacks adds retries and the fallbacks.
func (s *Setup) withFallbacks(ctx context.Context, first model.Provider) (model.Provider, error) {
	var others []model.Provider
	for i, text := range s.Settings.Providers.Fallback {
		p, err := s.fallback(ctx, text)
		if err != nil {
			return nil, &config.Error{Key: "providers.fallback", Err: fmt.Errorf("providers.fallback, entry %d (%s): %w", i+1, text, err)}
		}
		others = append(others, model.WithRetry(p, s.retry()))
	}
	return model.WithFallback(model.WithRetry(first, s.retry()), others...), nil
}

// fallback makes the provider of an entry PROVIDER or PROVIDER/MODEL.
func (s *Setup) fallback(ctx context.Context, text string) (model.Provider, error) {
	name, modelName, _ := strings.Cut(text, "/")
	k, err := s.FindProvider(name)
	if err != nil {
		return nil, errors.New(err.Error()) // not a usage error: the mistake is in the settings
	}
	return s.Open(ctx, k, modelName)
}

// Open makes a provider. A modelName that is not empty overrides the model of its
// settings.
func (s *Setup) Open(ctx context.Context, k ProviderKind, modelName string) (model.Provider, error) {
	v := k.Values(&s.Settings.Providers)
	key := ""
	switch {
	case !s.replays:
		var err error
		if key, err = v.Key.Reveal(ctx); err != nil {
			return nil, err
		}
	case v.Keyed && v.tokenCommand == "":
		key = replayed
	}
	return k.open(ctx, openOptions{
		Config:   s.withTimeouts(wire.Config{Name: k.Name, BaseURL: v.BaseURL, Model: cmp.Or(modelName, v.Model), APIKey: key, Names: v.names, Transport: s.transport}),
		settings: &s.Settings.Providers, env: s.env, replays: s.replays,
		maxTokens: func(name string) int { return s.facts(k.Name, name).Output },
	})
}

// ProviderInfo is the JSON of a provider.
type ProviderInfo struct {
	Name     string  `json:"name"`
	Default  bool    `json:"default"`
	Endpoint string  `json:"endpoint"`
	Model    string  `json:"model"`
	Key      keyInfo `json:"key"`
}

// keyInfo describes a key and never holds it.
type keyInfo struct {
	Needed bool      `json:"needed"`
	Status keyStatus `json:"status"`
	From   string    `json:"from,omitempty"` // its source
	// Variables are the environment variables that set it, by precedence.
	Variables []string `json:"variables,omitempty"`
}

// Lacking reports whether the provider cannot be used, for want of a key.
func (i keyInfo) Lacking() bool { return i.Needed && i.Status == KeyMissing }

// keyStatus is what is known of a key without running a command or asking the
// keyring.
type keyStatus string

const (
	keyPresent keyStatus = "present"
	KeyMissing keyStatus = "missing" // not set, or its environment variable is not
	KeyCommand keyStatus = "command" // a command or the keyring is to give it
)

// Describe returns a provider as configured.
func (s *Setup) Describe(k ProviderKind, env func(string) string) ProviderInfo {
	v, setting := k.Values(&s.Settings.Providers), s.Setting(k, "apiKey")
	key := describeKey(v, s.Loaded.Source(setting), env)
	key.Variables = s.Variables(setting)
	return ProviderInfo{Name: k.Name, Default: k.Name == s.Settings.Providers.Default, Endpoint: v.BaseURL, Model: v.Model, Key: key}
}

func describeKey(v ProviderValues, from config.Source, env func(string) string) keyInfo {
	info, key := keyInfo{Needed: v.Keyed, Status: KeyMissing}, v.Key
	if !key.IsSet() {
		if v.tokenCommand != "" {
			info.From, info.Status = "command "+v.tokenCommand, KeyCommand
		}
		return info
	}
	info.From, info.Status = from.String(), keyPresent
	switch name := key.Variable(); {
	case name != "":
		if info.From = "environment variable " + name; from.Layer != config.LayerEnv {
			info.From += " (" + from.String() + ")"
		}
		if env(name) == "" {
			info.Status = KeyMissing
		}
	case key.Entry() != "":
		info.From, info.Status = "keyring ("+from.String()+")", KeyCommand
	case key.IsCommand():
		info.From, info.Status = "command ("+from.String()+")", KeyCommand
	}
	return info
}

// String describes the key in a table or a message.
func (i keyInfo) String() string {
	switch {
	case i.Status == KeyMissing && i.From != "":
		return "missing: " + i.From + " is not set"
	case i.Status == KeyMissing && i.Needed && len(i.Variables) > 0:
		return "missing: set " + strings.Join(i.Variables, " or ")
	case i.Status == KeyMissing && i.Needed:
		return "missing"
	case i.Status == KeyMissing:
		return "not required"
	}
	return i.From
}

// CallResult is the JSON of a test call.
type CallResult struct {
	Provider  string     `json:"provider"`
	Endpoint  string     `json:"endpoint"`
	Model     string     `json:"model"` // that answered, or else the configured one
	OK        bool       `json:"ok"`
	LatencyMS int64      `json:"latencyMs"` // until the end of the answer; 0 if there is none
	Error     *callError `json:"error,omitempty"`
}

type callError struct {
	Code    model.ErrorCode `json:"code"`
	Message string          `json:"message"`
	Fix     string          `json:"fix"`
}

// SetProvider sets --provider to the provider named by an argument.
func (o *Flags) SetProvider(name string) error {
	if o.provider != "" && o.provider != name {
		return cmdutil.Usagef("NAME is %s and --provider is %s: give only one of them", name, o.provider)
	}
	o.provider = name // Load checks it
	return nil
}

// Call tests the default provider with one small call. The result describes the
// error, too.
func (s *Setup) Call(ctx context.Context, env func(string) string) (CallResult, error) {
	result := CallResult{Provider: s.Settings.Providers.Default, Model: s.Loaded.Model()}
	if k, err := s.Kind(); err == nil { // else call fails, too
		result.Endpoint = k.Values(&s.Settings.Providers).BaseURL
	}
	start := time.Now()
	resp, err := s.call(ctx)
	if err != nil {
		result.Error = &callError{Code: CodeOf(err), Message: err.Error(), Fix: s.Remedy(err, env)}
		return result, err
	}
	result.OK, result.LatencyMS = true, time.Since(start).Milliseconds()
	if resp.Model != "" {
		result.Model = resp.Model
	}
	return result, nil
}

// call sends a few words to the model. An answer cut at MaxTokens counts: a
// reasoning model may use them all to think.
func (s *Setup) call(ctx context.Context) (*model.Response, error) {
	p, err := s.Provider(ctx)
	if err != nil {
		return nil, err
	}
	return model.Complete(ctx, p, &model.Request{
		Messages:  []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Answer with the word yes.")}},
		MaxTokens: 16,
	})
}

// CodeOf classifies a provider's error. A mistake in the settings is
// [model.CodeNotConfigured].
func CodeOf(err error) model.ErrorCode {
	var bad *config.Error
	if errors.As(err, &bad) {
		return model.CodeNotConfigured
	}
	return model.AsError(err).Code
}

// Remedy returns what to do about a provider's error.
func (s *Setup) Remedy(err error, env func(string) string) string {
	k, kindErr := s.Kind()
	if kindErr != nil {
		return kindErr.Error()
	}
	info := s.Describe(k, env)
	switch e := model.AsError(err); CodeOf(err) {
	case model.CodeNotConfigured:
		return "run agent providers setup"
	case model.CodeNotSupported, model.CodeInvalidRequest:
		return fmt.Sprintf("check that %s speaks the protocol of this provider and that %s is a chat model (agent models --provider %s lists the models)", info.Endpoint, info.Model, k.Name)
	case model.CodeAuthentication:
		if info.Key.From == "" {
			return fmt.Sprintf("the server requires a key: set %s, or run agent providers setup", s.Setting(k, "apiKey"))
		}
		return fmt.Sprintf("check the key (from %s), or run agent providers setup to replace it", info.Key.From)
	case model.CodeModelNotFound:
		return fmt.Sprintf("run agent models --provider %s to list the models, then set %s or pass --model", k.Name, s.Setting(k, "model"))
	case model.CodeRateLimited:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("wait %s, then try again", e.RetryAfter.Round(time.Second))
		}
		return "wait a moment and try again; if it persists, check the plan and quota of the key"
	case model.CodeNetwork:
		if e.Permanent {
			return fmt.Sprintf("start the model server at %s, or set %s to its address", info.Endpoint, s.Setting(k, "baseUrl"))
		}
		return fmt.Sprintf("check the network, the proxy variables (HTTPS_PROXY, NO_PROXY) and %s, then try again", s.Setting(k, "baseUrl"))
	case model.CodeTimeout:
		return "try again: a server that first loads its model may take minutes; if it persists, check the server"
	case model.CodeContextLength:
		return fmt.Sprintf("choose a model with a larger context window (agent models --provider %s), or enlarge it in the server's settings", k.Name)
	case model.CodeInvalidResponse:
		return fmt.Sprintf("check that %s is the address of the service's API; it usually ends in a version such as /v1", s.Setting(k, "baseUrl"))
	}
	return "try again; agent exec --debug shows details"
}

// ProviderModels lists the models of the default provider, sorted.
func (s *Setup) ProviderModels(ctx context.Context) ([]string, error) {
	p, err := s.Provider(ctx)
	if err != nil {
		return nil, err
	}
	names, err := model.ListModels(ctx, p)
	slices.Sort(names)
	return names, err
}
