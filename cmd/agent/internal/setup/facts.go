package setup

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
)

// Facts returns what is known of a provider's model.
func (s *Setup) Facts(provider, name string) facts.Model { return s.facts(provider, name) }

// hasModel reports whether a provider is known to have a model: from the settings, a
// catalog or, of a provider that makes its models, the table.
func (s *Setup) hasModel(provider, name string) bool {
	for _, key := range []string{name, provider + "/" + name} {
		if _, ok := s.Settings.Models[key]; ok {
			return true
		}
	}
	var updated facts.Catalog
	if s.catalog != nil {
		updated = s.catalog()
	}
	for _, c := range []facts.Catalog{updated, facts.Builtin()} {
		if _, ok := c.Lookup(provider, name); ok {
			return true
		}
	}
	m := facts.Lookup(provider, name)
	return m.Known && slices.Contains(facts.OfVendor(provider), m.ID)
}

// facts returns the facts of a provider's model, as overridden by the settings.
// For an Azure deployment, they are those of its base model.
func (s *Setup) facts(provider, name string) facts.Model {
	if azure := s.Settings.Providers.Azure; provider == "azure" && name == azure.Deployment {
		name = cmp.Or(azure.BaseModel, name)
	}
	var updated facts.Catalog
	if s.catalog != nil {
		updated = s.catalog()
	}
	m := facts.Lookup(provider, name, updated)
	if local(provider) {
		m.Price = &facts.Price{} // whatever the same model costs elsewhere
	}
	for _, key := range []string{name, provider + "/" + name} {
		o, ok := s.Settings.Models[key]
		if !ok {
			continue
		}
		m.Context, m.Output = cmp.Or(o.ContextWindow, m.Context), cmp.Or(o.MaxOutput, m.Output)
		set(&m.Reasoning, o.Reasoning)
		set(&m.Vision, o.Vision)
		if o.InputPrice == nil && o.OutputPrice == nil && o.CachedInputPrice == nil && o.CacheWritePrice == nil {
			continue
		}
		p := facts.Price{}
		if m.Price != nil {
			p = *m.Price
			p.Long, p.Over = nil, 0
		}
		set(&p.Input, o.InputPrice)
		set(&p.Output, o.OutputPrice)
		p.Cached, p.Write = cmp.Or(o.CachedInputPrice, p.Cached), cmp.Or(o.CacheWritePrice, p.Write)
		m.Price = &p
	}
	return m
}

// local reports whether a provider's models run on this machine.
func local(provider string) bool {
	preset, _ := config.FindPreset(provider)
	return provider == "local" || preset.Local
}

// assumedWindow is the context window of a model that is not known.
func assumedWindow(provider string) int {
	if local(provider) {
		return localWindow
	}
	return remoteWindow
}

// set overrides a value if by is not nil.
func set[T any](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}

// memo returns facts as a function that looks a model up once: a resumed session prices
// each of its answers, and a report those of all sessions.
func (s *Setup) memo() func(provider, name string) facts.Model {
	type key struct{ provider, name string }
	var models sync.Map // of key to facts.Model
	return func(provider, name string) facts.Model {
		k := key{cmp.Or(provider, s.Settings.Providers.Default), name} // old session logs may not name it
		known, ok := models.Load(k)
		if !ok {
			known, _ = models.LoadOrStore(k, s.facts(k.provider, name))
		}
		return known.(facts.Model)
	}
}

// Prices returns a function that prices a call in USD, as far as the price is known.
func (s *Setup) Prices() func(provider, name string, u model.Usage) (float64, bool) {
	known := s.memo()
	return func(provider, name string, u model.Usage) (float64, bool) {
		price := known(provider, name).Price
		if price == nil {
			return 0, false
		}
		return price.Cost(u), true
	}
}

// Windows returns a function for the context window of a model in tokens, 0 if that is
// unknown.
func (s *Setup) Windows() func(provider, name string) int {
	known := s.memo()
	return func(provider, name string) int { return known(provider, name).Context }
}

// Known is what is known about models: prices and context windows, see [Setup.Prices] and
// [Setup.Windows].
type Known struct {
	Price  func(provider, name string, u model.Usage) (float64, bool)
	Window func(provider, name string) int
}

// KnownModels returns what is known about models. If the settings are invalid, it says so
// and ignores them: session logs can be read all the same.
func KnownModels(s *cmdutil.IO) Known {
	quiet := *s
	quiet.Err = io.Discard // the warnings are about running sessions
	set, err := (&Flags{}).Load(&quiet)
	if err != nil {
		fmt.Fprintf(s.Err, "agent: prices are those of the built-in table: %v\n", err)
		set = &Setup{Loaded: &config.Loaded{}}
	}
	return Known{set.Prices(), set.Windows()}
}
