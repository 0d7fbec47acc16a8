package config

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/permissions"
)

// Target is a settings file to edit.
type Target struct {
	Path    string // of the settings file; created if it is missing
	Project bool   // it is a project's file, which only some keys are allowed in
	Home    string // the agent's directory, see [Home]
}

// UserFile returns the target for the user's settings.
func UserFile(home string) Target {
	return Target{Path: filepath.Join(home, "settings.json"), Home: home}
}

// ProjectFile returns the target for the settings of a directory.
func ProjectFile(home, dir string) Target {
	return Target{Path: filepath.Join(dir, ".agent", "settings.json"), Project: true, Home: home}
}

// Set sets a dotted key of a settings file to a value: JSON or, for text, the
// bare text, as in --set. The rest of the file is unchanged. The new text is
// checked like a file that is loaded before it is written; an error, an
// [*Error], leaves the file unchanged.
func (t Target) Set(ctx context.Context, key, value string) error {
	return t.SetAll(ctx, []Change{{key, value}})
}

// Change is a dotted key and its new value.
type Change struct{ Key, Value string }

// SetAll is Set for several keys: all are set, or none.
func (t Target) SetAll(ctx context.Context, changes []Change) error {
	return t.Edit(ctx, func(*Settings) []Change { return changes })
}

// Edit is SetAll for changes that depend on the file's settings.
func (t Target) Edit(ctx context.Context, edit func(in *Settings) []Change) error {
	return t.update(ctx, func(doc *jsonpos.Document, in *Settings) ([]byte, error) {
		var changed []byte
		for _, c := range edit(in) {
			f, err := (&loader{fields: fields()}).field(c.Key, "config set")
			if err != nil {
				return nil, commandLineError(err)
			}
			text, err := encode(f.parse(c.Value))
			if err != nil {
				return nil, commandLineError(&Error{Key: c.Key, Err: err})
			}
			changed = doc.Set(f.path(), text)
			if doc, err = t.check(f, changed); err != nil {
				return nil, commandLineError(err)
			}
		}
		return changed, nil
	})
}

// Unset removes a dotted key from a settings file and reports whether it was
// there. Its value then comes from lower layers.
func (t Target) Unset(ctx context.Context, key string) (removed bool, err error) {
	f, err := (&loader{fields: fields()}).field(key, "config unset")
	if err != nil {
		return false, commandLineError(err)
	}
	err = t.update(ctx, func(doc *jsonpos.Document, _ *Settings) (changed []byte, err error) {
		changed, removed = doc.Remove(f.path()...)
		return changed, nil
	})
	return removed, err
}

// AddAllowRule appends a rule to permissions.allow of the user's settings at
// path, unless it is there already. The rest of the file is unchanged. An error,
// an [*Error], leaves the file unchanged.
func AddAllowRule(path, rule string) error { return addRule(path, "permissions.allow", rule) }

// AddDenyRule is AddAllowRule for permissions.deny.
func AddDenyRule(path, rule string) error { return addRule(path, "permissions.deny", rule) }

func addRule(path, key, rule string) error {
	t := Target{Path: path, Home: filepath.Dir(path)}
	text, err := encode(rule)
	if err != nil {
		return &Error{Key: key, Err: err}
	}
	f, err := (&loader{fields: fields()}).field(key, "")
	if err != nil {
		return err
	}
	return t.update(context.Background(), func(doc *jsonpos.Document, in *Settings) ([]byte, error) {
		rules := in.Permissions.Allow
		if key == "permissions.deny" {
			rules = in.Permissions.Deny
		}
		if slices.Contains(rules, rule) {
			return nil, nil
		}
		changed := doc.Append(f.path(), text)
		_, err := t.check(f, changed)
		return changed, err
	})
}

