// White-box tests: addresses that a test cannot connect to, and parsers that are
// fuzzed faster without a server around them.

package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// TestDialGuard uses addresses that a test cannot connect to.
func TestDialGuard(t *testing.T) {
	g := dialGuard{host: "rebound.example"}
	for addr, want := range map[string]bool{
		"127.0.0.1:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false, "169.254.169.254:80": false, "0.0.0.0:80": false, "[fe80::1]:80": false,
		"10.1.2.3:80": true, "93.184.216.34:443": true, "nonsense": false,
	} {
		if err := g.check(addr); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("agent-mcp/1 known=1 resources=1 tools=2\n3 17 1 1 a\n0 0 0 1 b\none{\"type\":\"object\"}{\"version\":1,\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}]}")
	f.Add("agent-mcp/1 known=1 resources=0 tools=1\n-1 9223372036854775807 1 1 a\n{}")
	f.Fuzz(func(t *testing.T, data string) {
		var r record
		if r.unmarshal(data) != nil {
			return
		}
		if s, _, err := readSummary(data); err != nil || len(s.tools) != len(r.Tools) {
			t.Errorf("%d tools, %d in the summary, %v", len(r.Tools), len(s.tools), err)
		}
	})
}

func FuzzCleanJSON(f *testing.F) {
	f.Add(`{"$defs":{"a <b> & c":{"type":["string","null"],"maximum":9007199254740993,"multipleOf":1.10}}}`)
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

// TestJoinersSurvive: joiners of scripts and emojis stay, and what turns text around
// is escaped in errors.
func TestJoinersSurvive(t *testing.T) {
	const joined = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001F469\u200d\U0001F4BB"
	if got := cleanText(joined + "\u202e"); got != joined {
		t.Errorf("%q", got)
	}
	_, err := resultOf(jsonrpc.Message{Error: &jsonrpc.Error{Code: 1, Message: "no \u202efile " + joined}})
	if err == nil || !strings.Contains(err.Error(), `no \u{202e}file `+joined) {
		t.Errorf("%v", err)
	}
}
