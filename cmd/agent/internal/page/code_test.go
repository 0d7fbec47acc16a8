package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/browser"
)

// smallCode has a chain of packages: main uses api, which uses store, in which two files
// import each other; the names attack.
func smallCode() Code {
	c := Code{Title: "Code of <script>window.hacked=1</script>", Start: -1, Cycles: [][]string{{"store/a.py", "store/b.py"}}}
	add := func(name, kind, file string) {
		c.Symbols = append(c.Symbols, Symbol{Name: name, Kind: kind, File: file, Line: 7})
	}
	for _, f := range []string{"main.py", "api/v1/api.py", "store/a.py", "store/b.py"} {
		add(f, "file", f)
	}
	add("main", "function", "main.py")                                      // 4
	add("Serve", "function", "api/v1/api.py")                               // 5
	add("Save", "method", "store/a.py")                                     // 6
	add("test_save", "test", "store/b.py")                                  // 7
	add("</script><script>window.hacked=1</script>", "class", "store/a.py") // 8
	c.Uses = []Dependency{{4, 5, 0}, {5, 6, 1}, {7, 6, 0}, {6, 8, 2}, {2, 3, 3}, {3, 2, 3}}
	return c
}

// largeCode has 10,000 files in 2,000 folders.
func largeCode() Code {
	c := Code{Title: "Large", Start: -1}
	for i := range 10_000 {
		name := fmt.Sprintf("team%d/service%d/part%d/f%d.go", i%40, i%400, i%2000, i)
		c.Symbols = append(c.Symbols, Symbol{Name: name, Kind: "file", File: name}, Symbol{Name: fmt.Sprintf("Func%d", i), Kind: "function", File: name, Line: 1})
		if i > 0 {
			c.Uses = append(c.Uses, Dependency{From: 2*i + 1, To: 2*(i/2) + 1}, Dependency{From: 2*i + 1, To: 2*(i-1) + 1, Confidence: 1})
		}
	}
	return c
}

func exportCode(t *testing.T, c Code) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Export(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCodePage(t *testing.T) {
	t.Parallel()
	if n := len(exportCode(t, Code{})); n > 150_000/4 {
		t.Errorf("a page without code has %d bytes", n)
	}
	html := exportCode(t, smallCode())
	if n := strings.Count(html, "<script"); n != 2 {
		t.Errorf("%d script elements", n)
	}
}

// serveCode serves the page of some code and returns its address.
func serveCode(t *testing.T, c Code) string {
	t.Helper()
	address, _ := start(t, NewCodeServer(func(context.Context) (Code, error) { return c, nil }))
	return address
}

func TestCodeServer(t *testing.T) {
	address := serveCode(t, smallCode())
	status, h, body := get(t, "GET", address, nil)
	if status != http.StatusOK || !strings.Contains(body, "Code of &lt;script&gt;") || !strings.Contains(h.Get("Content-Security-Policy"), hash(codeScript)) {
		t.Errorf("status %d, policy %s", status, h.Get("Content-Security-Policy"))
	}
	for _, url := range []string{address[:len(address)-5] + "/", address + "s/x/"} {
		if status, _, _ := get(t, "GET", url, nil); status == http.StatusOK {
			t.Errorf("%s is served", url)
		}
	}
	if status, _, _ := get(t, "GET", address, map[string]string{"Host": "evil.example"}); status != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", status)
	}
}

