package config

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/lazy"
)

// NamedProvider are the settings of a provider that the user defines, or of a
// preset.
type NamedProvider struct {
	API     string  `json:"api" enum:"chat,responses,anthropic,gemini,langchain" scope:"user" doc:"API of the service: chat (OpenAI's Chat Completions), responses, anthropic, gemini, or langchain for one of langchaingo's clients. Default: chat."`
	Client  string  `json:"client" enum:"bedrock,cloudflare,cohere,huggingface,mistral,ollama" scope:"user" doc:"Client of langchaingo, for the API langchain. Default: NAME."`
	BaseURL string  `json:"baseUrl" scope:"user" format:"url" doc:"Base URL of the service."`
	APIKey  Secret  `json:"apiKey" scope:"user" doc:"API key, if the service needs one."`
	Model   string  `json:"model" doc:"Model."`
	Headers headers `json:"headers" scope:"user" doc:"HTTP headers added to each request. A value may have the forms of a key."`
	Options Object  `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// headers maps names of HTTP headers to values, which may be secret.
type headers map[string]Secret

// credentials returns the values that must not be shown: those of headers whose
// name says so, and those that are read from elsewhere.
func (h headers) credentials() []Secret {
	var list []Secret
	for name, value := range h {
		if !value.Literal() || credentialHeader().MatchString(name) {
			list = append(list, value)
		}
	}
	return list
}

// Written returns the headers as they are written in the settings, to put them back
// there. The values are secret.
func (h headers) Written() map[string]string {
	all := map[string]string{}
	for name, value := range h {
		if value.IsSet() {
			all[name] = value.state.text
		}
	}
	return all
}

var credentialHeader = lazy.Regexp(`(?i)auth|key|token|secret|cookie|password`)

// Preset is a service that is known by name. Its values are the defaults of the
// settings providers.NAME.
type Preset struct {
	Name, About string
	API         string
	BaseURL     string `json:"baseUrl"`
	Model       string
	Env         string   // the variable that holds the key; empty if it needs none
	Local       bool     // a server on this machine
	PlainNames  bool     // its models' names have no slash
	Quirks      []string // see langchain.Quirk
	Source      string   // its documentation
}

//go:embed presets.json
var presetData []byte

// Presets returns all presets, in the order to show them.
var Presets = sync.OnceValue(func() []Preset {
	var list []Preset
	if err := json.Unmarshal(presetData, &list); err != nil {
		return nil // a test checks that this does not happen
	}
	return list
})

// FindPreset returns the preset of a name.
func FindPreset(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// addPresets adds the settings of all presets.
func (p *Providers) addPresets() {
	p.Named = map[string]*NamedProvider{}
	for _, preset := range Presets() {
		p.Named[preset.Name] = &NamedProvider{API: preset.API, BaseURL: preset.BaseURL, Model: preset.Model}
	}
}

// builtinProviders returns the names of the providers with settings of their own.
var builtinProviders = sync.OnceValue(func() []string {
	var names []string
	t := reflect.TypeFor[Providers]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Type.Kind() == reflect.Struct {
			names = append(names, jsonName(f))
		}
	}
	return names
})

// Names returns the names of all providers: those with settings of their own,
// presets, and those that the user defines.
func (p *Providers) Names() []string {
	names := slices.Clone(builtinProviders())
	for _, preset := range Presets() {
		names = append(names, preset.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Named)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// UnmarshalJSON implements [json.Unmarshaler]: members that are no field are
// named providers.
func (p *Providers) UnmarshalJSON(data []byte) error {
	type plain Providers
	if err := json.Unmarshal(data, (*plain)(p)); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for name, raw := range members {
		if isProviderField(name) {
			continue
		}
		n := &NamedProvider{}
		if err := json.Unmarshal(raw, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if p.Named == nil {
			p.Named = map[string]*NamedProvider{}
		}
		p.Named[name] = n
	}
	return nil
}

func isProviderField(name string) bool {
	return name == "default" || name == "fallback" || slices.Contains(builtinProviders(), name)
}

// providerName matches the names that named providers may have: a name with a
// dot or a slash could not be used in keys and with models.
var providerName = lazy.Regexp(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// checkNamed checks the names of named providers.
func (p *Providers) checkNamed() error {
	for name := range p.Named {
		if !providerName().MatchString(name) {
			return fmt.Errorf("invalid name of a provider %q: expected lower-case letters, digits, - and _", name)
		}
	}
	return nil
}

// namedFields lists the keys of a named provider.
func namedFields(name string) []field {
	list := fieldsOf(reflect.TypeFor[NamedProvider](), "providers."+name+".", nil)
	preset, _ := FindPreset(name)
	for i := range list {
		list[i].named = name
		if list[i].typ == secretType && preset.Env != "" {
			list[i].env = []string{preset.Env}
		}
	}
	return list
}

// namedField returns the field of a key such as providers.NAME.model.
func namedField(key string) (field, bool) {
	parts := strings.Split(key, ".")
	if len(parts) != 3 || parts[0] != "providers" || isProviderField(parts[1]) || !providerName().MatchString(parts[1]) {
		return field{}, false
	}
	for _, f := range namedFields(parts[1]) {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// fieldsIn lists all keys, with those of the named providers of s.
func fieldsIn(s *Settings) []field {
	list := fields()
	for _, name := range slices.Sorted(maps.Keys(s.Providers.Named)) {
		list = append(list, namedFields(name)...)
	}
	return list
}

// checkProviders checks the providers after all layers: that the default exists,
// and that named ones can be reached.
func (l *loader) checkProviders() error {
	p := &l.loaded.Settings.Providers
	names := p.Names()
	if !slices.Contains(names, p.Default) {
		return l.fault("providers.default", unknownProvider("providers.default", p.Default, names))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Named)) {
		if err := p.Named[name].check(name, names); err != nil {
			return l.fault(l.setKey(name), err)
		}
	}
	return nil
}

// setKey returns a key of a named provider that is set.
func (l *loader) setKey(name string) string {
	for _, f := range namedFields(name) {
		if l.loaded.Sources[f.key].Where != "" {
			return f.key
		}
	}
	return "providers." + name
}

func unknownProvider(key, name string, names []string) error {
	return fmt.Errorf("%s: invalid value %q: expected one of %s%s", key, name, strings.Join(names, ", "), andHint(didYouMean(name, names)))
}

// fault is a mistake in the value of a key, with its origin.
func (l *loader) fault(key string, err error) error {
	from := l.loaded.Sources[key]
	for path, doc := range l.docs {
		if strings.HasPrefix(from.Where, path+":") {
			return &Error{Key: key, Err: doc.Errorf("/"+strings.ReplaceAll(key, ".", "/"), "", "%s", err)}
		}
	}
	if from.Where != "" {
		err = fmt.Errorf("%s: %w", from, err)
	}
	return &Error{Key: key, Err: err, CommandLine: from.Layer >= LayerSet}
}

// check checks what all layers together must say about a provider.
func (n *NamedProvider) check(name string, names []string) error {
	if client := n.LangchainClient(name); client != "" {
		if clients := Choices("providers." + name + ".client"); !slices.Contains(clients, client) {
			return fmt.Errorf("providers.%s: langchaingo has no client of this name: set providers.%s.client to one of %s", name, name, strings.Join(clients, ", "))
		}
	} else if n.BaseURL == "" {
		others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		return fmt.Errorf("providers.%s: unknown provider%s; to define it, set providers.%s.baseUrl", name, andHint(didYouMean(name, others)), name)
	}
	for header := range n.Headers {
		if strings.ContainsAny(header, " \t\r\n:") || header == "" {
			return fmt.Errorf("providers.%s.headers: invalid name of a header %q", name, header)
		}
	}
	return nil
}

// LangchainClient returns the name of langchaingo's client for a provider, ""
// for one with another API.
func (n *NamedProvider) LangchainClient(name string) string {
	switch n.API {
	case "langchain":
		return cmp.Or(n.Client, name)
	case "":
		return n.Client
	}
	return ""
}

// SplitModel splits [PROVIDER/]MODEL. Since a model's name can contain a slash,
// too, only names of providers are recognised, and if a provider is given, only
// that. Without a provider, it returns given. A provider in use whose models'
// names have no slash makes an unknown provider an error.
func SplitModel(text, given, used string, names []string) (provider, model string, err error) {
	head, tail, ok := strings.Cut(text, "/")
	switch {
	case strings.TrimSpace(text) == "" || strings.ContainsAny(text, " \t\r\n"):
		return "", "", fmt.Errorf("invalid model name %q: it is empty or contains spaces", text)
	case !ok || given != "" && given != head:
	case slices.Contains(names, head):
		if tail == "" {
			return "", "", fmt.Errorf("%q has no model after the provider", text)
		}
		return head, tail, nil
	case given == "" && plainNames(used) && head != "models" && head != "tunedModels": // of Gemini
		return "", "", errors.New(strings.TrimPrefix(unknownProvider("", head, names).Error(), ": "))
	}
	return given, text, nil
}

// plainNames reports whether the models of a provider have names without a slash.
func plainNames(provider string) bool {
	preset, _ := FindPreset(provider)
	return preset.PlainNames || slices.Contains([]string{"openai", "anthropic", "gemini"}, provider)
}
