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

// Setting returns the dotted key of one of a provider's settings, by the name
// that it mostly has: apiKey, baseUrl or model.
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

// ProviderNames returns the names of all providers.
func ProviderNames() []string {
	var names []string
	for _, k := range ProviderKinds() {
		names = append(names, k.Name)
	}
	return names
}

// FindProvider returns the provider of that name. The error is a usage error
// that names those there are.
func FindProvider(name string) (ProviderKind, error) {
	names := ProviderNames()
	if i := slices.Index(names, name); i >= 0 {
		return ProviderKinds()[i], nil
	}
	hint := "the providers are " + strings.Join(names, ", ")
	if near := jsonpos.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	}
	return ProviderKind{}, cmdutil.Usagef("there is no provider %q; %s", name, hint)
}

// Kind returns the provider in use.
func (s *Setup) Kind() (ProviderKind, error) { return FindProvider(s.Settings.Providers.Default) }

// Provider makes the provider in use, alone.
func (s *Setup) Provider(ctx context.Context) (model.Provider, error) {
	k, err := s.Kind()
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, k, "")
}

// Providers makes the provider in use with those that take over from it.
func (s *Setup) Providers(ctx context.Context) (model.Provider, error) {
	first, err := s.Provider(ctx)
	if err != nil || len(s.Settings.Providers.Fallback) == 0 {
		return first, err
	}
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

// fallback makes a provider that takes over, of PROVIDER or PROVIDER/MODEL.
func (s *Setup) fallback(ctx context.Context, text string) (model.Provider, error) {
	name, modelName, _ := strings.Cut(text, "/")
	k, err := FindProvider(name)
	if err != nil {
		return nil, errors.New(err.Error()) // no mistake of the command line
	}
	return s.Open(ctx, k, modelName)
}

// Open makes a provider. A model that is named stands in for that of its
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
	case v.Keyed && v.Instead == "":
		key = replayed
	}
	return k.open(ctx, opening{
		Config:   s.withTimeouts(wire.Config{Name: k.Name, BaseURL: v.BaseURL, Model: cmp.Or(modelName, v.Model), APIKey: key, Names: v.names, Transport: s.transport}),
		settings: &s.Settings.Providers, env: s.env, replays: s.replays,
		maxTokens: func(name string) int { return s.facts(k.Name, name).Output },
	})
}

// ProviderInfo is a provider as lists show it.
type ProviderInfo struct {
	Name     string  `json:"name"`
	Default  bool    `json:"default"`
	Endpoint string  `json:"endpoint"`
	Model    string  `json:"model"`
	Key      keyInfo `json:"key"`
}

// keyInfo says what there is of a key, never the key.
type keyInfo struct {
	Needed bool      `json:"needed"`
	Status keyStatus `json:"status"`
	From   string    `json:"from,omitempty"` // where it comes from
}

// keyStatus is what is known of a key without running a command.
type keyStatus string

const (
	keyPresent keyStatus = "present"
	KeyMissing keyStatus = "missing" // or the variable that should hold it is not set
	KeyCommand keyStatus = "command" // a command or the keyring has it; whether it does shows when it is asked
)

// Describe returns what the settings say of a provider.
func (s *Setup) Describe(k ProviderKind, env func(string) string) ProviderInfo {
	v := k.Values(&s.Settings.Providers)
	return ProviderInfo{
		Name: k.Name, Default: k.Name == s.Settings.Providers.Default, Endpoint: v.BaseURL, Model: v.Model,
		Key: describeKey(v, s.Loaded.Source(s.Setting(k, "apiKey")), env),
	}
}

func describeKey(v ProviderValues, from config.Source, env func(string) string) keyInfo {
	info, key := keyInfo{Needed: v.Keyed, Status: KeyMissing}, v.Key
	if !key.IsSet() {
		if v.Instead != "" {
			info.From, info.Status = "the command "+v.Instead, KeyCommand
		}
		return info
	}
	info.From, info.Status = from.String(), keyPresent
	switch name := key.Variable(); {
	case name != "":
		if info.From = "environment variable " + name; from.Layer != config.LayerEnv {
			info.From += ", named in " + from.String()
		}
		if env(name) == "" {
			info.Status = KeyMissing
		}
	case key.Entry() != "":
		info.From, info.Status = "the keyring, as "+from.String()+" says", KeyCommand
	case key.IsCommand():
		info.From, info.Status = "a command, in "+from.String(), KeyCommand
	}
	return info
}