// TestCodeInBrowser chooses packages, files and symbols.
func TestCodeInBrowser(t *testing.T) {
	b := chromium(t)
	for name, url := range map[string]string{"file": saved(t, exportCode(t, smallCode())), "served": serveCode(t, smallCode())} {
		t.Run(name, func(t *testing.T) {
			tab := opened(t, b, url, browser.Light)
			check := func(expression, want string) {
				t.Helper()
				if got := eval[string](t, tab, expression); got != want {
					t.Errorf("%s: %q, want %q", expression, got, want)
				}
			}
			boxes := func(class string) string {
				return `[...document.querySelectorAll("#map a` + class + `")].map((a) => a.textContent).join()`
			}
			check(`[...document.querySelectorAll(".layer")].map((l) => l.innerText.trim().replace(/\s+/g, " ")).join(" > ")`, ". > api/v1 > store")
			check(boxes(".ring"), "store")
			check(`document.getElementById("cycles").innerText.replace(/\s+/g, " ").trim()`, "store/a.py and others (2) store/a.py store/b.py")
			choose := func(query, what string) {
				t.Helper()
				if err := tab.Eval(t.Context(), `{ const f = document.getElementById("find"); f.value = "`+query+`"; f.dispatchEvent(new Event("input", {bubbles: true})); }
					[...document.querySelectorAll("#found a")].find((a) => a.textContent === "`+what+`").click()`, nil); err != nil {
					t.Fatal(err)
				}
				eventually(t, tab, `document.activeElement.id === "details-h" && document.getElementById("details-h").textContent.includes("`+what+`")`)
			}
			choose("sav", "Save")
			check(`[...document.querySelectorAll("#cone tbody tr")].map((r) => [...r.cells].map((c) => c.textContent).join(" ")).join("; ")`,
				"test_save test store/b.py 1 high; Serve function api/v1/api.py 1 medium; main function main.py 2 medium")
			check(boxes(".hit"), ".,api/v1,store")
			choose("a.py", "store/a.py")
			check(`document.querySelectorAll("#cone tbody tr").length + ""`, "3")
			if err := tab.Eval(t.Context(), `[...document.querySelectorAll("#map a")].find((a) => a.textContent === "api/v1").click()`, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, tab, `document.getElementById("details-h").textContent === "Package api/v1"`)
			check(boxes(".uses")+`+" "+`+boxes(".used")+`+" "+`+boxes("[aria-current]"), "store . api/v1")
			check(`document.querySelectorAll("#lines line").length + " " + (window.hacked || 0) + " " + performance.getEntriesByType("resource").length`, "2 0 0")
			noProblems(t, tab)
		})
	}
}

// TestCodeAccessible checks the page in both colour schemes, with something chosen, and
// that it can be used with the keyboard.
func TestCodeAccessible(t *testing.T) {
	b := chromium(t)
	c := smallCode()
	c.Start = 6
	url := saved(t, exportCode(t, c))
	tab := opened(t, b, url, browser.Light)
	var order []string
	for range 12 {
		if err := tab.Press(t.Context(), "Tab"); err != nil {
			t.Fatal(err)
		}
		order = append(order, eval[string](t, tab, `getComputedStyle(document.activeElement).outlineStyle === "none" ? "no outline" : document.activeElement.id || document.activeElement.textContent`))
	}
	if got := strings.Join(order, " | "); !strings.HasPrefix(got, "Skip to the details | find | store/a.py | test_save | store/b.py | Serve") || strings.Contains(got, "no outline") {
		t.Errorf("the order of focus: %s", got)
	}
	for _, scheme := range []browser.Scheme{browser.Light, browser.Dark} {
		tab := opened(t, b, url, scheme)
		accessible(t, tab)
		noProblems(t, tab)
	}
}

// TestLargeCode opens 10,000 files: their folders are folded. The time is printed; what is
// checked is far above it, since a busy machine is slow.
func TestLargeCode(t *testing.T) {
	if testing.Short() {
		t.Skip("the time means nothing under the race detector")
	}
	b := chromium(t)
	tab := opened(t, b, saved(t, exportCode(t, largeCode())), browser.Light)
	ready := eval[float64](t, tab, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
	t.Logf("script ready after %.0f ms", ready)
	if n := eval[int](t, tab, `document.querySelectorAll("#map a").length`); ready > 10_000 || n != 40 {
		t.Errorf("%d packages after %.0f ms", n, ready)
	}
	if err := tab.Eval(t.Context(), `location.hash = "n1"`, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, tab, `document.getElementById("status").textContent.startsWith("A change may break 9999 symbols in 9999 files of 40 packages")`)
	if n := eval[int](t, tab, `document.querySelectorAll("#cone tbody tr").length`); n != 500 {
		t.Errorf("%d lines", n)
	}
	noProblems(t, tab)
}
