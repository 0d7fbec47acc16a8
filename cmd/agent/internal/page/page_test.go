package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsLeak) }

// natsLeak is a goroutine that nats.go leaves behind if an object is stored before the
// goroutine has begun.
var natsLeak = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")

// memory is a Source of sessions in memory.
type memory map[string][]event.Event

func (m memory) Stat(id string) (store.Summary, error) {
	if m[id] == nil {
		return store.Summary{}, fmt.Errorf("session %s: %w", id, os.ErrNotExist)
	}
	about := store.Summary{ID: id, Cwd: "/w", Time: began}
	for _, e := range m[id] {
		if u, ok := e.Body.(event.User); ok {
			about.Text = u.Content.Text()
			break
		}
	}
	return about, nil
}

func (m memory) Read(_ context.Context, id string, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range m[id] {
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

func (memory) Running(string) bool { return false }

// Image returns an image of one pixel for the hash "pixel".
func (memory) Image(_ context.Context, _, hash string) ([]byte, error) {
	switch hash {
	case "pixel":
		return base64.StdEncoding.DecodeString(pixel)
	case "script":
		return []byte("<script>window.hacked=1</script>"), nil
	case "large":
		return append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, maxPicture)...), nil
	}
	return nil, os.ErrNotExist
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// of is an event of a call.
type of struct {
	event.Body
	call string
}

// events numbers bodies.
func events(bodies ...event.Body) []event.Event {
	var list []event.Event
	for i, b := range bodies {
		e := event.Event{V: 1, Seq: event.Seq(i + 1), Time: began.Add(time.Duration(i) * 100 * time.Millisecond), Session: "s", Body: b}
		if c, ok := b.(of); ok {
			e.Call, e.Body = c.call, c.Body
		}
		e.Required = event.Rebuilds(e.Body)
		list = append(list, e)
	}
	return list
}

func cents(_, name string, u model.Usage) (float64, bool) {
	return float64(u.Total()) / 1e4, name != "unpriced"
}

func export(t *testing.T, m memory) string {
	t.Helper()
	var b bytes.Buffer
	if err := Export(t.Context(), &b, m, "s", cents, time.UTC); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// everyType are the events of core/event's golden file: each type, with all members.
func everyType(t *testing.T) []event.Event {
	t.Helper()
	data, err := os.ReadFile("../../../../core/event/testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var list []event.Event
	for i, l := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var e event.Event
		if err := json.Unmarshal(l, &e); err != nil {
			t.Fatal(err)
		}
		e.Seq, e.Time = event.Seq(i+1), began.Add(time.Duration(i)*time.Second)
		list = append(list, e)
	}
	return append(list, event.Event{V: 1, Seq: event.Seq(len(list) + 1), Time: began, Body: event.Unknown{Kind: "novel", Raw: json.RawMessage(`{"type":"novel","n":"<b>"}`)}})
}

// workday is a session as they are: a failing test, an edit that needs approval, a subagent.
func workday() []event.Event {
	usage := model.Usage{Input: 4000, CachedInput: 3000, Output: 150}
	calls := func(text string, calls ...model.Part) event.Message {
		return event.Message{Content: append(model.TextParts(text), calls...), Usage: usage, Stop: model.StopToolCalls, Provider: "local", Model: "m"}
	}
	asks := event.LLMStart{Provider: "local", Model: "m", Messages: 1, Tools: 2}
	answers := event.LLMEnd{Provider: "local", Model: "m", Usage: usage, LatencyMS: 90, FirstMS: 40, Stop: model.StopToolCalls}
	test, edit := `{"command":"go test ./..."}`, `{"file_path":"/w/a.go","old_string":"teh","new_string":"the"}`
	access := []event.Access{{Scope: "fs-write", Resource: "/w/a.go"}}
	return events(
		event.SessionStart{Cwd: "/w", Provider: "local", Model: "m"},
		event.User{Content: model.Parts{model.Text{Text: "Fix <it>"}, model.Text{Text: "<context name=\"skill\">Read first.</context>"}}},
		event.Prompt{Provider: "local", Model: "m", Text: "You are a coding agent."},
		asks, calls("I run the **tests**.", model.ToolCall{ID: "c1", Name: "shell", Args: test}), answers,
		of{event.ToolUse{Name: "shell", Source: "builtin", Args: test}, "c1"},
		of{event.Permission{Tool: "shell", Decision: "allow", Decider: "policy", Rule: "shell(go test *)", Source: "/w/settings.json"}, "c1"},
		of{event.ToolResult{Name: "shell", Content: model.TextParts("FAIL: 1 test failed"), DurationMS: 100, Structured: json.RawMessage(`{"exitCode":1}`), Meta: event.SandboxMeta("namespace")}, "c1"},
		asks, calls("", model.ToolCall{ID: "c2", Name: "edit_file", Args: edit}), answers,
		of{event.ToolUse{Name: "edit_file", Source: "builtin", Args: edit}, "c2"},
		of{event.Question{QID: "q1", Kind: "permission", Tool: "edit_file", Title: "Edit a.go?", Detail: "mode default asks", Accesses: access}, "c2"},
		of{event.Answer{QID: "q1", Choice: "always", Rules: []string{"fs-write(/w/**)"}}, "c2"},
		of{event.Permission{Tool: "edit_file", Decision: "allow", Decider: "person", Choice: "always", Rules: []string{"fs-write(/w/**)"}, Accesses: access}, "c2"},
		of{event.FilesChanged{Root: "/w", Files: []event.FileChange{{Path: "a.go", Kind: "modify", Added: 1, Removed: 1, Diff: "--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-teh\n+the\n"}}}, "c2"},
		of{event.ToolResult{Name: "edit_file", Content: model.TextParts("edited"), DurationMS: 300}, "c2"},
		event.SubagentStart{Name: "review", Path: []string{"root", "review"}, Child: "child", Kind: "reviewer", Model: "m", Input: "Look at a.go"},
		event.SubagentEnd{Name: "review", Child: "child", Outcome: "done", Text: "It is fine.", Usage: usage},
		asks, calls("", model.ToolCall{ID: "c1", Name: "shell", Args: test}), answers,
		of{event.ToolUse{Name: "shell", Source: "builtin", Args: test}, "c1"},
		of{event.ToolResult{Name: "shell", Content: model.TextParts("ok"), DurationMS: 100}, "c1"},
		event.Warning{Code: "LIMIT", Message: "near the limit"},
		asks, event.Message{Content: model.TextParts("It was a typo: see [the page](https://go.dev/).\n\n- [x] done\n\n| a | b |\n|---|--:|\n| 1 | 2 |"), Usage: usage, Stop: model.StopEnd, Model: "unpriced"},
		event.LLMEnd{Provider: "local", Model: "unpriced", Usage: usage, LatencyMS: 90},
		event.Idle{State: "idle", Stop: "done"}, event.SessionEnd{Reason: "closed"},
	)
}

// attacks are texts that try to leave their place.
var attacks = []string{
	`<script>window.hacked=1</script>`, `</script><script>window.hacked=1</script>`, `"><img src=x onerror="window.hacked=1">`,
	`'"--></style></textarea></title></template><svg onload=window.hacked=1>`, `<!--`, `<![CDATA[`, `<base href="https://evil.example/">`,
	"\x1b[31mred\x1b[0m\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "user\u202etxt.exe\u2066\u200b\x00\x07", "broken \xff\xfe\xed\xa0\x80 bytes",
	`{{.}} ${window.hacked=1} {{define "x"}}`, "[click](javascript:window.hacked=1)", "[click](jAvAsCrIpT&colon;window.hacked=1)", "<javascript:alert(1)>", "[a](data:text/html,<script>1</script>)",
	"![pixel](https://evil.example/pixel.png)", "![x](\"onerror=window.hacked=1)", "[x](//evil.example)", "[y]: javascript:window.hacked=1\n\n[y]", "[n](https://user:secret@evil.example)",
	"<div style='position:fixed;inset:0'>over</div>", "<div\nonclick=1>", "`</code><script>window.hacked=1</script>`", "```\"onload=x\n</code></pre><script>window.hacked=1</script>\n```",
	"<https://x.example/\"onclick=window.hacked=1>", "|<script>|\n|---|\n|<img src=x onerror=window.hacked=1>|", "&lt;script&gt;", "# <h1 id=conversation>", "<a id=items name=status>clobber</a>", "<meta http-equiv=refresh content=0>",
}

// hostile is a session in which every text of every event attacks.
func hostile() []event.Event {
	var bodies []event.Body
	for i, a := range attacks {
		id := fmt.Sprintf("x%d %s", i, a)
		parts := model.TextParts(a)
		bodies = append(bodies,
			event.User{Content: parts}, event.Prompt{Text: a, Model: a}, event.Steering{Source: a, Content: parts},
			event.Message{Content: model.Parts{model.Text{Text: a}, model.Reasoning{Text: a}, model.ToolCall{ID: id, Name: a, Args: a}}, Partial: i%2 == 0},
			of{event.ToolUse{Name: a, Source: a, Args: a}, id},
			of{event.Question{QID: id, Kind: "permission", Title: a, Detail: a, URL: a, Tool: a}, id},
			of{event.Answer{QID: id, Choice: a, Reason: a, Rules: []string{a}}, id},
			of{event.Permission{Tool: a, Decision: a, Decider: a, Rule: a, Source: a, Reason: a, Choice: a, Rules: []string{a}, Accesses: []event.Access{{Scope: a, Resource: a}}}, id},
			of{event.FilesChanged{Root: a, Files: []event.FileChange{{Path: a, From: a, Kind: a, Mode: a, Diff: "+" + a}}, Unrecorded: []event.Unrecorded{{Path: a, Reason: a}}}, id},
			of{event.ToolResult{Name: a, Code: a, IsError: true, Content: parts, Output: &event.Output{Path: a, Bytes: 5}, Meta: event.SandboxMeta(a)}, id},
			event.LLMStart{Provider: a, Model: a}, event.LLMEnd{Provider: a, Model: a, Error: a},
			event.SubagentStart{Name: a, Kind: a, Model: a, Input: a, Child: a}, event.SubagentEnd{Name: a, Outcome: a, Error: a, Text: a, Child: a},
			event.Compacted{Content: parts}, event.Warning{Message: a}, event.Error{Code: a, Message: a}, event.SkillActivated{Name: a, By: a, Trigger: a}, event.SkillsListed{Names: []string{a}},
			event.SettingChanged{Setting: a, Value: a}, event.Cancelled{Reason: a}, event.Host{Name: a, Data: json.RawMessage(a)}, event.Unknown{Kind: a, Raw: json.RawMessage(a)}, event.SessionEnd{Reason: a},
		)
	}
	bodies = append(bodies, event.Message{Content: model.TextParts("A [good link](https://example.com/?a=1&b=2).")},
		of{event.ToolUse{Name: "shell", Args: `{"deep":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`}, "deep"},
		of{event.ToolResult{Name: "shell", Content: model.TextParts(strings.Repeat("10 MB of output </pre>\n", 10<<20/23))}, "deep"},
		event.Message{Content: model.TextParts(strings.Repeat("> ", 20_000) + "deep")},
		event.Message{Content: model.TextParts(strings.Repeat("- ", 20_000) + "deep")},
		event.Message{Content: model.TextParts(strings.Repeat("[", 30_000) + strings.Repeat("*a_ ", 10_000))})
	return events(bodies...)
}

// longSession is a session with so many events, all rounds of one call.
func longSession(n int) []event.Event {
	bodies := []event.Body{event.SessionStart{Cwd: "/w", Provider: "local", Model: "m"}, event.User{Content: model.TextParts("Work long")}}
	for i := 0; len(bodies) < n; i++ {
		id := fmt.Sprintf("c%d", i)
		args := fmt.Sprintf(`{"command":"go test ./pkg%d"}`, i)
		usage := model.Usage{Input: 1000 + 10*i, CachedInput: 900, Output: 50}
		bodies = append(bodies, event.LLMStart{Provider: "local", Model: "m"}, event.MessageStart{},
			event.Message{Content: model.Parts{model.Text{Text: fmt.Sprintf("Step %d: I run the **tests** of `pkg%d` next, since they cover what I changed.", i, i)}, model.ToolCall{ID: id, Name: "shell", Args: args}}},
			event.LLMEnd{Provider: "local", Model: "m", Usage: usage, LatencyMS: 50},
			of{event.ToolUse{Name: "shell", Source: "builtin", Args: args}, id},
			of{event.Permission{Tool: "shell", Decision: "allow", Decider: "policy", Rule: "shell(go test *)"}, id},
			of{event.ToolResult{Name: "shell", Content: model.TextParts(strings.Repeat("ok  \texample.org/pkg\t0.01s\n", 20)), DurationMS: 60}, id})
	}
	return events(bodies[:n]...)
}

// TestGolden compares the content of a page of a session as they are, with its subagent.
func TestGolden(t *testing.T) {
	t.Parallel()
	html := export(t, memory{"s": workday(), "child": events(event.User{Content: model.TextParts("Look at a.go")}, event.Message{Content: model.TextParts("It is fine.")})})
	_, html, _ = strings.Cut(html, "<body>")
	html, _, _ = strings.Cut(html, "<script>")
	goldentest.Check(t, "testdata/workday.html", []byte(html))
}

// TestEveryType checks that each type of event is on the page, or that nothing of it is
// missing there.
func TestEveryType(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]bool{ // in the summary, the timeline or another event
		"llm_start": true, "llm_end": true, "idle": true, "queued": true, "init": true, "result": true, "answer": true, "message_start": true,
		"message_delta": true, "reasoning_delta": true, "tool_output_delta": true, "tool_progress": true,
	}
	for _, e := range everyType(t) {
		kind := e.Body.Type()
		shown := strings.Contains(export(t, memory{"s": {e}}), "<article")
		if shown == elsewhere[kind] {
			t.Errorf("%s: shown %t, want %t", kind, shown, !elsewhere[kind])
		}
	}
}

// TestWeight checks what a page has besides the content.
func TestWeight(t *testing.T) {
	t.Parallel()
	if n := len(export(t, memory{"s": events(event.SessionStart{})})); n > 150_000/4 {
		t.Errorf("a page without content has %d bytes", n)
	}
}

// TestHostileText looks for what must never be in a page; TestHostileInBrowser does the rest.
func TestHostileText(t *testing.T) {
	t.Parallel()
	html := export(t, memory{"s": hostile()})
	if n := strings.Count(html, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for _, bad := range []string{"\x1b", "\u202e", "\u2066", "\x00", "ZgotmplZ", `href="javascript`, `href="jAvAsCrIpT`, `href="data:`, "<img", "<base", "evil.example\">"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, want := range []string{`user\u202etxt.exe`, `<a rel="noopener noreferrer nofollow" href="https://example.com/?a=1&amp;b=2">`, "10.4 MB more", "[image: pixel https://evil.example/pixel.png]"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(html) > 4<<20 {
		t.Errorf("the page has %d bytes", len(html))
	}
}

// broken is a Source whose sessions cannot be read to their end.
type broken struct{ memory }

func (b broken) Read(ctx context.Context, id string, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e := range b.memory.Read(ctx, id, after) {
			if !yield(e, nil) {
				return
			}
		}
		yield(event.Event{}, &store.CorruptError{File: "s.jsonl", Line: 7, Err: io.ErrUnexpectedEOF})
	}
}

// TestDamaged checks that a damaged session is shown as far as it can be read.
func TestDamaged(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := Export(t.Context(), &b, broken{memory{"s": workday()}}, "s", cents, time.UTC)
	if html := b.String(); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(html, "It was a typo") || !strings.Contains(html, "line 7 is damaged; &#39;agent sessions repair s&#39;") {
		t.Errorf("%v, %s", err, html)
	}
}

// TestContext follows what the next request contains: compaction and rewinding take away.
func TestContext(t *testing.T) {
	t.Parallel()
	text := func(n int) model.Parts { return model.TextParts(strings.Repeat("four", n)) }
	r := newRecord(store.Summary{}, cents, 0)
	tokens := func() map[string]int {
		m := map[string]int{}
		for _, s := range r.context() {
			m[s.What] = s.Tokens
		}
		return m
	}
	list := events(event.Prompt{Text: strings.Repeat("four", 100)}, event.User{Content: text(10)}, event.Message{Content: text(20)},
		of{event.ToolResult{Name: "grep", Content: text(40)}, "c"}, event.Message{Content: text(5)},
		event.Compacted{Content: model.TextParts("<summary>" + strings.Repeat("four", 7)), Kept: 1},
		event.User{Content: text(50)}, event.Rewound{Input: 7})
	for i, want := range map[int]map[string]int{
		5: {"system prompt": 100, "your messages": 10, "answers": 25, "results: grep": 40},
		6: {"system prompt": 100, "summary": 9, "answers": 5},
		7: {"system prompt": 100, "summary": 9, "answers": 5, "your messages": 50},
		8: {"system prompt": 100, "summary": 9, "answers": 5},
	} {
		r = newRecord(store.Summary{}, cents, 0)
		for _, e := range list[:i] {
			r.add(e)
		}
		if got := tokens(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after event %d: %v, want %v", i, got, want)
		}
	}
}

// serveWith starts a server with a directory of outputs.
func serveWith(t *testing.T, from Source, contexts string) (*Server, string, net.Listener) {
	t.Helper()
	s := NewServer(t.TempDir(), insight.Facts{Price: cents, Window: func(string, string) int { return 0 }})
	s.source, s.contexts, s.poll = from, contexts, 5*time.Millisecond
	s.list = func() ([]store.Summary, error) {
		about, err := from.Stat("s")
		return []store.Summary{about}, err
	}
	address, l := start(t, s)
	return s, address, l
}

// start serves until the test ends and returns the address of the index.
func start(t *testing.T, s *Server) (string, net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s.URL(l, ""), l
}

// get requests an address with headers, "Host" among them.
func get(t *testing.T, method, url string, headers map[string]string) (status int, h http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
		} else if name != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := (&http.Client{Transport: http.DefaultTransport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(data)
}

// TestServer checks who gets what.
func TestServer(t *testing.T) {
	outputs := t.TempDir()
	if err := os.WriteFile(filepath.Join(outputs, "out"), []byte("<b>all of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(outputs, "link")); err != nil {
		t.Log("no links here:", err)
	}
	result := func(path string) event.Body {
		return event.ToolResult{Name: "shell", Output: &event.Output{Path: path, Bytes: 9}}
	}
	_, base, l := serveWith(t, memory{"s": events(result(filepath.Join(outputs, "out")), result(outside), result(filepath.Join(outputs, "link")), result(filepath.Join(outputs, "..", "x")),
		event.ToolResult{Output: &event.Output{Text: "in the record"}}, event.User{Content: model.TextParts("<b>hi")})}, outputs)
	root := "http://" + l.Addr().String()
	for _, tt := range []struct {
		method, url, header, value string
		status                     int
		body                       string
	}{
		{"GET", base, "", "", 200, "Sessions"},
		{"HEAD", base + "s/s/", "", "", 200, ""},
		{"GET", base + "s/s/", "", "", 200, "&lt;b&gt;hi"},
		{"GET", base + "s/s/", "Origin", root, 200, "Conversation"},
		{"GET", base + "s/s/", "Origin", "https://evil.example", 403, "other sites"},
		{"GET", base + "s/s/", "Origin", "null", 403, "other sites"},
		{"GET", base + "s/s/", "Host", "evil.example", 421, "only"},
		{"GET", base + "s/s/", "Host", strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1), 200, "Conversation"},
		{"POST", base + "s/s/", "", "", 405, ""},
		{"GET", root + "/", "", "", 403, "with its token"},
		{"GET", root + "/wrong/s/s/", "", "", 403, "with its token"},
		{"GET", base + "s/none/", "", "", 404, "none"},
		{"GET", base + "s/s/?page=2", "", "", 404, "1 page"},
		{"GET", base + "s/..%2f..%2fetc/", "", "", 404, ""},
		{"GET", base + "s/s/find?anchor=call-nix", "", "", 404, "no such call"},
		{"GET", base + "s/s/event/6", "", "", 200, `"type":"user"`},
		{"GET", base + "s/s/event/99", "", "", 404, "event 99"},
		{"GET", base + "s/s/event/x", "", "", 404, `"x"`},
		{"GET", base + "s/s/output/1", "", "", 200, "<b>all of it"},
		{"GET", base + "s/s/output/2", "", "", 404, "is not in"},
		{"GET", base + "s/s/output/3", "", "", 500, "escapes"},
		{"GET", base + "s/s/output/4", "", "", 404, "is not in"},
		{"GET", base + "s/s/output/5", "", "", 200, "in the record"},
		{"GET", base + "s/s/output/6", "", "", 404, "no output"},
		{"GET", base + "s/s/live?after=x", "", "", 400, "number"},
	} {
		status, h, body := get(t, tt.method, tt.url, map[string]string{tt.header: tt.value})
		if status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%s %s %s %s: %d %.200q, want %d with %q", tt.method, tt.url, tt.header, tt.value, status, body, tt.status, tt.body)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY"} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", tt.url, name, h.Get(name))
			}
		}
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", tt.url, csp)
		}
		if kind := h.Get("Content-Type"); strings.Contains(tt.url, "/output/") && !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("%s: %s", tt.url, kind)
		}
	}
}

