package setup

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
)

// Draft is the user's settings while some of them are being chosen. Nothing is
// written before Write.
type Draft struct {
	*Setup  // with the answers so far
	Answers []config.Flag

	streams cmdutil.IO
}

// NewDraft returns the settings as they are now.
func NewDraft(s *cmdutil.IO) (*Draft, error) {
	d := &Draft{streams: *s}
	d.streams.Err = io.Discard // other commands print the warnings
	return d, d.Take()
}

// Take adds answers if all of them are valid.
func (d *Draft) Take(answers ...config.Flag) error {
	all := append(slices.Clone(d.Answers), answers...)
	set, err := (&Flags{Extra: all}).Load(&d.streams)
	if err == nil {
		d.Setup, d.Answers = set, all
	}
	return err
}

// Try makes one call to the default provider. If an OpenAI-compatible service lacks
// the Responses API, it tries Chat Completions, and reports that.
func (d *Draft) Try(ctx context.Context) (result CallResult, chat bool, err error) {
	result, err = d.Call(ctx, d.streams.Env)
	p := d.Settings.Providers
	missing := err != nil && model.AsError(err).Status == http.StatusNotFound && CodeOf(err) != model.CodeModelNotFound
	if !missing || p.Default != "openai" || p.OpenAI.API != "responses" {
		return result, false, err
	}
	if err := d.Take(Answer("providers.openai.api", "chat")); err != nil {
		return result, false, err
	}
	result, err = d.Call(ctx, d.streams.Env)
	return result, true, err
}

// Write saves the answers in the user's settings.
func (d *Draft) Write(ctx context.Context) ([]config.Change, error) {
	var changes []config.Change
	for _, a := range d.Answers {
		text, err := json.Marshal(a.Value) // quoted, so that strings stay strings
		if err != nil {
			return nil, err
		}
		changes = append(changes, config.Change{Key: a.Key, Value: string(text)})
	}
	return changes, config.UserFile(d.Home).SetAll(ctx, changes)
}

// Answer is a setting that the user chose.
func Answer(key string, value any) config.Flag {
	return config.Flag{Name: "Invalid value", Key: key, Value: value}
}

// Found says what was found of a provider: its key in the environment, or that its server
// is one of those on this machine; empty if nothing was.
func (d *Draft) Found(k ProviderKind, servers []LocalServer) string {
	if k.Local {
		at := k.Values(&d.Settings.Providers).BaseURL
		if slices.ContainsFunc(servers, func(s LocalServer) bool { return s.URL == at }) {
			return "is running"
		}
	}
	if from := d.Loaded.Source(d.Setting(k, "apiKey")); from.Layer == config.LayerEnv {
		return from.Where + " is set"
	}
	return ""
}

// Preferred returns the name of the provider to offer first: the default or, if nothing
// says which that is, the first one of which something was found.
func (d *Draft) Preferred(servers []LocalServer) string {
	if d.Loaded.Source("providers.default").Layer == config.LayerDefault {
		for _, k := range d.ProviderKinds() {
			if d.Found(k, servers) != "" {
				return k.Name
			}
		}
	}
	return d.Settings.Providers.Default
}
