package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/bundles"
)

type configOptions struct {
	options
	unset []string
}

func newConfigCmd(s *cmdutil.IO) *cobra.Command {
	o := &configOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "config NAME [KEY=VALUE…]",
		Short: "Set the settings of a plugin",
		Long: "Ask for the settings of a plugin, or set those given. Secrets are stored in the system's keyring, and are asked\n" +
			"for on the terminal or read from stdin (KEY=-), not given as arguments. Without a terminal, list the settings.",
		Example: "  agent plugins config deploy\n  agent plugins config deploy team=core\n  pass show deploy | agent plugins config deploy token=-",
		Args:    cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1:]) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "setting to remove")
	return cmd
}

func (o *configOptions) run(ctx context.Context, name string, args []string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	b, err := h.configurable(name)
	if err != nil {
		return err
	}
	if len(b.Settings) == 0 {
		return fmt.Errorf("the plugin %s has no settings", name)
	}
	values, err := o.given(ctx, b, args)
	switch {
	case err != nil:
		return err
	case len(args)+len(o.unset) == 0 && o.InTTY:
		if values, err = o.form(ctx, b); err != nil {
			return err
		}
	case len(args)+len(o.unset) == 0:
		return o.list(b)
	}
	return o.store(ctx, h.set.Home, b, values)
}

// list prints the settings, without secrets.
func (o *configOptions) list(b plugins.Installed) error {
	t := cmdutil.NewTable(o.Out, "KEY", "TYPE", "VALUE", "DESCRIPTION")
	for _, s := range b.Settings {
		value := cmp.Or(b.Choices.Values[s.Key], s.Default)
		if s.Secret {
			if value = ""; slices.Contains(b.Choices.Secrets, s.Key) {
				value = "(in the keyring)"
			}
		}
		if value == "" && s.Required {
			value = "(missing)"
		}
		t.Row(s.Key, s.Type, display.VisibleLine(value, 60), display.VisibleLine(cmp.Or(s.Description, s.Title), 100))
	}
	return t.Flush()
}

// given reads KEY=VALUE arguments.
func (o *configOptions) given(ctx context.Context, b plugins.Installed, args []string) (map[string]string, error) {
	values := map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		s, err := setting(b, key)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, &cmdutil.UsageError{Err: fmt.Errorf("%q: expected KEY=VALUE", arg)}
		case value == "-":
			if value, err = cmdutil.NewPrompter(o.IO).Secret(ctx, label(s), ""); err != nil {
				return nil, err
			}
		case s.Secret:
			return nil, &cmdutil.UsageError{Err: fmt.Errorf("%s is a secret, which other users of this machine could see in the arguments: use %s=- and stdin", key, key)}
		}
		if err := s.Check(value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		values[key] = value
	}
	for _, key := range o.unset {
		if _, err := setting(b, key); err != nil {
			return nil, err
		}
		values[key] = ""
	}
	return values, nil
}

func setting(b plugins.Installed, key string) (bundles.Setting, error) {
	var keys []string
	for _, s := range b.Settings {
		if s.Key == key {
			return s, nil
		}
		keys = append(keys, s.Key)
	}
	return bundles.Setting{}, fmt.Errorf("the plugin %s has no setting %q: it has %s", b.Name, key, strings.Join(keys, ", "))
}

func label(s bundles.Setting) string {
	text := cmp.Or(s.Title, s.Key)
	if s.Description != "" {
		text += " (" + s.Description + ")"
	}
	if len(s.Options) > 0 {
		text += ": " + strings.Join(s.Options, ", ")
	}
	return display.VisibleLine(text, 200)
}

// form asks for each setting, until its answer is valid.
func (o *configOptions) form(ctx context.Context, b plugins.Installed) (map[string]string, error) {
	p := cmdutil.NewPrompter(o.IO)
	values := map[string]string{}
	for _, s := range b.Settings {
		for {
			now, value, err := cmp.Or(b.Choices.Values[s.Key], s.Default), "", error(nil)
			if s.Secret {
				hint := ""
				if slices.Contains(b.Choices.Secrets, s.Key) {
					hint = "unchanged"
				}
				value, err = p.Secret(ctx, label(s), hint)
			} else {
				value, err = p.Line(ctx, label(s), now)
			}
			if err != nil {
				return nil, err
			}
			if value == "" && s.Secret && slices.Contains(b.Choices.Secrets, s.Key) {
				break
			}
			if err = s.Check(value); err == nil && value == "" && s.Required {
				err = errors.New("a value is required")
			}
			if value == "" && !s.Required {
				err = nil
			}
			if err == nil {
				values[s.Key] = value
				break
			}
			p.Printf("  %v", err)
		}
	}
	return values, nil
}

// store stores the values: secrets in the keyring, the others in a file.
func (o *configOptions) store(ctx context.Context, home string, b plugins.Installed, values map[string]string) error {
	for key, value := range values {
		s, _ := setting(b, key) // it is one of them
		if !s.Secret {
			continue
		}
		entry := setup.PluginSecret(b.Name, key)
		switch {
		case value == "" && !slices.Contains(b.Choices.Secrets, key):
			continue
		case o.Keyring == nil || !o.Keyring.Available(ctx):
			return fmt.Errorf("there is no keyring for the secret %s: set the environment variable %s instead", key, s.Env)
		case value == "":
			if err := o.Keyring.Delete(ctx, entry); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		default:
			if err := o.Keyring.Set(ctx, entry, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	err := plugins.SetChoices(ctx, home, b.Name, func(c *plugins.Choices) {
		if c.Values == nil {
			c.Values = map[string]string{}
		}
		for key, value := range values {
			s, _ := setting(b, key) // it is one of them
			switch {
			case s.Secret:
				c.Secrets = slices.DeleteFunc(c.Secrets, func(k string) bool { return k == key })
				if value != "" {
					c.Secrets = append(c.Secrets, key)
				}
			case value == "":
				delete(c.Values, key)
			default:
				c.Values[key] = value
			}
		}
	})
	if err == nil {
		fmt.Fprintf(o.Out, "Stored %s of %s.\n", display.Plural(len(values), "setting"), b.Name)
	}
	return err
}