// update replaces the file's text by what change returns; nil leaves it unchanged.
func (t Target) update(ctx context.Context, change func(doc *jsonpos.Document, in *Settings) ([]byte, error)) error {
	lock := filepath.Join(t.Home, "settings.json.lock")
	err := privatefile.Update(ctx, t.Path, lock, func(old []byte) ([]byte, error) {
		text := old
		if old == nil {
			text = []byte("{\n  \"version\": 1\n}\n")
		}
		doc, in, err := parse(t.Path, text)
		if err != nil {
			return nil, err
		}
		changed, err := change(doc, in)
		if err != nil || changed == nil || bytes.Equal(bytes.TrimPrefix(text, []byte("\ufeff")), changed) {
			return old, err
		}
		return changed, nil
	})
	if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
		err = &Error{Err: fmt.Errorf("settings: %w", err)}
	}
	return err
}

// check parses a changed text as if it were read from the file, and checks the
// key that was changed.
func (t Target) check(f field, text []byte) (*jsonpos.Document, error) {
	doc, in, err := parse(t.Path, text)
	if err != nil {
		return nil, withoutPlace(f, err)
	}
	if t.Project {
		l := &loader{loaded: &Loaded{Home: t.Home}}
		if p := l.allowed(f, in, LayerProject); p != nil {
			return nil, &Error{Key: f.key, Err: errors.New(p.message + andHint(p.hint))}
		}
	}
	if n := in.Providers.Named[f.named]; n != nil && !t.Project {
		preset, _ := FindPreset(f.named)
		full := *n
		full.BaseURL = cmp.Or(full.BaseURL, preset.BaseURL)
		if err := full.check(f.named, in.Providers.Names()); err != nil {
			return nil, &Error{Key: f.key, Err: err}
		}
	}
	if f.key == "providers.default" {
		if err := t.checkDefault(in); err != nil {
			return nil, err
		}
	}
	return doc, t.checkRules(f, in)
}

// checkDefault checks the default provider, which the user's settings may define.
func (t Target) checkDefault(in *Settings) error {
	p := in.Providers
	names := p.Names()
	if data, _, err := readFile(UserFile(t.Home).Path); err == nil && t.Project {
		if _, user, err := parse(t.Path, data); err == nil {
			names = user.Providers.Names()
		}
	}
	if !slices.Contains(names, p.Default) {
		return &Error{Key: "providers.default", Err: unknownProvider("providers.default", p.Default, names)}
	}
	return nil
}

// checkRules compiles the permission rules if one of their keys was changed.
func (t Target) checkRules(f field, in *Settings) error {
	if !strings.HasPrefix(f.key, "permissions.") || f.key == modeKey {
		return nil
	}
	// The directories only anchor the rules, which are not kept.
	dir := filepath.Dir(t.Path)
	_, err := permissions.New(permissions.Options{Home: dir, Workspace: []string{dir}, Sets: []permissions.RuleSet{{
		Source: permissions.SourceUser, Trusted: true,
		Settings: permissions.Settings{Allow: in.Permissions.Allow, Ask: in.Permissions.Ask, Deny: in.Permissions.Deny, When: in.Permissions.When},
	}}})
	if err != nil {
		return &Error{Key: f.key, Err: err}
	}
	return nil
}

// withoutPlace drops the position of a mistake in a text that was never written.
func withoutPlace(f field, err error) error {
	e := &Error{Err: err}
	errors.As(err, &e)
	cause := e.Err
	if at := (*jsonpos.Error)(nil); errors.As(cause, &at) {
		cause = errors.New(at.Message + andHint(at.Hint))
	}
	return &Error{Key: f.key, Err: cause}
}

// commandLineError marks an error as one of the command line.
func commandLineError(err error) error {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	return &Error{Key: e.Key, Err: e.Err, CommandLine: true}
}

func (f field) path() []string { return strings.Split(f.key, ".") }

// parse returns the value of an argument: JSON or, for a key that takes text,
// the bare text.
func (f field) parse(text string) any {
	isText := f.typ == secretType || f.typ.Kind() == reflect.String
	if json.Valid([]byte(text)) && (!isText || strings.HasPrefix(strings.TrimSpace(text), `"`)) {
		return json.RawMessage(text)
	}
	return text
}

// encode returns a value as readable JSON.
func encode(value any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}
