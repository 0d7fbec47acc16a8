package facts_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model/facts"
)

func TestBuiltinCatalog(t *testing.T) {
	c, err := facts.Parse(facts.Builtin().Bytes())
	if err != nil || c.Date() == "" {
		t.Fatal(c.Date(), err)
	}
	seen := map[string]bool{}
	for _, text := range strings.Split(strings.TrimSpace(string(c.Bytes())), "\n")[1:] {
		part := strings.Split(text, `"`)
		provider, id := part[3], part[7]
		m, ok := c.Lookup(provider, id)
		if key := provider + "/" + id; !ok || seen[key] || m.Name == "" || m.Context == 0 {
			t.Errorf("%s: %+v", key, m)
		}
		seen[provider+"/"+id] = true
	}
	if m, ok := c.Lookup("groq", "openai/gpt-oss"); ok {
		t.Errorf("a model whose name begins like another's: %+v", m)
	}
	if m := facts.Lookup("openrouter", "openai/gpt-5-mini"); m.ID != "openai/gpt-5-mini" || m.Price == nil {
		t.Errorf("%+v", m)
	}
}

// FuzzCatalog checks that foreign catalogs become valid ones or errors, and that
// what is found in a damaged one is valid.
func FuzzCatalog(f *testing.F) {
	f.Add([]byte(`{"groq":{"models":{"m":{"name":"M","cost":{"input":1,"output":2,"tiers":[{"input":1,"output":2,"tier":{"size":5}}]},"limit":{"context":5,"output":3}}}}}`), "m")
	f.Add([]byte("{\"date\":\"d\"}\n{\"provider\":\"groq\",\"id\":\"m\",\"name\":\"M\",\"context\":-1}\n"), "m")
	f.Add([]byte(`{"groq":{"models":{"a\nb":{"limit":{"context":1e300}}}}}`), "a\nb")
	f.Fuzz(func(t *testing.T, data []byte, id string) {
		c, err := facts.Convert(data, "2026-01-01", "s", map[string]string{"groq": "groq"})
		if err == nil && (c.Len() == 0 || strings.Contains(string(c.Bytes()), "\x00")) {
			t.Errorf("%q", c.Bytes())
		}
		if err != nil {
			if c, err = facts.Parse(data); err != nil {
				return
			}
		}
		if m, ok := c.Lookup("groq", id); ok && (m.Context < 0 || m.Output < 0 || strings.ContainsAny(m.ID+m.Name, "\n\x1b")) {
			t.Errorf("%+v", m)
		}
	})
}
