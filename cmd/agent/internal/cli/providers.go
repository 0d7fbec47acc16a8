package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// setting returns the dotted key of one of a provider's settings, by the name
// that it mostly has: apiKey, baseUrl or model.
func (s *settings) setting(k providerKind, name string) string {
	names := k.values(&s.Settings.Providers).names
	switch name {
	case "apiKey":
		name = cmp.Or(names.APIKey, name)
	case "baseUrl":
		name = cmp.Or(names.BaseURL, name)
	case "model":
		name = cmp.Or(names.Model, name)
	}
	return "providers." + k.name + "." + name
}

// providerNames returns the names of all providers.
func providerNames() []string {
	var names []string
	for _, k := range providerKinds() {
		names = append(names, k.name)
	}
	return names
}

// findProvider returns the provider of that name. The error is a usage error
// that names those there are.
func findProvider(name string) (providerKind, error) {
	names := providerNames()
	if i := slices.Index(names, name); i >= 0 {
		return providerKinds()[i], nil
	}
	hint := "the providers are " + strings.Join(names, ", ")
	if near := jsonpos.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	}
	return providerKind{}, &usageError{fmt.Errorf("there is no provider %q; %s", name, hint)}
}

// kind returns the provider in use.
func (s *settings) kind() (providerKind, error) { return findProvider(s.Settings.Providers.Default) }

// provider makes the provider in use, alone.
func (s *settings) provider(ctx context.Context) (model.Provider, error) {
	k, err := s.kind()
	if err != nil {
		return nil, err
	}
	return s.open(ctx, k, "")
}

