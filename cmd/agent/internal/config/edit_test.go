package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

func userTarget(t *testing.T, text string) Target {
	t.Helper()
	target := UserFile(t.TempDir())
	if text != "" {
		write(t, target.Path, text)
	}
	return target
}

func textOf(t *testing.T, target Target) string {
	t.Helper()
	data, err := os.ReadFile(target.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSetKeepsTheRest checks that only the given key changes in a file.
func TestSetKeepsTheRest(t *testing.T) {
	tests := []struct{ name, text, key, value, want string }{
		{"no file", "", "agent.maxRounds", "3", "{\n  \"version\": 1,\n  \"agent\": {\n    \"maxRounds\": 3\n  }\n}\n"},
		{"empty object", "{}", "agent.maxRounds", "3", "{\n  \"agent\": {\n    \"maxRounds\": 3\n  }\n}"},
		{"a value", "{\"agent\": {\"maxRounds\": 3, \"maxTurns\": 4}}\n", "agent.maxRounds", "30", "{\"agent\": {\"maxRounds\": 30, \"maxTurns\": 4}}\n"},
		{"on one line", `{"agent":{"maxTurns":4}}`, "agent.maxRounds", "3", `{"agent":{"maxTurns":4, "maxRounds": 3}}`},
		{"a group on one line", `{"version": 1}`, "agent.maxRounds", "3", `{"version": 1, "agent": {"maxRounds": 3}}`},
		{
			"order and tabs", "{\n\t\"retry\": {\n\t\t\"enabled\": false\n\t},\n\n\t\"version\": 1\n}\n", "retry.maxRetries", "2",
			"{\n\t\"retry\": {\n\t\t\"enabled\": false,\n\t\t\"maxRetries\": 2\n\t},\n\n\t\"version\": 1\n}\n",
		},
		{
			"a new group with tabs", "{\n\t\"version\": 1\n}\n", "providers.local.model", "m",
			"{\n\t\"version\": 1,\n\t\"providers\": {\n\t\t\"local\": {\n\t\t\t\"model\": \"m\"\n\t\t}\n\t}\n}\n",
		},
		{"line ends of Windows", "{\r\n  \"version\": 1\r\n}\r\n", "agent.maxRounds", "3", "{\r\n  \"version\": 1,\r\n  \"agent\": {\r\n    \"maxRounds\": 3\r\n  }\r\n}\r\n"},
		{"empty group", "{\n  \"agent\": {}\n}", "agent.maxRounds", "3", "{\n  \"agent\": {\n    \"maxRounds\": 3\n  }\n}"},
		{"braces in text", `{"agent": {"systemPrompt": "a \"}{ b\\"}, "version": 1}`, "agent.maxRounds", "3", `{"agent": {"systemPrompt": "a \"}{ b\\", "maxRounds": 3}, "version": 1}`},
		{"bare text", `{}`, "agent.systemPrompt", `say "hi" & <go>`, "{\n  \"agent\": {\n    \"systemPrompt\": \"say \\\"hi\\\" & <go>\"\n  }\n}"},
		{"a list", `{"permissions": {"deny": ["shell(rm *)"]}}`, "permissions.deny", `["shell(git push *)"]`, `{"permissions": {"deny": ["shell(git push *)"]}}`},
		{"the same again", `{"version":  1}`, "version", "1", `{"version":  1}`},
		{
			"comments", "{\n  // why\n  \"agent\": { // limits\n    \"maxTurns\": 4, // turns\n  },\n}\n", "agent.maxRounds", "3",
			"{\n  // why\n  \"agent\": { // limits\n    \"maxTurns\": 4, // turns\n    \"maxRounds\": 3,\n  },\n}\n",
		},
		{"byte order mark", "\ufeff{\"version\": 1}", "agent.maxRounds", "3", `{"version": 1, "agent": {"maxRounds": 3}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := userTarget(t, tt.text)
			if err := target.Set(t.Context(), tt.key, tt.value); err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, target); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestSetAllOrNone checks that several changes are applied together or not at all.
func TestSetAllOrNone(t *testing.T) {
	const old = `{"version": 1}`
	target := userTarget(t, old)
	err := target.SetAll(t.Context(), []Change{{"agent.maxRounds", "3"}, {"agent.maxTurns", "many"}})
	if err == nil || textOf(t, target) != old {
		t.Errorf("%v, the file contains %s", err, textOf(t, target))
	}
	if err := target.SetAll(t.Context(), []Change{{"agent.maxRounds", "3"}, {"providers.default", "openai"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := textOf(t, target), `{"version": 1, "agent": {"maxRounds": 3}, "providers": {"default": "openai"}}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestSetRefuses(t *testing.T) {
	const old = `{"version": 1, "agent": {"maxRounds": 3}}`
	tests := []struct {
		name, text, key, value string
		project                bool
		want                   string
		byCommand              bool
	}{
		{"unknown key", old, "agent.maxRound", "3", false, `config set: unknown key "agent.maxRound"; did you mean "agent.maxRounds"?`, true},
		{"group", old, "agent", "{}", false, "it is a group; set a key in it, such as agent.systemPrompt", true},
		{"type", old, "agent.maxRounds", "many", false, "/agent/maxRounds: expected a whole number, found a string", true},
		{"bounds", old, "agent.maxRounds", "-1", false, "agent.maxRounds: -1 is too small; the minimum is 0", true},
		{"enum", old, "permissions.mode", "yolo", false, `invalid value "yolo": expected one of plan, read-only, default`, true},
		{"url", old, "providers.local.baseUrl", "localhost", false, "expected an http or https URL", true},
		{"rule", old, "permissions.allow", `["shell("]`, false, `permission rule "shell(", column 7: expected )`, true},
		{"key", old, "providers.openai.apiKey", "[redacted]", false, "this is the placeholder", true},
		{"user's key in a project", old, "providers.local.baseUrl", "http://localhost/v1", true, "is not allowed in a project's settings", true},
		{"wider mode in a project", old, "permissions.mode", "bypass", true, "is not allowed in a project's settings", true},
		{"broken file", "{\n  \"agnt\": {}}", "agent.maxRounds", "3", false, `settings.json:2:3: unknown key "agnt" at the top level; did you mean "agent"?`, false},
		{"newer file", `{"version": 2}`, "agent.maxRounds", "3", false, "settings.json:1:13: unsupported settings version 2", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := userTarget(t, tt.text)
			target.Project = tt.project
			err := target.Set(t.Context(), tt.key, tt.value)
			e := (*Error)(nil)
			if !errors.As(err, &e) {
				if at := (*jsonpos.Error)(nil); !errors.As(err, &at) {
					t.Fatalf("the error is %T: %v", err, err)
				}
				e = &Error{}
			}
			if !strings.Contains(err.Error(), tt.want) || e.CommandLine != tt.byCommand {
				t.Errorf("by the command line: %t, %v", e.CommandLine, err)
			}
			if got := textOf(t, target); got != tt.text {
				t.Errorf("the file now contains\n%s", got)
			}
		})
	}
}

func TestUnset(t *testing.T) {
	tests := []struct{ name, text, key, want string }{
		{"the last", `{"version": 1, "agent": {"maxTurns": 1, "maxRounds": 3}}`, "agent.maxRounds", `{"version": 1, "agent": {"maxTurns": 1}}`},
		{"the first", "{\n  \"version\": 1,\n  \"agent\": {}\n}", "version", "{\n  \"agent\": {}\n}"},
		{"one in the middle", "{\n  \"version\": 1,\n  \"retry\": {\"enabled\": true},\n  \"agent\": {}\n}", "retry.enabled", "{\n  \"version\": 1,\n  \"agent\": {}\n}"},
		{"empty groups go", `{"version": 1, "providers": {"local": {"model": "m"}}}`, "providers.local.model", `{"version": 1}`},
		{"all", `{"agent": {"maxRounds": 3}}`, "agent.maxRounds", `{}`},
		{
			"comments stay", "{\n  // limits\n  \"agent\": {\n    // rounds\n    \"maxRounds\": 3, // three\n  },\n}", "agent.maxRounds",
			"{\n  // limits\n  \"agent\": {\n    // rounds\n  },\n}",
		},
		{"not there", `{"agent": {}}`, "agent.maxRounds", `{"agent": {}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := userTarget(t, tt.text)
			removed, err := target.Unset(t.Context(), tt.key)
			if err != nil || removed != (tt.name != "not there") {
				t.Fatalf("%t, %v", removed, err)
			}
			if got := textOf(t, target); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	target := userTarget(t, "")
	if removed, err := target.Unset(t.Context(), "agent.maxRounds"); removed || err != nil {
		t.Errorf("without a file: %t, %v", removed, err)
	}
	if _, err := os.Stat(target.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	if _, err := target.Unset(t.Context(), "agent.nope"); err == nil || !strings.Contains(err.Error(), "unknown key") {
		t.Errorf("got %v", err)
	}
}

func TestAddDenyRule(t *testing.T) {
	target := UserFile(t.TempDir())
	for range 2 {
		if err := AddDenyRule(target.Path, "shell(rm *)"); err != nil {
			t.Fatal(err)
		}
	}
	if err := AddAllowRule(target.Path, "shell(ls)"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(target.Path)
	if err != nil || strings.Count(string(data), "rm *") != 1 || !strings.Contains(string(data), `"deny"`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestAddAllowRule(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no file", "", "{\n  \"version\": 1,\n  \"permissions\": {\n    \"allow\": [\"shell(go test *)\"]\n  }\n}\n"},
		{"no list", `{"permissions": {"mode": "default"}}`, `{"permissions": {"mode": "default", "allow": ["shell(go test *)"]}}`},
		{"null", `{"permissions": {"allow": null}}`, `{"permissions": {"allow": ["shell(go test *)"]}}`},
		{"empty list", `{"permissions": {"allow": []}}`, `{"permissions": {"allow": ["shell(go test *)"]}}`},
		{"a list", `{"permissions": {"allow": ["fs-read(~/x)"]}}`, `{"permissions": {"allow": ["fs-read(~/x)", "shell(go test *)"]}}`},
		{
			"a list on lines", "{\n  \"permissions\": {\n    \"allow\": [\n      \"read_file\"\n    ]\n  }\n}",
			"{\n  \"permissions\": {\n    \"allow\": [\n      \"read_file\",\n      \"shell(go test *)\"\n    ]\n  }\n}",
		},
		{
			"comments", "{\n  \"permissions\": {\n    \"allow\": [\n      \"read_file\" // always\n      // more?\n    ]\n  }\n}",
			"{\n  \"permissions\": {\n    \"allow\": [\n      \"read_file\", // always\n      \"shell(go test *)\"\n      // more?\n    ]\n  }\n}",
		},
		{"already there", `{"permissions": {"allow": [ "shell(go test *)" ]}}`, `{"permissions": {"allow": [ "shell(go test *)" ]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := userTarget(t, tt.text)
			if err := AddAllowRule(target.Path, "shell(go test *)"); err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, target); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	target := userTarget(t, `{"version": 1}`)
	if err := AddAllowRule(target.Path, "shell("); err == nil || !strings.Contains(err.Error(), "column 7: expected )") {
		t.Errorf("a broken rule: %v", err)
	}
	if got := textOf(t, target); got != `{"version": 1}` {
		t.Errorf("the file now contains\n%s", got)
	}
	if runtime.GOOS != "windows" {
		target := userTarget(t, "")
		if err := AddAllowRule(target.Path, "read_file"); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(target.Path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
}

// TestAddAllowRulesAtOnce checks that concurrent sessions do not lose rules.
func TestAddAllowRulesAtOnce(t *testing.T) {
	target := userTarget(t, `{"version": 1}`)
	rules := []string{"shell(a *)", "shell(b *)", "shell(c *)", "shell(d *)"}
	var all sync.WaitGroup
	for _, r := range rules {
		all.Go(func() {
			if err := AddAllowRule(target.Path, r); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var in Settings
	if err := json.Unmarshal([]byte(textOf(t, target)), &in); err != nil || len(in.Permissions.Allow) != len(rules) {
		t.Errorf("%v, %q", err, in.Permissions.Allow)
	}
}

func TestTargets(t *testing.T) {
	home, dir := filepath.Join("h", ".agent"), "project"
	if got := UserFile(home); got.Path != filepath.Join(home, "settings.json") || got.Project {
		t.Errorf("got %+v", got)
	}
	if got := ProjectFile(home, dir); got.Path != filepath.Join(dir, ".agent", "settings.json") || !got.Project || got.Home != home {
		t.Errorf("got %+v", got)
	}
}
