package facts

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

//go:embed models.json
var data []byte

// Model is what is known about a model. Unknown fields are zero.
type Model struct {
	ID        string // without a date
	Name      string // for display
	Cutoff    string // of its knowledge: year and month
	Context   int    // tokens of a request and its answer
	Output    int    // tokens of an answer
	Reasoning bool
	Vision    bool
	Price     *Price // nil if unknown
	Known     bool   // whether the model is in the table
}

// Price is in USD per million tokens.
type Price struct {
	Input  float64
	Cached *float64 // nil means Input
	Write  *float64 // to the cache; nil means Input
	Output float64
	// Over is the number of input tokens above which Long is the price of the
	// whole request; 0 means never.
	Over int
	Long *Price
}

// Cost returns the cost of a request in USD.
func (p Price) Cost(u model.Usage) float64 {
	if p.Over > 0 && p.Long != nil && u.Input > p.Over {
		return p.Long.Cost(u)
	}
	rate := func(r *float64) float64 {
		if r == nil {
			return p.Input
		}
		return *r
	}
	fresh := max(u.Input-u.CachedInput-u.CacheWrite, 0)
	sum := float64(fresh)*p.Input + float64(u.CachedInput)*rate(p.Cached) + float64(u.CacheWrite)*rate(p.Write) + float64(u.Output)*p.Output
	return sum / 1e6
}

// file is models.json.
type file struct {
	Date     string
	Sources  []string
	Defaults map[string]string
	Models   []entry

	byID map[string]entry
}

type entry struct {
	Model
	Vendor string
}

// load reads the file when first needed, not when the program starts.
var load = sync.OnceValue(func() *file {
	f := &file{byID: map[string]entry{}}
	if err := json.Unmarshal(data, f); err != nil {
		return f // a test checks that this does not happen
	}
	for _, m := range f.Models {
		m.Known = true
		f.byID[m.ID] = m
	}
	return f
})

// Date returns the date of the table.
func Date() string { return load().Date }

// Default returns the default model of a provider, "" if it has none.
func Default(provider string) string { return load().Defaults[provider] }

// OfVendor returns the ids of the models of a vendor: the provider that makes them.
func OfVendor(vendor string) []string {
	var ids []string
	for _, m := range load().Models {
		if m.Vendor == vendor {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// dated matches the suffix of a model's id that names a version.
var dated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|preview|\d{3}))+$`)
})

// Lookup returns what is known about a model of a provider, from the first of the
// catalogs that has it, then from the built-in one, then from the table. In
// the table, a publisher before the name ("openai/gpt-5-mini") and a date after it
// are ignored.
func Lookup(provider, name string, catalogs ...Catalog) Model {
	for _, c := range catalogs {
		if m, ok := c.Lookup(provider, name); ok {
			return m
		}
	}
	if m, ok := Builtin().Lookup(provider, name); ok {
		return m
	}
	id := name
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	m, ok := load().byID[id]
	if !ok {
		m, ok = load().byID[dated().ReplaceAllString(id, "")]
	}
	if !ok {
		return Model{ID: name}
	}
	return m.Model
}

// Table returns the models as a table in Markdown.
func Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Model | Context | Answer | Reasons | Sees | USD per million tokens: in / cached / cache write / out |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, m := range load().Models {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", m.ID, tokens(m.Context), tokens(m.Output), yes(m.Reasoning), yes(m.Vision), m.Price)
	}
	return b.String()
}

// String lists the prices.
func (p *Price) String() string {
	if p == nil {
		return "–"
	}
	one := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf("%g", *v)
	}
	text := fmt.Sprintf("%g / %s / %s / %g", p.Input, one(p.Cached), one(p.Write), p.Output)
	if p.Long != nil {
		text += fmt.Sprintf(" (over %s of input: %s)", tokens(p.Over), p.Long)
	}
	return text
}

func tokens(n int) string {
	switch {
	case n == 0:
		return "–"
	case n%1000 == 0:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprintf("%d", n)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
