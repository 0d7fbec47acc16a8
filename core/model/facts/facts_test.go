package facts_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
)

func TestLookup(t *testing.T) {
	for _, test := range []struct{ provider, name, id string }{
		{"openai", "gpt-5-mini", "gpt-5-mini"},
		{"openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"},
		{"github", "openai/gpt-4o-mini", "gpt-4o-mini"},
		{"anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"},
		{"gemini", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5"},
		{"gemini", "models/gemini-2.5-flash-001", "gemini-2.5-flash"},
	} {
		if m := facts.Lookup(test.provider, test.name); !m.Known || m.ID != test.id || m.Price == nil || m.Context == 0 {
			t.Errorf("%s: %+v", test.name, m)
		}
	}
	if m := facts.Lookup("openai", "gpt-77"); m.Known || m.ID != "gpt-77" || m.Price != nil {
		t.Errorf("an unknown model: %+v", m)
	}
	if m := facts.Lookup("openai", "gpt-5-minimal"); m.Known {
		t.Errorf("a model whose name begins like another's: %+v", m)
	}
}

func TestFile(t *testing.T) {
	if facts.Date() == "" || facts.Default("anthropic") == "" {
		t.Fatal("the file cannot be read")
	}
	rows := strings.Split(strings.TrimSpace(facts.Table()), "\n")[2:]
	seen := map[string]bool{}
	for _, row := range rows {
		id := strings.Trim(strings.Split(row, "|")[1], " `")
		m := facts.Lookup("", id)
		if seen[id] || !m.Known || m.ID != id || m.Name == "" || m.Price == nil || m.Price.Input <= 0 || m.Price.Output < m.Price.Input {
			t.Errorf("%s: %+v", id, m)
		}
		seen[id] = true
	}
	for _, provider := range []string{"openai", "anthropic", "gemini", "github"} {
		if m := facts.Lookup(provider, facts.Default(provider)); !m.Known {
			t.Errorf("the default of %s is not known", provider)
		}
	}
}

func TestCost(t *testing.T) {
	for _, test := range []struct {
		name  string
		usage model.Usage
		want  float64
	}{
		{"claude-sonnet-4-5", model.Usage{Input: 1_000_000, CachedInput: 500_000, CacheWrite: 200_000, Output: 100_000, Reasoning: 90_000}, 0.9 + 0.15 + 0.75 + 1.5},
		{"gpt-5-mini", model.Usage{Input: 1000, Output: 1000}, 0.00225},
		{"gemini-2.5-pro", model.Usage{Input: 200_000, Output: 1000}, 0.26},
		{"gemini-2.5-pro", model.Usage{Input: 200_001, Output: 1000}, 0.5150025},
		{"gpt-5-mini", model.Usage{CachedInput: 10}, 0.00000025},
	} {
		if got := facts.Lookup("", test.name).Price.Cost(test.usage); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s %+v: %v, want %v", test.name, test.usage, got, test.want)
		}
	}
}

func ExampleLookup() {
	m := facts.Lookup("anthropic", "claude-haiku-4-5-20251001")
	fmt.Println(m.Name, m.Context, m.Price.Cost(model.Usage{Input: 10_000, Output: 1_000}))
	// Output: Claude Haiku 4.5 200000 0.015
}

func BenchmarkLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		facts.Lookup("openai", "gpt-5-mini-2025-08-07")
	}
}