// providers makes the provider in use with those that take over from it.
func (s *settings) providers(ctx context.Context) (model.Provider, error) {
	first, err := s.provider(ctx)
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
func (s *settings) fallback(ctx context.Context, text string) (model.Provider, error) {
	name, modelName, _ := strings.Cut(text, "/")
	k, err := findProvider(name)
	if err != nil {
		return nil, errors.New(err.Error()) // no mistake of the command line
	}
	return s.open(ctx, k, modelName)
}

// open makes a provider. A model that is named stands in for that of its
// settings.
func (s *settings) open(ctx context.Context, k providerKind, modelName string) (model.Provider, error) {
	v := k.values(&s.Settings.Providers)
	key := ""
	switch {
	case !s.replays:
		var err error
		if key, err = v.key.Reveal(ctx); err != nil {
			return nil, err
		}
	case v.keyed && v.instead == "":
		key = replayed
	}
	return k.open(ctx, opening{
		Config:   wire.Config{Name: k.name, BaseURL: v.baseURL, Model: cmp.Or(modelName, v.model), APIKey: key, Names: v.names, Transport: s.transport},
		settings: &s.Settings.Providers, env: s.env, replays: s.replays,
		maxTokens: func(name string) int { return s.facts(k.name, name).Output },
	})
}

func newProviders(s *streams) *cobra.Command {
	return group("providers", "List, test and set up where models are reached", newProvidersList(s), newProvidersTest(s), newProvidersSetup(s))
}

// providerInfo is a provider as lists show it.
type providerInfo struct {
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
	keyMissing keyStatus = "missing" // or the variable that should hold it is not set
	keyCommand keyStatus = "command" // a command or the keyring has it; whether it does shows when it is asked
)

// describe returns what the settings say of a provider.
func (s *settings) describe(k providerKind, env func(string) string) providerInfo {
	v := k.values(&s.Settings.Providers)
	return providerInfo{
		Name: k.name, Default: k.name == s.Settings.Providers.Default, Endpoint: v.baseURL, Model: v.model,
		Key: describeKey(v, s.Loaded.Source(s.setting(k, "apiKey")), env),
	}
}

func describeKey(v providerValues, from config.Source, env func(string) string) keyInfo {
	info, key := keyInfo{Needed: v.keyed, Status: keyMissing}, v.key
	if !key.IsSet() {
		if v.instead != "" {
			info.From, info.Status = "the command "+v.instead, keyCommand
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
			info.Status = keyMissing
		}
	case key.Entry() != "":
		info.From, info.Status = "the keyring, as "+from.String()+" says", keyCommand
	case key.IsCommand():
		info.From, info.Status = "a command, in "+from.String(), keyCommand
	}
	return info
}

// String is the key's cell of a table.
func (i keyInfo) String() string {
	switch {
	case i.Status == keyMissing && i.From != "":
		return "missing: the " + i.From + ", is not set"
	case i.Status == keyMissing && i.Needed:
		return "missing"
	case i.Status == keyMissing:
		return "none; none is needed"
	}
	return i.From
}

func newProvidersList(s *streams) *cobra.Command {
	sh, asJSON := &shared{}, false
	cmd := &cobra.Command{
		Use: "list", Short: "List the providers: endpoint, model, whether there is a key", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			set, err := sh.load(s)
			if err != nil {
				return err
			}
			infos := []providerInfo{}
			for _, k := range providerKinds() {
				infos = append(infos, set.describe(k, s.env))
			}
			if asJSON {
				return printJSON(s.out, infos)
			}
			return printProviders(s.out, infos)
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printProviders(out io.Writer, infos []providerInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  NAME\tENDPOINT\tMODEL\tKEY")
	for _, i := range infos {
		mark := " "
		if i.Default {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, i.Name, i.Endpoint, i.Model, i.Key)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\n* is the default. agent providers test [NAME] tries one, agent providers setup changes them.")
	return err
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

func newProvidersTest(s *streams) *cobra.Command {
	sh, asJSON := &shared{}, false
	cmd := &cobra.Command{
		Use:   "test [NAME]",
		Short: "Make one real call to a provider, and say what failed",
		Long: "test sends a few words to the model of the provider in use, or of the one named, and waits for the answer.\n" +
			"Nothing is retried. The exit code is 3 if the provider is not configured and 4 if the call failed.",
		Example:   "  agent providers test\n  agent providers test openai --model gpt-5-mini",
		Args:      usageArgs(cobra.MaximumNArgs(1)),
		ValidArgs: providerNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sh.takeProvider(args); err != nil {
				return err
			}
			set, err := sh.load(s)
			if err != nil {
				return err
			}
			result, err := set.call(cmd.Context(), s.env)
			if asJSON {
				if perr := printJSON(s.out, result); perr != nil {
					return perr
				}
				if err != nil {
					return &statusError{exitCode(err)}
				}
				return nil
			}
			if err != nil {
				return advise(fmt.Errorf("%s: %w", result.Error.Code, err), "What to do: "+result.Error.Fix+"\n")
			}
			_, err = fmt.Fprintf(s.out, "%s: %s answered in %d ms (%s)\n", result.Provider, result.Model, result.LatencyMS, result.Endpoint)
			return err
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// takeProvider takes a provider that was named as an argument.
func (o *shared) takeProvider(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if o.provider != "" && o.provider != args[0] {
		return &usageError{fmt.Errorf("NAME is %s and --provider is %s: name one provider", args[0], o.provider)}
	}
	k, err := findProvider(args[0])
	o.provider = k.name
	return err
}

// call makes one small call to the provider in use. What failed is in the
// result, too.
func (s *settings) call(ctx context.Context, env func(string) string) (callResult, error) {
	result := callResult{Provider: s.Settings.Providers.Default, Model: s.Loaded.Model()}
	if k, err := s.kind(); err == nil { // if not, say fails too
		result.Endpoint = k.values(&s.Settings.Providers).baseURL
	}
	start := time.Now()
	resp, err := s.say(ctx)
	if err != nil {
		result.Error = &callError{Code: codeOf(err), Message: err.Error(), Fix: s.remedy(err, env)}
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
func (s *settings) say(ctx context.Context) (*model.Response, error) {
	p, err := s.provider(ctx)
	if err != nil {
		return nil, err
	}
	return model.Complete(ctx, p, &model.Request{
		Messages:  []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Answer with the word yes.")}},
		MaxTokens: 16,
	})
}

// codeOf classifies an error of a provider; a mistake in the settings is a
// provider that is not configured.
func codeOf(err error) model.ErrorCode {
	var bad *config.Error
	if errors.As(err, &bad) {
		return model.CodeNotConfigured
	}
	return model.AsError(err).Code
}

// remedy says what to do about a provider's error.
func (s *settings) remedy(err error, env func(string) string) string {
	k, kindErr := s.kind()
	if kindErr != nil {
		return kindErr.Error()
	}
	info := s.describe(k, env)
	switch e := model.AsError(err); codeOf(err) {
	case model.CodeNotConfigured:
		return "run agent providers setup"
	case model.CodeNotSupported, model.CodeInvalidRequest:
		return fmt.Sprintf("check that %s speaks the protocol of this provider and that %s is a model for chats (agent models --provider %s lists them)", info.Endpoint, info.Model, k.name)
	case model.CodeAuthentication:
		if info.Key.From == "" {
			return fmt.Sprintf("the server wants a key: set %s, or run agent providers setup", s.setting(k, "apiKey"))
		}
		return fmt.Sprintf("check the key, which comes from: %s; agent providers setup takes another", info.Key.From)
	case model.CodeModelNotFound:
		return fmt.Sprintf("agent models --provider %s lists the models there are; set %s or give --model", k.name, s.setting(k, "model"))
	case model.CodeRateLimited:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("wait %s, then try again", e.RetryAfter.Round(time.Second))
		}
		return "wait a moment and try again; if it stays so, check the plan and the quota of the key"
	case model.CodeNetwork:
		if e.Permanent {
			return fmt.Sprintf("start the model server that should listen at %s, or set %s to where it does", info.Endpoint, s.setting(k, "baseUrl"))
		}
		return fmt.Sprintf("check the network, the proxy variables (HTTPS_PROXY, NO_PROXY) and %s, then try again", s.setting(k, "baseUrl"))
	case model.CodeTimeout:
		return "try again: a server that has to load its model first may take minutes; if it stays so, check that the server is well"
	case model.CodeContextLength:
		return fmt.Sprintf("choose a model with a larger context (agent models --provider %s), or give it one in the server's own settings", k.name)
	case model.CodeInvalidResponse:
		return fmt.Sprintf("check that %s is the address of the service's API; it mostly ends in a version such as /v1", s.setting(k, "baseUrl"))
	}
	return "try again; --debug on agent exec shows more"
}

// providerModels asks the provider in use for its models, sorted.
func (s *settings) providerModels(ctx context.Context) ([]string, error) {
	p, err := s.provider(ctx)
	if err != nil {
		return nil, err
	}
	names, err := model.ListModels(ctx, p)
	slices.Sort(names)
	return names, err
}
