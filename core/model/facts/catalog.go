package facts

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

//go:embed services.jsonl
var services []byte

// Catalog lists the models of services. It is a text of JSON lines, each with one
// model, which is searched instead of parsed: a program looks up only a few. The
// zero value is empty. It is safe for concurrent use.
type Catalog struct{ text []byte }

// Builtin returns the catalog that is built in.
func Builtin() Catalog { return Catalog{services} }

// head is the first line.
type head struct {
	Date   string `json:"date"`
	Source string `json:"source"`
}

// line is a line of a catalog. Its first two members begin it, see prefix.
type line struct {
	Provider  string `json:"provider"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Cutoff    string `json:"cutoff,omitempty"`
	Context   int    `json:"context,omitempty"`
	Output    int    `json:"output,omitempty"`
	Reasoning bool   `json:"reasoning,omitempty"`
	Vision    bool   `json:"vision,omitempty"`
	Price     *price `json:"price,omitempty"`
}

type price struct {
	Input  float64  `json:"input"`
	Cached *float64 `json:"cached,omitempty"`
	Write  *float64 `json:"write,omitempty"`
	Output float64  `json:"output"`
	Over   int      `json:"over,omitempty"`
	Long   *price   `json:"long,omitempty"`
}

func (p *price) exported() *Price {
	if p == nil {
		return nil
	}
	return &Price{Input: p.Input, Cached: p.Cached, Write: p.Write, Output: p.Output, Over: p.Over, Long: p.Long.exported()}
}

// Parse reads a catalog as [Catalog.Bytes] returns it. It reads only the first
// line: a model whose line is damaged is unknown.
func Parse(text []byte) (Catalog, error) {
	first, _, ok := bytes.Cut(text, []byte("\n"))
	var h head
	if err := json.Unmarshal(first, &h); err != nil || !ok || h.Date == "" {
		return Catalog{}, errors.New("not a list of models: its first line has no date")
	}
	return Catalog{text}, nil
}

// Bytes returns the text of the catalog.
func (c Catalog) Bytes() []byte { return c.text }

// Date returns the date of the catalog, "" if it is empty.
func (c Catalog) Date() string {
	first, _, _ := bytes.Cut(c.text, []byte("\n"))
	var h head
	_ = json.Unmarshal(first, &h) // no date, then
	return h.Date
}

// Len returns the number of models.
func (c Catalog) Len() int { return max(bytes.Count(c.text, []byte("\n"))-1, 0) }

// Lookup returns what is known about a model of a provider.
func (c Catalog) Lookup(provider, id string) (Model, bool) {
	mark := prefix(provider, id)
	at := bytes.Index(c.text, mark)
	if at < 0 {
		return Model{}, false
	}
	text, _, _ := bytes.Cut(c.text[at+1:], []byte("\n"))
	var l line
	if json.Unmarshal(text, &l) != nil || !l.valid() {
		return Model{}, false
	}
	return Model{
		ID: l.ID, Name: l.Name, Cutoff: l.Cutoff, Context: l.Context, Output: l.Output,
		Reasoning: l.Reasoning, Vision: l.Vision, Price: l.Price.exported(), Known: true,
	}, true
}

// prefix returns how the line of a model begins, after a newline.
func prefix(provider, id string) []byte {
	p, _ := json.Marshal(provider) // strings always marshal
	i, _ := json.Marshal(id)
	return fmt.Appendf(nil, "\n{\"provider\":%s,\"id\":%s,", p, i)
}

// valid reports whether the values can be right.
func (l *line) valid() bool {
	const maxTokens = 1 << 30
	return l.ID != "" && plain(l.ID, 200) && plain(l.Name, 200) && plain(l.Cutoff, 10) &&
		l.Context >= 0 && l.Context <= maxTokens && l.Output >= 0 && l.Output <= maxTokens && l.Price.valid()
}

// plain reports whether a text has one line and is not too long.
func plain(text string, limit int) bool {
	return len(text) <= limit && !strings.ContainsFunc(text, unicode.IsControl)
}

func (p *price) valid() bool {
	const limit = 1e5
	in := func(v float64) bool { return v >= 0 && v <= limit }
	opt := func(v *float64) bool { return v == nil || in(*v) }
	return p == nil || in(p.Input) && in(p.Output) && opt(p.Cached) && opt(p.Write) && p.Over >= 0 && (p.Long == nil || p.Long.Long == nil && p.Long.valid())
}

// published is the form of https://models.dev/api.json, as far as it is used.
type published map[string]struct {
	Models map[string]publishedModel `json:"models"`
}

type publishedModel struct {
	Name       string         `json:"name"`
	Knowledge  string         `json:"knowledge"`
	Status     string         `json:"status"`
	Reasoning  bool           `json:"reasoning"`
	Cost       *publishedCost `json:"cost"`
	Limit      struct{ Context, Output float64 }
	Modalities struct{ Input, Output []string }
}

type publishedCost struct {
	Input      float64  `json:"input"`
	Output     float64  `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
	Tiers      []struct {
		publishedCost
		Tier struct{ Size int }
	} `json:"tiers"`
}

// Convert makes a catalog of a published one, in the form of
// https://models.dev/api.json. names are the providers to keep, and how the
// published one calls each. Models with invalid values are left out. It is an
// error if no model is left.
func Convert(data []byte, date, source string, names map[string]string) (Catalog, error) {
	var all published
	if err := json.Unmarshal(data, &all); err != nil {
		return Catalog{}, fmt.Errorf("not a catalog in the form of https://models.dev/api.json: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // its lines end with a newline; its escapes are those of prefix
	if err := enc.Encode(head{date, source}); err != nil {
		return Catalog{}, err
	}
	found := false
	for _, ours := range slices.Sorted(maps.Keys(names)) {
		models := all[names[ours]].Models
		for _, id := range slices.Sorted(maps.Keys(models)) {
			if l := models[id].line(ours, id); l.valid() && models[id].Status != "deprecated" {
				found = true
				if err := enc.Encode(l); err != nil {
					return Catalog{}, err
				}
			}
		}
	}
	if !found {
		return Catalog{}, errors.New("not a catalog in the form of https://models.dev/api.json: it has no model of a known provider")
	}
	return Catalog{b.Bytes()}, nil
}

func (m publishedModel) line(provider, id string) line {
	l := line{
		Provider: provider, ID: id, Name: cmp.Or(m.Name, id), Cutoff: m.Knowledge[:min(len(m.Knowledge), 7)],
		Context: tokenCount(m.Limit.Context), Output: tokenCount(m.Limit.Output),
		Reasoning: m.Reasoning, Vision: slices.Contains(m.Modalities.Input, "image"),
	}
	if m.Cost != nil {
		l.Price = m.Cost.price()
		if len(m.Cost.Tiers) > 0 && m.Cost.Tiers[0].Tier.Size > 0 {
			l.Price.Over, l.Price.Long = m.Cost.Tiers[0].Tier.Size, m.Cost.Tiers[0].price()
		}
	}
	return l
}

// tokenCount returns -1, which is invalid, for a number that an int cannot hold.
func tokenCount(f float64) int {
	if f >= 0 && f <= 1<<40 {
		return int(f)
	}
	return -1
}

func (c *publishedCost) price() *price {
	return &price{Input: c.Input, Cached: c.CacheRead, Write: c.CacheWrite, Output: c.Output}
}
