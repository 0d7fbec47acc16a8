package setup

import (
	"cmp"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
)

// facts returns the facts of a provider's model, as overridden by the settings.
// For an Azure deployment, they are those of its base model.
func (s *Setup) facts(provider, name string) facts.Model {
	if azure := s.Settings.Providers.Azure; provider == "azure" && name == azure.Deployment {
		name = cmp.Or(azure.BaseModel, name)
	}
	m := facts.Lookup(provider, name)
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

// set overrides a value if by is not nil.
func set[T any](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}

// pricer returns a function that prices a call in USD. It looks a model up once,
// since a resumed session prices each of its answers.
func (s *Setup) pricer() func(name string, u model.Usage) (float64, bool) {
	type key struct{ provider, name string }
	var prices sync.Map // of key to *facts.Price
	return func(name string, u model.Usage) (float64, bool) {
		k := key{s.Settings.Providers.Default, name}
		known, ok := prices.Load(k)
		if !ok {
			known, _ = prices.LoadOrStore(k, s.price(k.provider, name))
		}
		price := known.(*facts.Price)
		if price == nil {
			return 0, false
		}
		return price.Cost(u), true
	}
}

// price returns the price of a model, nil if unknown. A fallback's model is found
// by its name alone.
func (s *Setup) price(provider, name string) *facts.Price {
	price := s.facts(provider, name).Price
	if provider == "local" && name != s.Loaded.Model() {
		if known := facts.Lookup("", name); known.Known {
			price = known.Price
		}
	}
	return price
}
