package mcp_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp"
)

func TestParseFile(t *testing.T) {
	const text = `{
  "mcpServers": {
    "good": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${A}"}, "alwaysAllow": ["x"]},
    "remote": {"type": "streamable-http", "url": "https://example.com/mcp"},
    "pigeon": {"type": "carrier-pigeon", "url": "https://example.com"},
    "empty": {},
    "typed": {"command": "x", "args": "one"},
    "both": {"command": "x", "url": "https://example.com"},
    "a b": {"command": "x"},
    "ftp": {"url": "ftp://example.com"}
  },
  "inputs": []
}`
	servers, warnings, err := mcp.ParseFile(".mcp.json", []byte(text))
	if len(servers) != 2 || servers["good"].Args[1] != "x" || servers["remote"].Transport() != mcp.TransportHTTP {
		t.Errorf("servers %+v", servers)
	}
	if len(warnings) != 1 || warnings[0] != `.mcp.json:3:90: server good: unknown key "alwaysAllow"` {
		t.Errorf("warnings %q", warnings)
	}
	for _, want := range []string{
		`.mcp.json:5:24: server pigeon: type: unknown transport "carrier-pigeon"; use stdio, http or sse`,
		`.mcp.json:6:14: server empty: missing command or url; set one of them`,
		`.mcp.json:7:39: server typed: args: expected an array`,
		`.mcp.json:8:37: server both: url: a stdio server must not have a url or headers`,
		`.mcp.json:9:12: invalid server name "a b"`,
		`.mcp.json:10:20: server ftp: url: expected an http or https URL`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{
		"{\n  \"mcpServers\": {,}\n}": ".mcp.json:2:18", `{}`: ".mcp.json:1:1: missing mcpServers", `{"mcpServers": []}`: ".mcp.json:1:16: mcpServers: expected an object",
		`{"mcpServers": {"a": 1}}`: ".mcp.json:1:22: server a: expected an object", ``: ".mcp.json:1:1", `[]`: ".mcp.json:1:1",
		`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`: ".mcp.json:1:40",
	} {
		servers, _, err := mcp.ParseFile(".mcp.json", []byte(text))
		if at := (*jsonpos.Error)(nil); !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) || len(servers) > 0 {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestHash(t *testing.T) {
	base := mcp.Server{Command: "x", Args: []string{"a"}, Env: map[string]string{"K": "${K}"}}
	same := base
	same.Required, same.CallTimeout, same.DenyTools = true, 5, []string{"t"}
	if base.Hash() != same.Hash() {
		t.Error("what does not say what is started changes the hash")
	}
	for name, other := range map[string]mcp.Server{
		"command": {Command: "y", Args: base.Args, Env: base.Env}, "args": {Command: "x", Args: []string{"a", ""}, Env: base.Env},
		"split args": {Command: "x", Args: []string{"a b"}, Env: base.Env}, "env": {Command: "x", Args: base.Args, Env: map[string]string{"K": "v"}},
		"cwd": {Command: "x", Args: base.Args, Env: base.Env, Cwd: "/"}, "kind": {URL: "x"},
	} {
		if other.Hash() == base.Hash() {
			t.Errorf("another %s has the same hash", name)
		}
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	s := mcp.Server{Command: "${A}x", Args: []string{"${B:-two}", "${EMPTY}", "${EMPTY:-e}", "$A", "${", "${A}${A}"}, Env: map[string]string{"K": "v${A}"}}
	got, err := s.Expand(t.Context(), lookup, nil)
	if err != nil || got.Command != "1x" || !slices.Equal(got.Args, []string{"two", "", "e", "$A", "${", "11"}) || got.Env["K"] != "v1" {
		t.Errorf("Expand = %+v, %v", got, err)
	}
	if s.Args[0] != "${B:-two}" || s.Env["K"] != "v${A}" {
		t.Error("Expand changes what it was given")
	}
	if _, err := (mcp.Server{URL: "https://${HOST}/"}).Expand(t.Context(), lookup, nil); err == nil || !strings.Contains(err.Error(), "url: environment variable HOST is not set; set it, or use ${HOST:-default}") {
		t.Errorf("a missing variable: %v", err)
	}
	if _, err := (mcp.Server{URL: "${A}"}).Expand(t.Context(), lookup, nil); err == nil || !strings.Contains(err.Error(), "expected an http or https URL") {
		t.Errorf("an invalid URL after expansion: %v", err)
	}
}

// TestExpandCommands: commands run for values of env, headers and the client
// secret, and nowhere else.
func TestExpandCommands(t *testing.T) {
	s := mcp.Server{
		Command: "sh", Args: []string{"-c", "echo $(date)"},
		Env:   map[string]string{"A": `$(pass "a)b" '(' "$(inner)")`, "B": "$$(plain)", "C": "x $( one )${V}$(one)", "D": "$HOME $"},
		OAuth: mcp.OAuth{ClientSecret: "$(secret)"},
	}
	var ran []string
	run := func(_ context.Context, line string) (string, error) {
		ran = append(ran, line)
		return "<" + line + "$(no)${V}>", nil
	}
	got, err := s.Expand(t.Context(), func(string) (string, bool) { return "$(v)", true }, run)
	if err != nil {
		t.Fatal(err)
	}
	want := s
	want.Env = map[string]string{"A": `<pass "a)b" '(' "$(inner)"$(no)${V}>`, "B": "$(plain)", "C": "x <one$(no)${V}>$(v)<one$(no)${V}>", "D": "$HOME $"}
	want.OAuth.ClientSecret = "<secret$(no)${V}>"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	slices.Sort(ran)
	if commands := s.Commands(); !slices.Equal(commands, slices.Compact(ran)) || len(commands) != 3 {
		t.Errorf("Commands() = %q, ran %q", commands, ran)
	}
	for name, text := range map[string]string{"no end": "$(x", "quoted end": "$(x ')'", "escaped end": `$(x \)`} {
		err := mcp.Server{Command: "x", Env: map[string]string{"K": text}}.Check()
		if err == nil || !strings.Contains(err.Error(), "env.K: $( without ); write $$( for a plain $(") {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := s
	other.OAuth.ClientSecret = "$(another)"
	if other.Hash() == s.Hash() {
		t.Error("another command for the client secret has the same hash")
	}
	remote := mcp.Server{URL: "https://x/$(url)", Headers: map[string]string{"Authorization": "Bearer $(token)"}}
	if got, err := remote.Expand(t.Context(), nil, run); err != nil || got.Headers["Authorization"] != "Bearer <token$(no)${V}>" || got.URL != remote.URL {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := remote.Expand(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "$(token): commands in settings are not run here") {
		t.Errorf("without a way to run commands: %v", err)
	}
}

func TestRedacted(t *testing.T) {
	s := mcp.Server{Command: "x", Env: map[string]string{"API_KEY": "sk-1", "FROM": "${FROM}", "CMD": "$(show)", "MIX": "$(a)hidden(b)"}, Headers: map[string]string{"Authorization": "Bearer abc"}, OAuth: mcp.OAuth{ClientSecret: "s3"}}
	shown := string(jsonrpc.Encode(s.Redacted()))
	for _, secret := range []string{"sk-1", "abc", "s3", "hidden"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s shows in %s", secret, shown)
		}
	}
	if !strings.Contains(shown, "${FROM}") || !strings.Contains(shown, "$(show)") {
		t.Error("the name of a variable does not show")
	}
	if got := s.Secrets(func(string) (string, bool) { return "", true }); !slices.Contains(got, "sk-1") || !slices.Contains(got, "abc") || !slices.Contains(got, "s3") {
		t.Errorf("Secrets = %q", got)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add(`{"mcpServers": {"a": {"command": "x", "env": {"K": "v"}}}}`)
	f.Add(`{"mcpServers": {"a": {"url": "http://x", "oauth": {"scopes": ["x"]}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		servers, _, _ := mcp.ParseFile("x", []byte(text))
		for name, s := range servers {
			if mcp.CheckName(name) != nil || s.Check() != nil {
				t.Errorf("%s: %+v came through", name, s)
			}
		}
	})
}
