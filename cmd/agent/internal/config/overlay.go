package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// Variables returns the names of the environment variables that settings are
// read from.
func Variables() []string {
	names := []string{"AGENT_HOME", "AGENT_MODEL"}
	for _, f := range fields() {
		if name := f.tag.Get("env"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Variable returns the environment variable of a dotted key, "" if it has none.
func Variable(key string) string {
	for _, f := range fields() {
		if f.key == key {
			return f.tag.Get("env")
		}
	}
	return ""
}

// environment applies the variables of the fields, and AGENT_MODEL.
func (l *loader) environment() error {
	for _, f := range l.fields {
		name := f.tag.Get("env")
		value := ""
		if name != "" {
			value = l.opts.Env(name)
		}
		if value == "" {
			continue
		}
		if f.typ == secretType {
			value = "${" + name + "}" // read when it is used, and never taken for a command
		}
		if err := l.one(f, value, Source{LayerEnv, name}); err != nil {
			return err
		}
	}
	return l.choose(l.opts.Env("AGENT_MODEL"), l.opts.Env("AGENT_PROVIDER"), Source{LayerEnv, "AGENT_MODEL"})
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
	return l.choose(l.opts.Model, l.opts.Provider, Source{LayerFlag, "--model"})
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

// choose records the model to use, and takes the provider from its name.
func (l *loader) choose(text, given string, from Source) error {
	if text == "" {
		return nil
	}
	provider, model := split(text, given, providerNames(l.fields))
	if provider != "" && given == "" {
		if err := l.setProvider(provider, from); err != nil {
			return err
		}
	}
	l.model = choice{provider, model, from}
	return nil
}

// applyModel sets the chosen model for the provider in use, unless a higher
// layer sets a model or another provider.
func (l *loader) applyModel() error {
	if l.model.model == "" {
		return nil
	}
	used := l.loaded.Settings.Providers.Default
	if l.model.provider != "" && l.model.provider != used {
		return nil
	}
	key := l.loaded.Settings.ModelKey(used)
	if l.loaded.Sources[key].Layer > l.model.from.Layer {
		return nil
	}
	f, err := l.field(key, l.model.from.Where)
	if err != nil {
		return err
	}
	return l.one(f, l.model.model, l.model.from)
}