// String is the key's cell of a table.
func (i keyInfo) String() string {
	switch {
	case i.Status == KeyMissing && i.From != "":
		return "missing: the " + i.From + ", is not set"
	case i.Status == KeyMissing && i.Needed:
		return "missing"
	case i.Status == KeyMissing:
		return "none; none is needed"
	}
	return i.From
}

// callResult is what came of one real call.
type callResult struct {
	Provider  string     `json:"provider"`
	Endpoint  string     `json:"endpoint"`
	Model     string     `json:"model"` // that answered, or that was asked for
	OK        bool       `json:"ok"`
	LatencyMS int64      `json:"latencyMs"` // to the end of the answer; 0 without one
	Error     *callError `json:"error,omitempty"`
}

type callError struct {
	Code    model.ErrorCode `json:"code"`
	Message string          `json:"message"`
	Fix     string          `json:"fix"`
}

// TakeProvider takes a provider that was named as an argument.
func (o *Flags) TakeProvider(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if o.provider != "" && o.provider != args[0] {
		return cmdutil.Usagef("NAME is %s and --provider is %s: name one provider", args[0], o.provider)
	}
	k, err := FindProvider(args[0])
	o.provider = k.Name
	return err
}

// Call makes one small call to the provider in use. What failed is in the
// result, too.
func (s *Setup) Call(ctx context.Context, env func(string) string) (callResult, error) {
	result := callResult{Provider: s.Settings.Providers.Default, Model: s.Loaded.Model()}
	if k, err := s.Kind(); err == nil { // if not, say fails too
		result.Endpoint = k.Values(&s.Settings.Providers).BaseURL
	}
	start := time.Now()
	resp, err := s.say(ctx)
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

// say sends a few words to the model. An answer that is cut by its limit is
// one: a model that thinks may need all of it for that.
func (s *Setup) say(ctx context.Context) (*model.Response, error) {
	p, err := s.Provider(ctx)
	if err != nil {
		return nil, err
	}
	return model.Complete(ctx, p, &model.Request{
		Messages:  []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Answer with the word yes.")}},
		MaxTokens: 16,
	})
}

// CodeOf classifies an error of a provider; a mistake in the settings is a
// provider that is not configured.
func CodeOf(err error) model.ErrorCode {
	var bad *config.Error
	if errors.As(err, &bad) {
		return model.CodeNotConfigured
	}
	return model.AsError(err).Code
}

// Remedy says what to do about a provider's error.
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
		return fmt.Sprintf("check that %s speaks the protocol of this provider and that %s is a model for chats (agent models --provider %s lists them)", info.Endpoint, info.Model, k.Name)
	case model.CodeAuthentication:
		if info.Key.From == "" {
			return fmt.Sprintf("the server wants a key: set %s, or run agent providers setup", s.Setting(k, "apiKey"))
		}
		return fmt.Sprintf("check the key, which comes from: %s; agent providers setup takes another", info.Key.From)
	case model.CodeModelNotFound:
		return fmt.Sprintf("agent models --provider %s lists the models there are; set %s or give --model", k.Name, s.Setting(k, "model"))
	case model.CodeRateLimited:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("wait %s, then try again", e.RetryAfter.Round(time.Second))
		}
		return "wait a moment and try again; if it stays so, check the plan and the quota of the key"
	case model.CodeNetwork:
		if e.Permanent {
			return fmt.Sprintf("start the model server that should listen at %s, or set %s to where it does", info.Endpoint, s.Setting(k, "baseUrl"))
		}
		return fmt.Sprintf("check the network, the proxy variables (HTTPS_PROXY, NO_PROXY) and %s, then try again", s.Setting(k, "baseUrl"))
	case model.CodeTimeout:
		return "try again: a server that has to load its model first may take minutes; if it stays so, check that the server is well"
	case model.CodeContextLength:
		return fmt.Sprintf("choose a model with a larger context (agent models --provider %s), or give it one in the server's own settings", k.Name)
	case model.CodeInvalidResponse:
		return fmt.Sprintf("check that %s is the address of the service's API; it mostly ends in a version such as /v1", s.Setting(k, "baseUrl"))
	}
	return "try again; --debug on agent exec shows more"
}

// ProviderModels asks the provider in use for its models, sorted.
func (s *Setup) ProviderModels(ctx context.Context) ([]string, error) {
	p, err := s.Provider(ctx)
	if err != nil {
		return nil, err
	}
	names, err := model.ListModels(ctx, p)
	slices.Sort(names)
	return names, err
}
