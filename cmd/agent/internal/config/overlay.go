package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// Variables returns the names of the environment variables that settings are
// read from.
func Variables() []string {
	names := []string{"AGENT_HOME", "AGENT_MODEL"}
	s := &Settings{}
	s.Providers.addPresets()
	for _, f := range fieldsIn(s) {
		names = append(names, f.env...)
	}
	return names
}

// KeyVariables returns the environment variables of a dotted key. The first that
// is set counts.
func KeyVariables(key string) []string {
	f, err := (&loader{fields: fields()}).field(key, "")
	if err != nil {
		return nil
	}
	return f.env
}

// environment applies the variables of the fields, and AGENT_MODEL.
func (l *loader) environment() error {
	for _, f := range fieldsIn(&l.loaded.Settings) {
		i := slices.IndexFunc(f.env, func(name string) bool { return l.opts.Env(name) != "" })
		if i < 0 {
			continue
		}
		name := f.env[i]
		value := l.opts.Env(name)
		if f.typ == secretType {
			value = "${" + name + "}" // read when it is used, and never taken for a command
		}
		if err := l.one(f, value, Source{LayerEnv, name}); err != nil {
			return err
		}
	}
	l.choose(l.opts.Env("AGENT_MODEL"), l.opts.Env("AGENT_PROVIDER"), Source{LayerEnv, "AGENT_MODEL"})
	return nil
}

// sets applies --set KEY=VALUE. A value is JSON or, for text, the bare text.
func (l *loader) sets() error {
	for _, set := range l.opts.Sets {
		key, text, ok := strings.Cut(set, "=")
		key = strings.TrimSpace(key)
		if !ok {
			return fmt.Errorf("--set %s: expected KEY=VALUE, such as agent.maxRounds=20", shown(key))
		}
		f, err := l.field(key, "--set")
		if err != nil {
			return err
		}
		if err := l.one(f, f.parse(text), Source{LayerSet, "--set"}); err != nil {
			return err
		}
	}
	return nil
}

// shown shortens a key, which may be a secret by mistake.
func shown(key string) string {
	if r := []rune(key); len(r) > 20 {
		return string(r[:20]) + "…"
	}
	return key
}

// flags applies the flags, --provider and --model.
func (l *loader) flags() error {
	for _, flag := range l.opts.Flags {
		f, err := l.field(flag.Key, flag.Name)
		if err != nil {
			return err
		}
		if err := l.one(f, flag.Value, Source{LayerFlag, flag.Name}); err != nil {
			return err
		}
	}
	if l.opts.Provider != "" {
		if err := l.setProvider(l.opts.Provider, Source{LayerFlag, "--provider"}); err != nil {
			return err
		}
	}
	l.choose(l.opts.Model, l.opts.Provider, Source{LayerFlag, "--model"})
	return nil
}

// field finds a key; where names its origin in the error.
func (l *loader) field(key, where string) (field, error) {
	keys := make([]string, len(l.fields))
	for i, f := range l.fields {
		if f.key == key {
			return f, nil
		}
		keys[i] = f.key
	}
	if f, ok := namedField(key); ok {
		return f, nil
	}
	hint := "run 'agent config schema' for all keys"
	if near := didYouMean(key, keys); near != "" {
		hint = near
	}
	for _, k := range keys {
		if strings.HasPrefix(k, key+".") {
			hint = "it is a group; set a key in it, such as " + k
			break
		}
	}
	return field{}, &Error{Key: key, Err: fmt.Errorf("%s: unknown key %q; %s", where, key, hint)}
}

// one sets one key to a value, which is checked like one in a file.
func (l *loader) one(f field, value any, from Source) error {
	data, err := json.Marshal(value)
	if err != nil {
		return &Error{Key: f.key, Err: fmt.Errorf("%s: %w", from, err)}
	}
	var in Settings
	if err := jsonpos.Decode(from.Where, data, f.value(&in).Addr().Interface()); err != nil {
		if e := (*jsonpos.Error)(nil); errors.As(err, &e) {
			err = errors.New(e.Message) // there is no file to have a line and a column
		}
		return &Error{Key: f.key, Err: fmt.Errorf("%s: %s: %w", from, f.key, err)}
	}
	if p := f.check(&in); p != nil {
		return &Error{Key: f.key, Err: fmt.Errorf("%s: %s%s", from, p.message, andHint(p.hint))}
	}
	l.set(f, &in, from)
	l.rules(nil, &in, Rule{Source: from, Trusted: true})
	return nil
}

func andHint(hint string) string {
	if hint == "" {
		return ""
	}
	return "; " + hint
}

func (l *loader) setProvider(name string, from Source) error {
	f, err := l.field("providers.default", from.Where)
	if err != nil {
		return err
	}
	return l.one(f, name, from)
}

// choose records a model to use. It is split when all providers are known.
func (l *loader) choose(text, given string, from Source) {
	if text != "" {
		l.models = append(l.models, choice{given, text, from})
	}
}

// applyModels applies the chosen models, each to its provider: one that is
// named with the model becomes the provider in use.
func (l *loader) applyModels() error {
	for _, c := range l.models {
		if err := l.applyModel(c); err != nil {
			e := &Error{Err: err}
			errors.As(err, &e)
			return &Error{Key: e.Key, Err: e.Err, CommandLine: c.from.Layer == LayerFlag}
		}
	}
	return nil
}

// applyModel applies a chosen model, unless a higher layer sets a model or
// another provider.
func (l *loader) applyModel(c choice) error {
	p := &l.loaded.Settings.Providers
	provider, model, err := SplitModel(c.model, c.provider, p.Default, p.Names())
	if err != nil {
		return &Error{Key: "providers.default", Err: fmt.Errorf("%s: %w", c.from, err)}
	}
	if provider != "" && c.provider == "" && l.loaded.Sources["providers.default"].Layer <= c.from.Layer {
		if err := l.setProvider(provider, c.from); err != nil {
			return err
		}
	}
	if provider != "" && provider != p.Default {
		return nil
	}
	key := l.loaded.Settings.ModelKey(p.Default)
	if l.loaded.Sources[key].Layer > c.from.Layer {
		return nil
	}
	f, err := l.field(key, c.from.Where)
	if err != nil {
		return err
	}
	return l.one(f, model, c.from)
}
