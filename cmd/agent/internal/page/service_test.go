package page

import (
	"bufio"
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/browser"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/api"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// serviceWith serves a service whose sessions have a model, and returns its address.
func serviceWith(t *testing.T, p model.Provider) string {
	t.Helper()
	server, err := jetstream.Serve(jetstream.ServeOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	db, err := jetstream.Open(t.Context(), nc, jetstream.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	places, err := workspace.Open(workspace.Options{Dir: filepath.Join(t.TempDir(), "workspaces")})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := service.NewWorker(service.WorkerOptions{Engine: db, Workspaces: places, Open: func(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: cmp.Or(s.Dir, dir), Policy: coretest.FixedPolicy(core.Ask)})
		if err != nil {
			return host.Opened{}, err
		}
		base.Provider = p
		opened, err := a.NewSession(ctx, base)
		return host.Opened{Session: opened, Close: a.Close}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	a, err := api.New(api.Options{Engine: db, Workspaces: places, Tokens: []api.Token{
		{Hash: api.Hash("secret-token"), Tenant: "acme", Scopes: []api.Scope{api.ScopeRead, api.ScopeRun, api.ScopeAnswer}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(NewService(Service{Engine: db, API: a, Price: cents}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // a tab may follow a session
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s.URL + "/"
}

// TestServicePage starts a session in a browser, follows it, approves its call, sees what
// it changed, and deletes it.
func TestServicePage(t *testing.T) {
	b := chromium(t)
	end := make(chan struct{})
	release := sync.OnceFunc(func() { close(end) })
	defer release()
	address := serviceWith(t, coretest.Model(
		coretest.CallTools(model.ToolCall{ID: "1", Name: "write_file", Args: `{"file_path":"sub/a.txt","content":"<b>hello</b>\n"}`}),
		coretest.Turn{Text: "Half of <img src=x onerror=window.hacked=1>", Block: end},
		coretest.Say("Again."),
	))
	tab := opened(t, b, address, browser.Light)
	do := func(script string) {
		t.Helper()
		if err := tab.Eval(t.Context(), script+"; null", nil); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
	}
	click := func(act string) { t.Helper(); do(`document.querySelector("[data-act='` + act + `']").click()`) }
	checked := func() {
		t.Helper()
		if os.Getenv(axeVariable) != "" { // without, the rest of the test is run
			accessible(t, tab)
		}
	}
	checked()
	do(`document.getElementById("token").value = "secret-token"`)
	click("enter")
	eventually(t, tab, `!document.getElementById("app").hidden && !document.getElementById("none").hidden`)
	checked()
	eventually(t, tab, `document.getElementById("usage").textContent.startsWith("Today (UTC): 0 tokens, $0.00. Sessions: 0")`)
	do(`document.getElementById("prompt").value = "Look <i>again</i>"; document.getElementById("cron").value = "0 7 1 1 *"`)
	click("start")
	eventually(t, tab, `document.querySelector("#schedules:not([hidden]) #schedule-list td")?.textContent === "Look <i>again</i>" && document.getElementById("prompt").value === ""`)
	checked()
	do(`window.confirm = () => true; document.querySelector("#schedule-list button").click()`)
	eventually(t, tab, `document.getElementById("schedules").hidden`)
	do(`document.getElementById("prompt").value = "Write <i>it</i>"; document.getElementById("where").value = "new"`)
	click("start")
	eventually(t, tab, `document.querySelector("#questions:not([hidden]) button") && document.getElementById("session-state").textContent === "parked"`)
	eventually(t, tab, `document.getElementById("items").textContent.includes("Write <i>it</i>")`)
	checked()
	do(`[...document.querySelectorAll("#question-list button")].find((b) => b.textContent === "Approve once").click()`)
	eventually(t, tab, `document.getElementById("typing").textContent.startsWith("Half of") && document.getElementById("questions").hidden`)
	click("diff")
	eventually(t, tab, `document.getElementById("diff").textContent.includes("+<b>hello</b>")`)
	release()
	eventually(t, tab, `document.getElementById("session-state").textContent === "idle" && document.getElementById("typing").hidden && document.getElementById("items").textContent.includes("Half of")`)
	do(`document.getElementById("input").value = "More"`)
	click("send")
	eventually(t, tab, `document.getElementById("items").textContent.includes("Again.")`)
	do(`location.hash = "#/"`)
	eventually(t, tab, `document.querySelector("#list a")?.textContent === "Write <i>it</i>" && document.getElementById("one").hidden`)
	do(`document.querySelector("#list a").click(); window.confirm = () => true`)
	eventually(t, tab, `document.getElementById("session-state").textContent === "idle"`)
	click("delete")
	eventually(t, tab, `!document.getElementById("overview").hidden && !document.getElementById("none").hidden`)
	if eval[bool](t, tab, `!!window.hacked || location.href.includes("secret-token") || document.querySelectorAll("#items img").length > 0`) {
		t.Error("what a model wrote is markup, or the token is in the address")
	}
	click("leave")
	if eval[bool](t, tab, `sessionStorage.length > 0 || !document.getElementById("app").hidden`) {
		t.Error("the token is kept")
	}
	noProblems(t, tab)
}

// TestServicePageInputs: that a session is closed between inputs is not shown.
func TestServicePageInputs(t *testing.T) {
	address := serviceWith(t, coretest.Model(coretest.Say("First answer."), coretest.Say("Second answer.")))
	call := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret-token")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text := ""
		for lines := bufio.NewReader(res.Body); ; {
			line, err := lines.ReadString('\n')
			if text += line; err != nil || strings.Contains(text, "Second answer.") {
				return text
			}
		}
	}
	call("POST", "v1/sessions", `{"id":"s","content":[{"type":"text","text":"Go."}]}`)
	for !strings.Contains(call("GET", "v1/sessions/s", ""), `"state":"idle"`) {
	}
	call("POST", "v1/sessions/s/commands", `{"type":"input","content":[{"type":"text","text":"On."}]}`)
	shown := call("GET", "page/sessions/s", "")
	if !strings.Contains(shown, "Second answer.") || strings.Contains(shown, "Session ended") || strings.Contains(shown, "Resumed with") {
		t.Errorf("the page shows %s", shown)
	}
}

// TestServicePageRefusals: the page is served to anybody, a session only with a token, and
// neither to pages of other sites.
func TestServicePageRefusals(t *testing.T) {
	address := serviceWith(t, coretest.Model())
	get := func(path, token, host, origin string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if host != "" {
			req.Host = host
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	res := get("", "", "", "")
	policy := res.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'sha256-", "frame-ancestors 'none'", "form-action 'none'", "connect-src 'self'"} {
		if res.StatusCode != http.StatusOK || !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
			t.Errorf("status %d, policy %q lacks %q", res.StatusCode, policy, part)
		}
	}
	for _, c := range []struct {
		path, token, host, origin string
		want                      int
	}{
		{"", "", "evil.example", "", 421},
		{"", "", "", "https://evil.example", 403},
		{"page/sessions/s", "", "", "", 401},
		{"page/sessions/s", "secret-token", "evil.example", "", 421},
		{"page/sessions/s", "secret-token", "", "https://evil.example", 403},
		{"page/sessions/s", "secret-token", "", "", 404},
		{"page/sessions/s?page=x", "secret-token", "", "", 400},
		{"v1/sessions", "secret-token", "", "", 200},
		{"v1/nothing", "secret-token", "", "", 404},
	} {
		if res := get(c.path, c.token, c.host, c.origin); res.StatusCode != c.want {
			t.Errorf("%+v: status %d", c, res.StatusCode)
		}
	}
}
