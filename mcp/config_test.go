package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
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
	servers, warnings, err := ParseFile(".mcp.json", []byte(text))
	if len(servers) != 2 || servers["good"].Args[1] != "x" || servers["remote"].Transport() != TransportHTTP {
		t.Errorf("servers %+v", servers)
	}
	if len(warnings) != 1 || warnings[0] != `.mcp.json:3:90: server good: the key "alwaysAllow" means nothing here` {
		t.Errorf("warnings %q", warnings)
	}
	for _, want := range []string{
		`.mcp.json:5:24: server pigeon: type: unknown transport "carrier-pigeon"; use stdio, http or sse`,
		`.mcp.json:6:14: server empty: there is neither a command nor a url; give one of them`,
		`.mcp.json:7:39: server typed: args: expected an array`,
		`.mcp.json:8:37: server both: url: a stdio server has neither url nor headers`,
		`.mcp.json:9:12: "a b" is no name for a server`,
		`.mcp.json:10:20: server ftp: url: expected an http or https URL`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{
		"{\n  \"mcpServers\": {,}\n}": ".mcp.json:2:18", `{}`: ".mcp.json:1:1: there is no mcpServers", `{"mcpServers": []}`: ".mcp.json:1:16: mcpServers: expected an object",
		`{"mcpServers": {"a": 1}}`: ".mcp.json:1:22: server a: expected an object", ``: ".mcp.json:1:1", `[]`: ".mcp.json:1:1",
		`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`: ".mcp.json:1:40",
	} {
		servers, _, err := ParseFile(".mcp.json", []byte(text))
		if at := (*jsonpos.Error)(nil); !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) || len(servers) > 0 {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestHash(t *testing.T) {
	base := Server{Command: "x", Args: []string{"a"}, Env: map[string]string{"K": "${K}"}}
	same := base
	same.Required, same.CallTimeout, same.DenyTools = true, 5, []string{"t"}
	if base.Hash() != same.Hash() {
		t.Error("what does not say what is started changes the hash")
	}
	for name, other := range map[string]Server{
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
	s := Server{Command: "${A}x", Args: []string{"${B:-two}", "${EMPTY}", "${EMPTY:-e}", "$A", "${", "${A}${A}"}, Env: map[string]string{"K": "v${A}"}}
	got, err := s.Expand(lookup)
	if err != nil || got.Command != "1x" || !slices.Equal(got.Args, []string{"two", "", "e", "$A", "${", "11"}) || got.Env["K"] != "v1" {
		t.Errorf("Expand = %+v, %v", got, err)
	}
	if s.Args[0] != "${B:-two}" || s.Env["K"] != "v${A}" {
		t.Error("Expand changes what it was given")
	}
	if _, err := (Server{URL: "https://${HOST}/"}).Expand(lookup); err == nil || !strings.Contains(err.Error(), "url: the environment has no variable HOST; set it, or write ${HOST:-default}") {
		t.Errorf("a missing variable: %v", err)
	}
	if _, err := (Server{URL: "${A}"}).Expand(lookup); err == nil || !strings.Contains(err.Error(), "expected an http or https URL") {
		t.Errorf("a URL that is none after all: %v", err)
	}
}

func TestRedacted(t *testing.T) {
	s := Server{Command: "x", Env: map[string]string{"API_KEY": "sk-1", "FROM": "${FROM}"}, Headers: map[string]string{"Authorization": "Bearer abc"}, OAuth: OAuth{ClientSecret: "s3"}}
	shown := string(encode(s.Redacted()))
	for _, secret := range []string{"sk-1", "abc", "s3"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s shows in %s", secret, shown)
		}
	}
	if !strings.Contains(shown, "${FROM}") {
		t.Error("the name of a variable does not show")
	}
	if got := s.Secrets(func(string) (string, bool) { return "", true }); !slices.Contains(got, "sk-1") || !slices.Contains(got, "abc") || !slices.Contains(got, "s3") {
		t.Errorf("Secrets = %q", got)
	}
}

func TestMatchStar(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"get_*", "get_x", true}, {"*_x", "a_x", true}, {"a*b*c", "axbyc", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}} {
		if got := matchStar(tt.pattern, tt.name); got != tt.want {
			t.Errorf("matchStar(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add(`{"mcpServers": {"a": {"command": "x", "env": {"K": "v"}}}}`)
	f.Add(`{"mcpServers": {"a": {"url": "http://x", "oauth": {"scopes": ["x"]}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		servers, _, _ := ParseFile("x", []byte(text))
		for name, s := range servers {
			if CheckName(name) != nil || s.Check() != nil {
				t.Errorf("%s: %+v came through", name, s)
			}
		}
	})
}

// nowhere is a transport to nobody.
type nowhere struct{}

func (nowhere) start(context.Context) error          { return nil }
func (nowhere) send(context.Context, outgoing) error { return nil }
func (nowhere) close()                               {}

// FuzzMessages feeds a session with what a server may send, cut anywhere.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"+`[{"id":1,"method":"ping"}]`+"\n"), 3)
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n"), 1000)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		s := newSession()
		s.link, s.notify = nowhere{}, newNotices(nil).take
		s.answer = func(context.Context, string, json.RawMessage) (any, error) { return nil, ErrClosed }
		l := &lines{max: 1 << 10, emit: func(line []byte) { s.receive(nil, line) }, fail: func(error) {}}
		cut = min(max(cut, 0), len(data))
		if _, err := l.Write(data[:cut]); err == nil {
			_, _ = l.Write(data[cut:])
		}
		if len(l.part) > 1<<10 {
			t.Errorf("%d bytes are kept", len(l.part))
		}
		s.close()
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\nretry: 5\ndata:\n\nevent: message\r\ndata: {\r\ndata: }\r\n\r\n: nothing\n\ndata: last"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		at, w := cursor{}, web{maxMessage: 1 << 20}
		if err := w.readEvents(bytes.NewReader(stream), &at, func(event string, data []byte) error {
			if len(data) == 0 || strings.ContainsAny(event+at.id, "\n") {
				t.Errorf("event %q %q with %q", at.id, event, data)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if at.retry < minRetry {
			t.Errorf("it is asked again every %s", at.retry)
		}
	})
}

func FuzzResult(f *testing.F) {
	for _, r := range results {
		f.Add([]byte(r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r CallResult
		if r.decode(data) != nil {
			return
		}
		for i, p := range r.coreResult().Content {
			switch p := p.(type) {
			case model.Text:
				if !utf8.ValidString(p.Text) || strings.ContainsAny(p.Text, "\x1b\x00") {
					t.Errorf("part %d is %q", i, p.Text)
				}
			case model.Image:
				if len(p.Data) == 0 {
					t.Errorf("part %d is an image without data", i)
				}
			}
		}
	})
}

func FuzzCleanJSON(f *testing.F) {
	f.Add(oddSchema)
	f.Add(`{"a":"x\u202ey\udb40\udc41z\\u202e"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return
		}
		clean := cleanJSON([]byte(text))
		if !json.Valid(clean) {
			t.Fatalf("%q became %q", text, clean)
		}
		if again := cleanJSON(clean); string(again) != string(clean) {
			t.Errorf("%q is cleaned to %q and then to %q", text, clean, again)
		}
	})
}