// growing is a log that is written while it is watched.
type growing struct {
	t       *testing.T
	home    string
	journal *store.Journal
}

func newGrowing(t *testing.T) *growing {
	t.Helper()
	home := t.TempDir()
	j, err := store.Create(agent.SessionsDir(home), "live", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &growing{t, home, j}
	t.Cleanup(g.end)
	return g
}

func (g *growing) append(list ...event.Event) {
	g.t.Helper()
	for _, e := range list {
		e.Session = "live"
		if err := g.journal.Append(g.t.Context(), e); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *growing) end() {
	if err := g.journal.Close(); err != nil {
		g.t.Error(err)
	}
}

// serve serves the log and returns the address of the index.
func (g *growing) serve() string {
	g.t.Helper()
	s := NewServer(g.home, insight.Facts{Price: cents, Window: func(string, string) int { return 0 }})
	s.poll = 5 * time.Millisecond
	address, _ := start(g.t, s)
	return address
}

// TestLive reads the stream of a page: what is new, what changed, and from any number on.
func TestLive(t *testing.T) {
	log, all := newGrowing(t), workday()
	log.append(all[:8]...)
	base := log.serve()
	if _, _, body := get(t, "GET", base, nil); !strings.Contains(body, "● live") {
		t.Error("the index does not mark the session as live")
	}
	res, err := http.Get(base + "s/live/live?page=1&after=6") //nolint:noctx // ends with the server
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (id string, u update) {
		t.Helper()
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(text), &u); err != nil {
					t.Fatal(err)
				}
				return id, u
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return "", u
	}
	id, u := next()
	if id != "8" || len(u.Items) != 1 || !strings.Contains(u.Items[0], `id="call-c1"`) || !strings.Contains(u.Items[0], "running") || len(u.Parts) != 3 || u.Ended {
		t.Errorf("first: %s, %+v", id, u)
	}
	log.append(all[8])
	id, u = next()
	if id != "9" || len(u.Items) != 1 || !strings.Contains(u.Items[0], "1 test failed") {
		t.Errorf("the result: %s, %+v", id, u)
	}
	log.append(all[9:]...)
	for u.Items = nil; !strings.Contains(strings.Join(u.Items, ""), "Session ended"); id, u = next() {
	}
	log.end()
	for !u.Ended {
		id, u = next()
	}
	if want := fmt.Sprint(len(all)); id != want || strings.Contains(strings.Join(u.Parts, ""), "● live") {
		t.Errorf("at the end: %s, want %s; %+v", id, want, u.Parts)
	}
	for lines.Scan() {
		if lines.Text() != "" {
			t.Errorf("the stream continues after the end: %s", lines.Text())
		}
	}
}

// TestBoard checks the board of a task, and the sessions of its beads below it.
func TestBoard(t *testing.T) {
	t.Parallel()
	task := events(
		event.TaskStart{Task: "s", Description: "Mend <add>", MaxBeads: 3}, event.TaskState{Task: "s", State: "running"},
		event.BeadStart{Task: "s", Bead: 1, Max: 3, Child: "child", Step: "mend"}, event.Criterion{Task: "s", Bead: 1, Name: "check", Status: "fail"},
		event.BeadEnd{Task: "s", Bead: 1, State: "retrying", Result: event.BeadResult{Used: 1200, CostUSD: 0.5}},
		event.TaskState{Task: "s", State: "blocked", Reason: "no way"})
	beside := events(
		event.TaskStart{Task: "s", MaxBeads: 3}, event.TaskState{Task: "s", State: "running"},
		event.BeadStart{Task: "s", Bead: 1, Max: 3, Step: "one", Worktree: "task-t-1"}, event.BeadStart{Task: "s", Bead: 2, Max: 3, Step: "two", Worktree: "task-t-2"},
		event.TaskState{Task: "s", Bead: 1, State: "merging"}, event.TaskState{Task: "s", Bead: 2, State: "running"})
	text := export(t, memory{"s": beside})
	for _, want := range []string{"Task: interrupted</h2>", `<td>1 one <span class="soft">in worktree task-t-1</span></td><td>merging`, `in worktree task-t-2</span></td><td>running`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of beads side by side lacks %q", want)
		}
	}
	html := export(t, memory{"s": task, "child": events(event.User{Content: model.TextParts("the prompt of the bead")})})
	for _, want := range []string{"Task: blocked</h2>", "Mend &lt;add&gt;", "<td>1 mend</td><td>retrying", "check fail", "$0.50", "the prompt of the bead"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// pictured is a session with images: an input and a result show one each, the others are
// too large, gone, or not what they say.
func pictured() memory {
	images := model.TextParts("Look")
	for _, img := range []model.Image{
		{MediaType: "image/png", Blob: "pixel", Bytes: 70},
		{MediaType: "image/png", Blob: "script", Bytes: 30},
		{MediaType: "image/svg+xml", Blob: "script", Bytes: 30},
		{MediaType: "image/jpeg", Blob: "pixel", Bytes: 70},
		{MediaType: "image/png", Blob: "large", Bytes: 70},
		{MediaType: "image/png", Blob: "gone", Bytes: 70},
		{MediaType: "image/png", Blob: "pixel", Bytes: maxPicture + 1},
	} {
		images = append(images, img)
	}
	return memory{"s": events(event.User{Content: images}, of{event.ToolUse{Name: "read_file", Args: `{"file_path":"a.png"}`}, "c1"},
		of{event.ToolResult{Name: "read_file", Content: model.Parts{model.Image{MediaType: "image/png", Blob: "pixel", Bytes: 70}}}, "c1"})}
}

// TestImages checks which images a page contains.
func TestImages(t *testing.T) {
	t.Parallel()
	html := html.UnescapeString(export(t, pictured()))
	if n := strings.Count(html, "<img "); n != 2 || strings.Count(html, `<img src="data:image/png;base64,`+pixel+`" alt="Image, image/png, 70 B">`) != 2 {
		t.Errorf("%d images:\n%s", n, html[strings.Index(html, "<body"):])
	}
	if !strings.Contains(html, "; img-src data:") {
		t.Error("the policy allows no images")
	}
	many := memory{"s": nil}
	for range 3 * maxPictures / maxPicture {
		many["s"] = append(many["s"], event.Event{Body: event.User{Content: model.Parts{model.Image{MediaType: "image/png", Blob: "half", Bytes: maxPicture / 2}}}})
	}
	if n := len(export(t, many)); n > 2*maxPictures {
		t.Errorf("a page with many images has %d bytes", n)
	}
}
