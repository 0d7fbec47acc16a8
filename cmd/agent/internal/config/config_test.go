package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/jsonpos"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a home and a project directory with settings in them.
type machine struct {
	home, cwd string
	env       map[string]string
}

func newMachine(t *testing.T, user, project string) *machine {
	t.Helper()
	root := t.TempDir()
	m := &machine{filepath.Join(root, "home"), filepath.Join(root, "project"), map[string]string{}}
	for dir, text := range map[string]string{m.home: user, m.cwd: project} {
		if err := os.MkdirAll(filepath.Join(dir, ".agent"), 0o700); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			write(t, filepath.Join(dir, ".agent", "settings.json"), text)
		}
	}
	return m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) options() LoadOptions {
	return LoadOptions{Env: func(name string) string { return m.env[name] }, Home: m.home, Cwd: m.cwd, Trusted: true}
}

// short replaces the machine's directories by ~ and .
func (m *machine) short(text string) string {
	return filepath.ToSlash(strings.NewReplacer(m.home, "~", m.cwd, ".").Replace(text))
}

func load(t *testing.T, opts LoadOptions) *Loaded {
	t.Helper()
	l, err := Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDefaults(t *testing.T) {
	m := newMachine(t, "", "")
	l := load(t, m.options())
	want := Settings{
		Version: 1,
		Providers: Providers{
			Default:   "local",
			Local:     localProvider{BaseURL: "http://localhost:11434/v1", Model: "llama3.3:latest"},
			OpenAI:    openAIProvider{Model: "gpt-5-mini", BaseURL: "https://api.openai.com/v1", API: "responses"},
			Anthropic: anthropicProvider{Model: "claude-sonnet-4-5", BaseURL: "https://api.anthropic.com/v1"},
			Gemini:    geminiProvider{Model: "gemini-2.5-flash"},
			GitHub:    gitHubProvider{Model: "openai/gpt-4o-mini", Endpoint: "https://models.github.ai/inference"},
			Azure:     azureProvider{APIVersion: "2024-06-01"},
			Foundry:   foundryProvider{Mode: "local", ModelAlias: "phi-4", ModelDeployment: "gpt-4o"},
		},
		Agent: agentSettings{
			MaxRounds: 50, WarnAt: 0.8, CommandTimeoutMs: 10_000, MaxCommandTimeoutMs: 600_000,
			ParallelCalls: 8, LoopDetection: true, LoopWindow: 10, MaxSubagentDepth: 1, Profile: "auto", CompactAt: 0.85, CatalogURL: "https://models.dev/api.json",
		},
		Retry:       retrySettings{Enabled: true, MaxRetries: 3, MaxBroken: 5, MaxWaitMs: 300_000, BaseDelayMs: 1000, MaxDelayMs: 10_000, EnableJitter: true},
		Timeouts:    timeoutSettings{FirstByteMs: 120_000, IdleMs: 180_000, TotalMs: 1_800_000},
		Permissions: permissionSettings{Mode: "default"},
		Plugins:     pluginSettings{Enabled: true, IdleSeconds: 300, CallSeconds: 120, MemoryMB: 1024, Processes: 512, CPUSeconds: 3600},
		Web:         webSettings{Search: "auto"},
		Task:        taskSettings{MaxBeads: 20, RoundsPerBead: 10, OnTestChange: "ask", Worktrees: 1},
		Graph:       graphSettings{Enabled: "auto", TokenBudget: 1500},
		LSP:         lspSettings{Enabled: "auto"},
		Sandbox:     Sandbox{Shell: "auto", Skills: "auto", Plugins: "auto", MCP: "auto", MCPServers: "project", Home: "listed"},
		Session:     sessionSettings{Save: true, Strict: true, Undo: true, MaxContextMB: 1024, ContextMaxAgeDays: 30},
		Terminal:    terminalSettings{Keys: "readline", Notify: "bell", Theme: "auto"},
		Telemetry:   telemetrySettings{Protocol: "grpc", SampleRatio: 1},
		Tools:       toolSettings{ReadBeforeWrite: true, Search: "auto", SearchBudget: 0.02},
		Skills:      skillSettings{Enabled: true, MaxSkills: 3, Claude: true, ScriptTimeoutMs: 60_000},
	}
	want.Providers.addPresets()
	if !reflect.DeepEqual(l.Settings, want) {
		t.Errorf("got  %+v\nwant %+v", l.Settings, want)
	}
	if len(l.Sources) != 0 || len(l.Warnings) != 0 || l.Source("agent.maxRounds").String() != "default" {
		t.Errorf("sources %v, warnings %v", l.Sources, l.Warnings)
	}
	if len(l.Files) != 2 || l.Files[0].Status != FileMissing || l.Files[1].Status != FileMissing {
		t.Errorf("files %+v", l.Files)
	}
	for _, f := range fields() {
		if p := f.check(&l.Settings); p != nil {
			t.Errorf("the default is refused: %s", p.message)
		}
	}
}

func TestLayers(t *testing.T) {
	m := newMachine(t,
		`{"version":1,"agent":{"maxRounds":1,"maxTurns":1,"maxTokens":1,"effort":"low","temperature":0.5},"tools":{"disallowed":["a"]},"providers":{"local":{"model":"user"}}}`,
		`{"agent":{"maxTurns":2,"maxTokens":2,"effort":"high"},"tools":{"disallowed":["b"]}}`)
	m.env["AGENT_PROVIDER"] = "local"
	write(t, filepath.Join(m.cwd, "extra.json"), `{"agent":{"maxTokens":3,"effort":"xhigh","loopDetection":false}}`)
	opts := m.options()
	opts.SettingsFile = "extra.json"
	opts.Sets = []string{"agent.effort=none", "agent.systemPrompt=12", `tools.disallowed=["c"]`, "agent.warnAt=0.5", `providers.local.model="x y"`}
	opts.Flags = []Flag{{"--warn-at", "agent.warnAt", 0.25}}
	l := load(t, opts)
	a := l.Settings.Agent
	if a.MaxRounds != 1 || a.MaxTurns != 2 || a.MaxTokens != 3 || a.Effort != "none" || a.SystemPrompt != "12" || a.WarnAt != 0.25 ||
		*a.Temperature != 0.5 || a.LoopDetection || l.Model() != "x y" {
		t.Errorf("got %+v", a)
	}
	if got := strings.Join(l.Settings.Tools.Disallowed, ""); got != "abc" {
		t.Errorf("disallowed %s", got)
	}
	for key, want := range map[string]string{
		"agent.maxRounds": "~/.agent/settings.json:1:35", "agent.maxTurns": "./.agent/settings.json:1:22",
		"agent.maxTokens": "./extra.json:1:23", "agent.effort": "--set", "agent.warnAt": "--warn-at",
		"providers.default": "AGENT_PROVIDER", "retry.enabled": "default",
	} {
		if got := m.short(l.Source(key).String()); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
	if len(l.Files) != 3 || l.Files[2].Status != FileRead || l.Files[2].Layer != LayerFile {
		t.Errorf("files %+v", l.Files)
	}
}

func TestModelAndProvider(t *testing.T) {
	tests := []struct {
		name                                   string
		envProvider, envModel, provider, model string
		sets                                   []string
		want                                   string // provider and model
	}{
		{name: "defaults", want: "local llama3.3:latest"},
		{name: "flag", model: "m", want: "local m"},
		{name: "flag with provider", model: "openai/m", want: "openai m"},
		{name: "slash in the model's name", model: "meta/m", want: "local meta/m"},
		{name: "another's name as part of the model's", provider: "local", model: "openai/m", want: "local openai/m"},
		{name: "provider twice", provider: "openai", model: "openai/m", want: "openai m"},
		{name: "environment", envProvider: "openai", envModel: "m", want: "openai m"},
		{name: "environment with provider", envModel: "openai/m", want: "openai m"},
		{name: "flag over environment", envModel: "openai/m", model: "n", want: "openai n"},
		{name: "provider flag drops the other provider's model", envModel: "openai/m", provider: "local", want: "local llama3.3:latest"},
		{name: "set over environment", envModel: "m", sets: []string{"providers.local.model=n"}, want: "local n"},
		{name: "flag over set", model: "m", sets: []string{"providers.local.model=n"}, want: "local m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t, "", "")
			m.env["AGENT_PROVIDER"], m.env["AGENT_MODEL"] = tt.envProvider, tt.envModel
			opts := m.options()
			opts.Provider, opts.Model, opts.Sets = tt.provider, tt.model, tt.sets
			l := load(t, opts)
			if got := l.Settings.Providers.Default + " " + l.Model(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestProjectMayOnlyTighten(t *testing.T) {
	for _, tt := range []struct{ user, project, want string }{
		{"default", "read-only", "read-only"},
		{"read-only", "default", "read-only"},
		{"bypass", "default", "default"},
		{"default", "default", "default"},
	} {
		m := newMachine(t, fmt.Sprintf(`{"permissions":{"mode":%q}}`, tt.user), fmt.Sprintf(`{"permissions":{"mode":%q}}`, tt.project))
		if got := load(t, m.options()).Settings.Permissions.Mode; got != tt.want {
			t.Errorf("user %s, project %s: %s", tt.user, tt.project, got)
		}
	}
}

func TestRules(t *testing.T) {
	m := newMachine(t, `{"permissions":{"allow":["u1"],"deny":["u2"]}}`, "{\"agent\":{\"maxRounds\":3},\n\"permissions\":{\"allow\":[\"p1\",\"p2\"],\"ask\":[\"p3\"],\"deny\":[\"p4\"]}}")
	opts := m.options()
	opts.Flags = []Flag{{"--allow", "permissions.allow", []string{"f1"}}}
	list := func(l *Loaded) string {
		var b strings.Builder
		for _, r := range l.Rules {
			fmt.Fprintf(&b, "%s %s %s %s %v\n", r.Verdict, r.Text, r.Source.Layer, m.short(r.Source.Where), r.Trusted)
		}
		return b.String()
	}
	const want = `allow u1 user ~/.agent/settings.json:1:26 true
deny u2 user ~/.agent/settings.json:1:40 true
allow p1 project ./.agent/settings.json:2:25 TRUSTED
allow p2 project ./.agent/settings.json:2:30 TRUSTED
ask p3 project ./.agent/settings.json:2:43 TRUSTED
deny p4 project ./.agent/settings.json:2:57 TRUSTED
allow f1 flag --allow true
`
	l := load(t, opts)
	if got := list(l); got != strings.ReplaceAll(want, "TRUSTED", "true") {
		t.Errorf("trusted:\n%s", got)
	}
	if p := l.Settings.Permissions; !slices.Equal(p.Allow, []string{"u1", "p1", "p2", "f1"}) || !slices.Equal(p.Deny, []string{"u2", "p4"}) {
		t.Errorf("got %+v", p)
	}

	opts.Trusted = false
	l = load(t, opts)
	if got := list(l); got != strings.ReplaceAll(want, "TRUSTED", "false") {
		t.Errorf("untrusted:\n%s", got)
	}
	if p := l.Settings.Permissions; !slices.Equal(p.Allow, []string{"u1", "f1"}) || !slices.Equal(p.Deny, []string{"u2", "p4"}) || l.Settings.Agent.MaxRounds != 50 {
		t.Errorf("got %+v", l.Settings)
	}
	if got := m.short(strings.Join(l.Warnings, "\n")); got != "./.agent/settings.json: this directory is not trusted: only ask and deny rules apply (2 allow rules are ignored)" {
		t.Errorf("warnings: %s", got)
	}
	write(t, filepath.Join(m.cwd, ".agent", "settings.json"), "{")
	if l = load(t, opts); len(l.Warnings) != 1 || l.Files[1].Status != FileUntrusted {
		t.Errorf("a broken file of an untrusted directory: %+v", l)
	}
}

func TestPlaces(t *testing.T) {
	m := newMachine(t, `{"agent":{"maxRounds":1},"providers":{"local":{"apiKey":"my-own-key"}}}`, "")
	opts := m.options()
	opts.Cwd = m.home // its settings are the user's, not a project's
	if l := load(t, opts); l.Settings.Agent.MaxRounds != 1 || len(l.Files) != 1 || l.Home != filepath.Join(m.home, ".agent") {
		t.Errorf("in the home directory: %+v", l.Files)
	}
	m.env["AGENT_HOME"] = filepath.Join(m.cwd, "elsewhere")
	if err := os.Mkdir(m.env["AGENT_HOME"], 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(m.env["AGENT_HOME"], "settings.json"), `{"agent":{"maxRounds":7}}`)
	if l := load(t, m.options()); l.Settings.Agent.MaxRounds != 7 || l.Home != m.env["AGENT_HOME"] {
		t.Errorf("with AGENT_HOME: %+v", l)
	}
	m.env["AGENT_HOME"] = "elsewhere"
	if l := load(t, m.options()); l.Settings.Agent.MaxRounds != 7 {
		t.Errorf("with a relative AGENT_HOME: %+v", l)
	}
	if l := load(t, LoadOptions{Cwd: m.cwd}); l.Home != "" || l.Settings.Agent.MaxRounds != 50 {
		t.Errorf("without a home: %+v", l)
	}
}

func TestKeyThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	m := newMachine(t, `{"providers":{"openai":{"apiKey":"sk-1"}}}`, "")
	path := filepath.Join(m.home, ".agent", "settings.json")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	const want = "~/.agent/settings.json contains a key and is readable by others (mode 644); run: chmod 600 ~/.agent/settings.json"
	if got := m.short(strings.Join(load(t, m.options()).Warnings, "\n")); got != want {
		t.Errorf("got %s", got)
	}
	write(t, path, `{"providers":{"openai":{"apiKey":"${X}"}}}`)
	if got := load(t, m.options()).Warnings; got != nil {
		t.Errorf("without a key in it: %v", got)
	}
}

// TestErrors compares every message with testdata/errors.golden.
func TestErrors(t *testing.T) {
	var got strings.Builder
	for _, tt := range []struct {
		name, user, project string
		change              func(*machine, *LoadOptions)
	}{
		{name: "unknown key", user: "{\n  \"agent\": {\"maxRound\": 3}\n}"},
		{name: "unknown group", user: `{"provider": {}}`},
		{name: "wrong type", user: `{"agent": {"maxRounds": "many"}}`},
		{name: "wrong type of a key", user: `{"providers": {"openai": {"apiKey": 5}}}`},
		{name: "bad enum", user: `{"permissions": {"mode": "readonly"}}`},
		{name: "far enum", user: `{"agent": {"effort": "banana"}}`},
		{name: "unknown provider", user: `{"providers": {"default": "opneai"}}`},
		{name: "too small", user: `{"agent": {"maxRounds": -1}}`},
		{name: "too small in a table", user: `{"service": {"quotas": {"a": {"running": 1}, "b/c": {"running": -1}}}}`},
		{name: "too large", user: `{"agent": {"temperature": 3}}`},
		{name: "empty rule", user: `{"permissions": {"deny": ["a", " "]}}`},
		{name: "bad URL", user: `{"providers": {"local": {"baseUrl": "localhost:11434"}}}`},
		{name: "URL with password", user: `{"providers": {"local": {"baseUrl": "https://me:pw@host/v1"}}}`},
		{name: "syntax", user: "{\"agent\": {}\n \"retry\": {}}"},
		{name: "unclosed comment", user: "{\n  /* limits\n  \"agent\": {}\n}"},
		{name: "newer version", user: `{"version": 2, "future": true}`},
		{name: "placeholder", user: `{"providers": {"openai": {"apiKey": "[redacted]"}}}`},
		{name: "bad variable form", user: `{"providers": {"openai": {"apiKey": "${A} ${B}"}}}`},
		{name: "empty file", user: " "},
		{name: "key in a project", project: "{\"providers\": {\"openai\":\n {\"apiKey\": \"sk-1\"}}}"},
		{name: "base URL in a project", project: `{"providers": {"local": {"baseUrl": "https://evil.example"}}}`},
		{name: "bypass in a project", project: `{"permissions": {"mode": "bypass"}}`},
		{name: "workspace in a project", project: `{"permissions": {"mode": "workspace"}}`},
		{name: "tools in a project", project: `{"tools": {"allowed": ["shell"]}}`},
		{name: "bad provider in the environment", change: func(m *machine, _ *LoadOptions) { m.env["AGENT_PROVIDER"] = "locale" }},
		{name: "missing --settings", change: func(_ *machine, o *LoadOptions) { o.SettingsFile = "none.json" }},
		{name: "settings is a directory", change: func(_ *machine, o *LoadOptions) { o.SettingsFile = ".agent" }},
		{name: "set without value", change: func(_ *machine, o *LoadOptions) { o.Sets = []string{"agent.maxRounds"} }},
		{name: "set of an unknown key", change: func(_ *machine, o *LoadOptions) { o.Sets = []string{"agent.maxRound=1"} }},
		{name: "set of a group", change: func(_ *machine, o *LoadOptions) { o.Sets = []string{"retry={}"} }},
		{name: "set of a wrong type", change: func(_ *machine, o *LoadOptions) { o.Sets = []string{"agent.maxRounds=x"} }},
		{name: "set of a bad value", change: func(_ *machine, o *LoadOptions) { o.Sets = []string{"agent.effort=hihg"} }},
		{name: "bad provider flag", change: func(_ *machine, o *LoadOptions) { o.Provider = "openia" }},
		{name: "bad flag value", change: func(_ *machine, o *LoadOptions) { o.Flags = []Flag{{"--max-rounds", "agent.maxRounds", -3}} }},
	} {
		m := newMachine(t, tt.user, tt.project)
		opts := m.options()
		if tt.change != nil {
			tt.change(m, &opts)
		}
		l, err := Load(opts)
		var e *Error
		if l != nil || !errors.As(err, &e) {
			t.Errorf("%s: got %v, %v, want an *Error", tt.name, l, err)
			continue
		}
		if at := (*jsonpos.Error)(nil); (tt.user != "" || tt.project != "") && (!errors.As(err, &at) || at.Line == 0) {
			t.Errorf("%s: %v has no place in the file", tt.name, err)
		}
		fmt.Fprintf(&got, "%s:\n  %s\n", tt.name, m.short(err.Error()))
	}
	goldentest.Check(t, "testdata/errors.golden", []byte(got.String()))
}

func TestConfigurationPage(t *testing.T) {
	goldentest.Check(t, "../../../../docs/configuration.md", page())
}

func TestSchema(t *testing.T) {
	data, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		`{}`: true, `{"$schema":"x","version":1,"agent":{"temperature":null,"effort":""}}`: true,
		`{"permissions":{"deny":["x"],"mode":"bypass"}}`: true, `{"providers":{"openai":{"apiKey":"${X}"}}}`: true,
		`{"agent":{"maxRound":1}}`: false, `{"agent":{"maxRounds":"1"}}`: false, `{"agent":{"maxRounds":-1}}`: false,
		`{"permissions":{"mode":"x"}}`: false, `{"version":2}`: false, `{"permissions":{"deny":[""]}}`: false, `[]`: false,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		// The schema and the program agree.
		if _, _, err := parse("f", []byte(text)); (err == nil) != ok {
			t.Errorf("parse %s: %v", text, err)
		}
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	for _, f := range append(fields(), namedFields("NAME")...) {
		if f.tag.Get("doc") == "" {
			t.Errorf("%s has no documentation", f.key)
		}
		if f.typ == secretType && !f.userOnly() {
			t.Errorf("%s is a key that a project's file could set", f.key)
		}
		if f.tag.Get("format") == "url" && !f.userOnly() {
			t.Errorf("%s is an address that a project's file could set", f.key)
		}
	}
}

func TestSettingsShowNoSecret(t *testing.T) {
	m := newMachine(t, `{"providers":{"openai":{"apiKey":"sk-visible"},"local":{"apiKey":"!echo sk-visible"}}}`, "")
	l := load(t, m.options())
	if _, err := l.Settings.Providers.Local.APIKey.Reveal(t.Context()); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", l.Settings, "k", l.Settings.Providers.OpenAI.APIKey)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", l.Settings, "k", l.Settings.Providers.OpenAI.APIKey)
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{log.String(), string(data)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, l.Settings), fmt.Sprintf(verb, *l))
	}
	for _, shown := range shown {
		if strings.Contains(shown, "visible") || !strings.Contains(shown, redacted) {
			t.Errorf("shown: %s", shown)
		}
	}
}
