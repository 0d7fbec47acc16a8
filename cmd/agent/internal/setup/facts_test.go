package setup

import (
	"flag"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
)

var update = flag.Bool("update", false, "update the generated parts of docs/providers.md")

func settingsFor(t *testing.T, sets ...string) *Setup {
	t.Helper()
	loaded, err := config.Load(config.LoadOptions{Cwd: t.TempDir(), Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return &Setup{Loaded: loaded, env: func(string) string { return "" }}
}

// TestDefaultModels holds the defaults of the settings against the facts.
func TestDefaultModels(t *testing.T) {
	for _, k := range builtinKinds() {
		if got, want := k.Values(&settingsFor(t).Settings.Providers).Model, facts.Default(k.Name); got != want {
			t.Errorf("%s: the settings have %q, the facts %q", k.Name, got, want)
		}
	}
}

func TestCostOfACall(t *testing.T) {
	million := model.Usage{Input: 1e6, Output: 1e6}
	for _, test := range []struct {
		sets  []string
		by    string // the provider that answered
		model string
		usd   float64
		known bool
	}{
		{[]string{"providers.default=openai"}, "", "gpt-5-mini-2025-08-07", 2.25, true},
		{[]string{"providers.default=openai"}, "openai", "gpt-99", 0, false},
		{[]string{"providers.default=openai", `models={"gpt-99":{"inputPrice":1,"outputPrice":2}}`}, "openai", "gpt-99", 3, true},
		{[]string{"providers.default=openai", `models={"openai/gpt-5-mini":{"outputPrice":0}}`}, "openai", "gpt-5-mini", 0.25, true},
		{nil, "local", "llama3.3:latest", 0, true},
		{nil, "local", "gpt-5-mini", 0, true},
		{nil, "openai", "gpt-5-mini", 2.25, true}, // it took over from the local server
		{[]string{"providers.default=azure", "providers.azure.deployment=dep", "providers.azure.baseModel=gpt-4.1"}, "azure", "dep", 10, true},
	} {
		usd, known := settingsFor(t, test.sets...).Prices()(test.by, test.model, million)
		if usd != test.usd || known != test.known {
			t.Errorf("%v %s: %v %v", test.sets, test.model, usd, known)
		}
	}
	if m := settingsFor(t, `models={"m":{"contextWindow":5,"maxOutput":6,"reasoning":true,"vision":true}}`).facts("local", "m"); m.Context != 5 || m.Output != 6 || !m.Reasoning || !m.Vision {
		t.Errorf("facts of the settings: %+v", m)
	}
}
