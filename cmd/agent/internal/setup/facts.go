package setup

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
)

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

// pricer returns a function that prices a call in USD. It looks a model up once,
// since a resumed session prices each of its answers.
func (s *Setup) pricer() func(provider, name string, u model.Usage) (float64, bool) {
	type key struct{ provider, name string }
	var prices sync.Map // of key to *facts.Price
	return func(provider, name string, u model.Usage) (float64, bool) {
		k := key{cmp.Or(provider, s.Settings.Providers.Default), name} // old session logs may not name it
		known, ok := prices.Load(k)
		if !ok {
			known, _ = prices.LoadOrStore(k, s.facts(k.provider, name).Price)
		}
		price := known.(*facts.Price)
		if price == nil {
			return 0, false
		}
		return price.Cost(u), true
	}
}
