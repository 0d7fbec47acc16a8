package setup

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model/facts"
)

// served says what each provider supports, beyond what all do. The contract
// suite and the providers' own tests hold it.
var served = map[string]struct{ protocol, reasoning, images, cache, lists string }{
	"local":     {"Chat Completions", "shown", "yes", "the server's own", "yes"},
	"openai":    {"Responses, or Chat Completions", "summaries; encrypted, goes back", "yes, also in results", "automatic", "yes"},
	"anthropic": {"Messages", "shown; signed, goes back", "yes, also in results", "marked by the request", "yes"},
	"gemini":    {"Gemini API, Vertex AI", "summaries; signed, goes back", "yes, also in results", "automatic", "yes; not on Vertex AI"},
	"github":    {"Chat Completions", "not shown", "yes", "automatic", "yes"},
	"azure":     {"Chat Completions", "not shown", "yes", "automatic", "no"},
	"foundry":   {"Chat Completions", "shown where the model does", "yes", "automatic", "local: yes; cloud: no"},
}

// TestProvidersPage keeps docs/providers.md as the program is. Run it with
// -update after a change.
func TestProvidersPage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "..", "docs", "providers.md")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(got)
	for name, text := range map[string]string{"providers": providersTable(t), "presets": presetsTable(), "models": facts.Table()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		head, rest, ok := strings.Cut(want, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no place for the %s", path, name)
		}
		want = head + begin + text + end + tail
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Errorf("%s is out of date: run go test ./cmd/agent/internal/setup -run TestProvidersPage -update", path)
	}
}

func providersTable(t *testing.T) string {
	t.Helper()
	s := settingsFor(t)
	cloud := settingsFor(t, "providers.foundry.mode=cloud", "providers.gemini.useVertexai=true")
	var b strings.Builder
	b.WriteString("| Provider | Protocol | Key | Without a key | Default model | Reasoning | Images | Prompt cache | Lists models |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, k := range builtinKinds() {
		about, ok := served[k.Name]
		if !ok {
			t.Fatalf("%s is not described in served", k.Name)
		}
		v, other := k.Values(&s.Settings.Providers), k.Values(&cloud.Settings.Providers)
		key := "`" + s.Setting(k, "apiKey") + "`"
		for _, name := range config.KeyVariables(s.Setting(k, "apiKey")) {
			key += ", `" + name + "`"
		}
		instead := "–"
		if asked := cmp.Or(v.tokenCommand, other.tokenCommand); asked != "" {
			instead = "`" + asked + "`"
		} else if !v.Keyed {
			instead = "works"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n", k.Name, about.protocol, key, instead, code(v.Model), about.reasoning, about.images, about.cache, about.lists)
	}
	return b.String()
}

func presetsTable() string {
	var b strings.Builder
	b.WriteString("| Preset | Service | Base URL | Key | Default model |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range config.Presets() {
		fmt.Fprintf(&b, "| `%s` | [%s](%s) | `%s` | %s | %s |\n", p.Name, p.About, p.Source, p.BaseURL, code(p.Env), code(p.Model))
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + text + "`"
}
