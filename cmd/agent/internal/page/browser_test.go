package page

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/browser"
)

// axeVariable names the file axe.min.js of axe-core.
const axeVariable = "AGENT_TEST_AXE"

// chromium returns a running browser, or skips the test.
func chromium(t *testing.T) *browser.Browser {
	t.Helper()
	b, err := browser.Start(context.WithoutCancel(t.Context()))
	if errors.Is(err, browser.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// saved writes a page to a file and returns its address.
func saved(t *testing.T, html string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

func opened(t *testing.T, b *browser.Browser, url string, scheme browser.Scheme) *browser.Tab {
	t.Helper()
	tab, err := b.Open(t.Context(), url, scheme)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func eval[V any](t *testing.T, tab *browser.Tab, expression string) (v V) {
	t.Helper()
	if err := tab.Eval(t.Context(), expression, &v); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// eventually waits until an expression is true in the page.
func eventually(t *testing.T, tab *browser.Tab, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	wait := "new Promise((done) => { const look = () => (" + expression + ") ? done(true) : setTimeout(look, 20); look(); })"
	err := tab.Eval(ctx, wait, nil)
	for err != nil && ctx.Err() == nil { // the tab went to another page meanwhile
		err = tab.Eval(ctx, wait, nil)
	}
	if err != nil {
		t.Fatalf("%s: %v; the page is\n%s", expression, err, eval[string](t, tab, "document.body.innerText"))
	}
}

func noProblems(t *testing.T, tab *browser.Tab) {
	t.Helper()
	for _, p := range tab.Problems() {
		t.Errorf("the browser reports: %s", p)
	}
}

// accessible runs axe-core in the page, with all folds open.
func accessible(t *testing.T, tab *browser.Tab) {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		t.Skip(axeVariable + " does not name axe.min.js of axe-core")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Eval(t.Context(), string(axe)+"; document.querySelectorAll('details').forEach((d) => { d.open = true; }); null", nil); err != nil {
		t.Fatal(err)
	}
	type node struct{ HTML, FailureSummary string }
	for _, v := range eval[[]struct {
		ID, Help string
		Nodes    []node
	}](t, tab, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => ({id: v.id, help: v.help,
		nodes: v.nodes.slice(0, 3).map((n) => ({html: n.html.slice(0, 300), failureSummary: n.failureSummary}))})))`) {
		t.Errorf("%s: %s: %q", v.ID, v.Help, v.Nodes)
	}
}

// TestAccessible checks pages with every type of event and with hostile content, and the
// index, in both colour schemes.
func TestAccessible(t *testing.T) {
	b := chromium(t)
	_, address, _ := serve(t, memory{"s": workday()})
	for name, url := range map[string]string{
		"every type": saved(t, export(t, memory{"s": everyType(t)})),
		"hostile":    saved(t, export(t, memory{"s": hostile()})),
		"served":     address + "s/s/",
		"index":      address,
	} {
		for _, scheme := range []browser.Scheme{browser.Light, browser.Dark} {
			t.Run(name+" "+string(scheme), func(t *testing.T) {
				tab := opened(t, b, url, scheme)
				dark := eval[bool](t, tab, `matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.body).backgroundColor === "rgb(13, 17, 23)"`)
				if dark != (scheme == browser.Dark) {
					t.Errorf("dark: %t", dark)
				}
				accessible(t, tab)
				noProblems(t, tab)
			})
		}
	}
}

// TestHostileInBrowser checks that nothing that a session contains runs, loads or leaves
// its place.
func TestHostileInBrowser(t *testing.T) {
	b := chromium(t)
	_, address, _ := serve(t, memory{"s": hostile()})
	for name, url := range map[string]string{"file": saved(t, export(t, memory{"s": hostile()})), "served": address + "s/s/"} {
		t.Run(name, func(t *testing.T) {
			tab := opened(t, b, url, browser.Light)
			for expression, want := range map[string]int{
				"window.hacked ? 1 : 0":   0,
				"document.scripts.length": 1,
				"document.querySelectorAll('img,iframe,object,embed,form,base,link,video,audio,math,foreignObject,style ~ style').length":                0,
				"[...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on') || a.name === 'style')).length": 0,
				"[...document.querySelectorAll('a')].filter((a) => !/^(https?|file):$/.test(a.protocol)).length":                                         0,
				"performance.getEntriesByType('resource').length":                                                                                        0,
				"document.querySelectorAll('body > *:not(header,main,script,a.skip)').length":                                                            0,
				`[...document.querySelectorAll("a[href^='https://example.com']")].length`:                                                                1,
				`[...document.body.innerText.matchAll(/[\u202a-\u202e\u2066-\u2069\u001b\u0000]/g)].length`:                                              0,
			} {
				if got := eval[int](t, tab, expression); got != want {
					t.Errorf("%s: %d, want %d", expression, got, want)
				}
			}
			noProblems(t, tab)
		})
	}
}

// TestImagesInBrowser checks that the browser shows the images, under the policy of the page.
func TestImagesInBrowser(t *testing.T) {
	b := chromium(t)
	_, address, _ := serve(t, pictured())
	for name, url := range map[string]string{"file": saved(t, export(t, pictured())), "served": address + "s/s/"} {
		t.Run(name, func(t *testing.T) {
			tab := opened(t, b, url, browser.Light)
			eventually(t, tab, `document.images.length === 2 && [...document.images].every((i) => i.complete && i.naturalWidth === 1)`)
			accessible(t, tab)
			noProblems(t, tab)
		})
	}
}

// TestKeyboard walks through a page without a mouse: the skip link comes first, a call is
// opened, and what has the focus is visible.
func TestKeyboard(t *testing.T) {
	b := chromium(t)
	tab := opened(t, b, saved(t, export(t, memory{"s": workday()})), browser.Light)
	press := func(key string) {
		t.Helper()
		if err := tab.Press(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	var order []string
	for range 60 {
		press("Tab")
		name := eval[string](t, tab, `(() => {
			const e = document.activeElement, s = getComputedStyle(e);
			if (s.outlineStyle === "none") return "no outline on " + e.outerHTML.slice(0, 200);
			return e === document.body ? "" : e.innerText.trim().split("\n")[0];
		})()`)
		if name == "" || len(order) > 0 && name == order[0] {
			break
		}
		order = append(order, name)
		if strings.Contains(name, "go test") {
			press("Enter")
			if !eval[bool](t, tab, "document.activeElement.parentElement.open") {
				t.Error("Enter does not open a call")
			}
			press(" ")
			if eval[bool](t, tab, "document.activeElement.parentElement.open") {
				t.Error("a space does not close a call")
			}
		}
	}
	at := -1
	for _, want := range []string{"Skip to the conversation", "Context by source", "Fix <it>", "Open all calls", "Next failure", "System prompt", "go test"} {
		i := slices.IndexFunc(order, func(name string) bool { return strings.Contains(name, want) })
		if i <= at {
			t.Fatalf("no %q after what precedes it in the order of focus: %q", want, order)
		}
		at = i
	}
	noProblems(t, tab)
}

// TestDeepLinks opens a call by its address, on whichever page of the session it is.
func TestDeepLinks(t *testing.T) {
	b := chromium(t)
	long := memory{"s": longSession(pageEvents + 700)}
	_, address, _ := serve(t, long)
	for name, url := range map[string]string{"file": saved(t, export(t, long)), "served": address + "s/s/"} {
		t.Run(name, func(t *testing.T) {
			for _, id := range []string{"call-c3", "call-c750"} {
				tab := opened(t, b, url+"#"+id, browser.Light)
				eventually(t, tab, `document.readyState === "complete" && document.querySelector("#`+id+`.at > details[open]") !== null`)
				noProblems(t, tab)
			}
			tab := opened(t, b, url, browser.Light)
			if n := eval[int](t, tab, `document.querySelectorAll("#items #call-c750").length`); n != 0 {
				t.Error("the first page has everything")
			}
			if err := tab.Eval(t.Context(), `document.querySelector('[data-goto="2"]').click()`, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, tab, `document.querySelector("#items #call-c750") && !document.querySelector("#items #call-c3")`)
			noProblems(t, tab)
		})
	}
}

// TestTools uses the buttons above the conversation.
func TestTools(t *testing.T) {
	b := chromium(t)
	tab := opened(t, b, saved(t, export(t, memory{"s": workday()})), browser.Light)
	click := func(what string) {
		t.Helper()
		if err := tab.Eval(t.Context(), `document.querySelector("[data-do='`+what+`']").click()`, nil); err != nil {
			t.Fatal(err)
		}
	}
	nOpen := "document.querySelectorAll('#items .call > details[open]').length"
	click("open")
	if n := eval[int](t, tab, nOpen); n != 3 {
		t.Errorf("%d calls are open, want 3", n)
	}
	click("close")
	if n := eval[int](t, tab, nOpen); n != 0 {
		t.Errorf("%d calls are open, want 0", n)
	}
	click("failed")
	eventually(t, tab, `document.querySelector(".failed.at > details[open]") && document.getElementById("status").textContent.startsWith("Failure 1 of ")`)
	noProblems(t, tab)
}

// TestLargeSessionIsInteractive opens 10,000 events. The time is printed; what is checked
// is far above it, since a busy machine is slow.
func TestLargeSessionIsInteractive(t *testing.T) {
	if testing.Short() {
		t.Skip("the time means nothing under the race detector")
	}
	b := chromium(t)
	m := memory{"s": longSession(10_000)}
	_, address, _ := serve(t, m)
	for name, url := range map[string]string{"file": saved(t, export(t, m)), "served": address + "s/s/"} {
		tab := opened(t, b, url, browser.Light)
		ms := eval[float64](t, tab, `new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))`)
		ready := eval[float64](t, tab, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
		t.Logf("%s: script ready after %.0f ms, drawn after %.0f ms", name, ready, ms)
		if ready > 10_000 {
			t.Errorf("%s: interactive after %.0f ms", name, ready)
		}
		if n := eval[int](t, tab, "document.querySelectorAll('#items > article').length"); n < 1400 {
			t.Errorf("%s: %d items", name, n)
		}
		noProblems(t, tab)
	}
}

// TestLivePage watches a session in a browser while it runs.
func TestLivePage(t *testing.T) {
	b := chromium(t)
	log := newGrowing(t)
	all := workday()
	log.append(all[:8]...) // a call runs
	tab := opened(t, b, log.serve()+"s/live/", browser.Light)
	eventually(t, tab, `document.querySelector(".live") && document.getElementById("call-c1").innerText.includes("running")`)
	if err := tab.Eval(t.Context(), `document.querySelector("#call-c1 summary").click(); document.querySelector("#call-c1 summary").focus()`, nil); err != nil {
		t.Fatal(err)
	}
	log.append(all[8:]...)
	eventually(t, tab, `document.getElementById("call-c1").innerText.includes("1 test failed") && document.getElementById("items").innerText.includes("It was a typo")`)
	if !eval[bool](t, tab, `document.querySelector("#call-c1 > details").open && document.activeElement === document.querySelector("#call-c1 summary")`) {
		t.Error("the open call was closed, or lost the focus")
	}
	log.end()
	eventually(t, tab, `!document.querySelector(".live") && document.getElementById("status").textContent === "The session ended"`)
	noProblems(t, tab)
}

// serve starts a server and returns the address of its index.
func serve(t *testing.T, from Source) (*Server, string, net.Listener) {
	t.Helper()
	return serveWith(t, from, t.TempDir())
}
