package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/rank"
)

// catalogue holds searchable tools. It is immutable.
type catalogue struct {
	entries []core.Entry
	byName  map[string]core.Entry
	index   func() *rank.Index // built by the first search
}

// The weights were tuned on one half of the queries in testdata/toolsearch.
var catalogueFields = []rank.Field{
	{Name: "name", Weight: 3},
	{Name: "description", Weight: 2},
	{Name: "parameters", Weight: 0.2},
}

func newCatalogue(entries []core.Entry) *catalogue {
	c := &catalogue{entries: entries, byName: make(map[string]core.Entry, len(entries))}
	for _, e := range entries {
		c.byName[e.ModelName] = e
	}
	c.index = sync.OnceValue(func() *rank.Index {
		x := rank.New(catalogueFields...)
		for _, e := range entries {
			d := e.Tool.Definition()
			x.Put(e.ModelName, e.Source+" "+e.ModelName, d.Description, schemaText(d.Schema))
		}
		return x
	})
	return c
}

// schemaText returns the names, descriptions and enum values of parameters.
func schemaText(schema json.RawMessage) string {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return ""
	}
	var words []string
	collect(root, &words)
	return strings.Join(words, " ")
}

func collect(schema any, words *[]string) {
	switch schema := schema.(type) {
	case []any:
		for _, s := range schema {
			collect(s, words)
		}
	case map[string]any:
		if properties, ok := schema["properties"].(map[string]any); ok {
			*words = append(*words, slices.Sorted(maps.Keys(properties))...)
		}
		if text, ok := schema["description"].(string); ok {
			*words = append(*words, text)
		}
		if values, ok := schema["enum"].([]any); ok {
			for _, v := range values {
				if text, ok := v.(string); ok {
					*words = append(*words, text)
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(schema)) {
			collect(schema[key], words)
		}
	}
}

// search returns the best matches: tools that the query names, then others, best
// first.
func (c *catalogue) search(query string, k int) []core.Entry {
	var found []core.Entry
	add := func(name string) {
		e, ok := c.byName[name]
		if ok && len(found) < k && !slices.ContainsFunc(found, func(f core.Entry) bool { return f.ModelName == name }) {
			found = append(found, e)
		}
	}
	for word := range strings.FieldsFuncSeq(query, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;:'\"`()", r) }) {
		add(word)
	}
	for _, hit := range c.index().SearchTerms(expand(query), k) {
		add(hit.ID)
	}
	return found
}

// list describes the catalogue in about so many tokens: the names of all tools if
// they fit, or else the sources.
func (c *catalogue) list(tokens int) string {
	names := map[string][]string{}
	var sources []string
	for _, e := range c.entries {
		source, _ := cleanName(e.Source)
		if names[source] == nil {
			sources = append(sources, source)
		}
		names[source] = append(names[source], e.ModelName)
	}
	var full, short []string
	for _, source := range sources {
		full = append(full, source+": "+strings.Join(names[source], ", "))
		short = append(short, source)
	}
	if text := strings.Join(full, "\n"); len(text)/4 <= tokens {
		return text
	}
	const most = 100
	if more := len(short) - most; more > 0 {
		short = append(short[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(short, ", ")
}
