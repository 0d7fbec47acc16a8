package bundles_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/plugins/bundles"
)

func TestFill(t *testing.T) {
	t.Parallel()
	values := bundles.Values{
		Root: "/plug", Data: "/data", Workspace: "/work",
		Settings: map[string]string{"team": "core ${CLAUDE_PLUGIN_DATA}"}, Secrets: map[string]string{"token": "s3cret$(id)"},
	}
	environ := func(name string) (string, bool) { return "home", name == "NAME" }
	manifest := `{"name": "p", "userConfig": {"team": {"type": "string"}, "token": {"type": "string", "sensitive": true}}, "mcpServers": {"a": `
	for name, tt := range map[string]struct{ server, want string }{
		"in all places":       {`{"command": "${CLAUDE_PLUGIN_ROOT}/bin", "args": ["${CLAUDE_PROJECT_DIR}", "${user_config.token}"], "env": {"A": "${NAME}", "B": "${NONE:-x}"}}`, "/plug/bin /work s3cret$(id) A=home B=x"},
		"not twice":           {`{"command": "x", "args": ["${user_config.team}"]}`, "x core ${CLAUDE_PLUGIN_DATA}"},
		"no commands":         {`{"command": "x", "env": {"A": "$(id)"}}`, "x A=$(id)"},
		"a file of it":        {`{"command": "./run.sh"}`, "/plug/run.sh"},
		"a missing variable":  {`{"command": "x", "env": {"A": "${OTHER}"}}`, "needs the environment variable OTHER"},
		"a missing setting":   {`{"command": "x", "args": ["${user_config.other}"]}`, "agent plugins config p"},
		"of another program":  {`{"command": "x", "args": ["${extensionPath}"]}`, "needs the environment variable extensionPath"},
		"in headers":          {`{"url": "https://x.example/${user_config.team}", "headers": {"Authorization": "Bearer ${user_config.token}"}}`, "https://x.example/core ${CLAUDE_PLUGIN_DATA} Authorization=Bearer s3cret$(id)"},
		"grants of a sandbox": {`{"command": "x", "sandbox": {"writable": ["/"], "hosts": ["*"]}, "sampling": {"enabled": true}}`, "x"},
	} {
		b, err := bundles.Read(folder(t, map[string]string{".claude-plugin/plugin.json": manifest + tt.server + "}}"}), "", nil)
		if err != nil || len(b.Servers) != 1 {
			t.Errorf("%s: %v, %v", name, b.Unusable, err)
			continue
		}
		s, err := b.Fill(b.Servers[0], values, environ)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			parts := append([]string{s.Command + s.URL}, s.Args...)
			for _, key := range []string{"A", "B"} {
				if value, ok := s.Env[key]; ok {
					parts = append(parts, key+"="+value)
				}
			}
			for key, value := range s.Headers {
				parts = append(parts, key+"="+value)
			}
			if s.Sandbox != nil || s.Sampling.Enabled {
				parts = append(parts, "granted itself rights")
			}
			if s.Command != "" && s.Env["CLAUDE_PLUGIN_OPTION_TOKEN"] != "s3cret$(id)" {
				t.Errorf("%s: the setting is not in the environment: %v", name, s.Env)
			}
			got = strings.Join(parts, " ")
		}
		if err == nil && got != tt.want || err != nil && !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	b, err := bundles.Read(folder(t, map[string]string{"SKILL.md": skillOf("x")}), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := b.FillText("${CLAUDE_PLUGIN_ROOT} ${user_config.team} ${user_config.token} ${NAME} $1", values)
	if want := "/plug core ${CLAUDE_PLUGIN_DATA} ${user_config.token} ${NAME} $1"; text != want {
		t.Errorf("text for the model %q, want %q", text, want)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	low, high := 1.0, 5.0
	for _, tt := range []struct {
		s     bundles.Setting
		value string
		ok    bool
	}{
		{bundles.Setting{Type: "string"}, "x", true},
		{bundles.Setting{Type: "string"}, "a\x00", false},
		{bundles.Setting{Type: "number", Min: &low, Max: &high}, "3", true},
		{bundles.Setting{Type: "number", Min: &low}, "0", false},
		{bundles.Setting{Type: "number", Max: &high}, "6", false},
		{bundles.Setting{Type: "number"}, "many", false},
		{bundles.Setting{Type: "boolean"}, "yes", false},
		{bundles.Setting{Type: "boolean"}, "true", true},
		{bundles.Setting{Type: "directory"}, "relative", false},
	} {
		if err := tt.s.Check(tt.value); (err == nil) != tt.ok {
			t.Errorf("%+v with %q: %v", tt.s, tt.value, err)
		}
	}
}
