package config

import (
	"strings"
	"testing"
)

func TestPresets(t *testing.T) {
	if len(Presets()) < 15 {
		t.Fatalf("%d presets: the file cannot be read", len(Presets()))
	}
	for _, p := range Presets() {
		n := &NamedProvider{API: p.API, BaseURL: p.BaseURL}
		if err := n.check(p.Name, []string{p.Name}); err != nil || p.About == "" || p.Source == "" || !providerName().MatchString(p.Name) || isProviderField(p.Name) {
			t.Errorf("%+v: %v", p, err)
		}
		if p.Local == (p.Env != "") || p.Local != strings.HasPrefix(p.BaseURL, "http://localhost:") {
			t.Errorf("%s: only a local server needs no key", p.Name)
		}
	}
}

func TestSplitModel(t *testing.T) {
	names := []string{"local", "openai", "github", "mistral", "work"}
	for _, test := range []struct{ text, given, used, provider, model, problem string }{
		{"gpt-5", "", "openai", "", "gpt-5", ""},
		{"work/gpt-5", "", "openai", "work", "gpt-5", ""},
		{"work/vendor/m", "", "openai", "work", "vendor/m", ""},
		{"github/openai/gpt-4o", "", "github", "github", "openai/gpt-4o", ""},
		{"openai/gpt-4o", "github", "github", "github", "openai/gpt-4o", ""},
		{"meta-llama/x", "", "local", "", "meta-llama/x", ""},
		{"models/gemini-2.5-pro", "", "gemini", "", "models/gemini-2.5-pro", ""},
		{"opena1/gpt-5", "", "openai", "", "", `did you mean "openai"?`},
		{"wrok/m", "", "mistral", "", "", `did you mean "work"?`},
		{"openai/", "", "local", "", "", "no model"},
		{"a b", "", "local", "", "", "spaces"},
	} {
		provider, model, err := SplitModel(test.text, test.given, test.used, names)
		if provider != test.provider || model != test.model || (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%q with %q: %q, %q, %v", test.text, test.used, provider, model, err)
		}
	}
}

// TestNamedLayers checks that named providers are merged key by key, that their
// secrets are known, and that a project can set only the model.
func TestNamedLayers(t *testing.T) {
	m := newMachine(t, `{"providers":{"work":{"baseUrl":"http://w/v1","apiKey":"${WORK_KEY}","headers":{"X-Token":"hidden-token","X-Team":"blue"}},"groq":{"model":"m"}}}`,
		`{"providers":{"work":{"model":"from-project"}}}`)
	m.env["WORK_KEY"], m.env["GROQ_API_KEY"], m.env["GEMINI_API_KEY"] = "work-secret", "groq-secret", "gemini-secret"
	l := load(t, m.options())
	work, groq := l.Settings.Providers.Named["work"], l.Settings.Providers.Named["groq"]
	if work.Model != "from-project" || work.BaseURL != "http://w/v1" || groq.Model != "m" || groq.BaseURL == "" {
		t.Errorf("work %+v, groq %+v", work, groq)
	}
	known := strings.Join(l.KnownSecrets(), " ")
	for _, want := range []string{"work-secret", "groq-secret", "gemini-secret", "hidden-token"} {
		if !strings.Contains(known, want) {
			t.Errorf("%s is not among the secrets %s", want, known)
		}
	}
	if strings.Contains(known, "blue") {
		t.Errorf("a header that is no credential is a secret: %s", known)
	}
	m = newMachine(t, "", `{"providers":{"work":{"baseUrl":"http://evil/v1"}}}`)
	if _, err := Load(m.options()); err == nil || !strings.Contains(err.Error(), "providers.work.baseUrl is not allowed in a project's settings") {
		t.Errorf("error %v", err)
	}
}
