package root

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/sdk"
)

// gaugesEnv adds the plugin gauges to the command of the scripts.
const gaugesEnv = "AGENT_TEST_GAUGES"

// Variables of the test that looks for keys: the mark of all values, what adds
// the plugin teller, and what is in the keyring under the name test.
const (
	keyMark    = "KEYMARK"
	tellerEnv  = "AGENT_TEST_TELLER"
	keyringEnv = "AGENT_TEST_KEYRING_TOKEN"
)

// tell names the marked variables of this process, and of all processes that it
// sees.
func tell() string {
	var b strings.Builder
	marked := func(kind, environ string) {
		for entry := range strings.SplitSeq(environ, "\x00") {
			if name, value, _ := strings.Cut(entry, "="); strings.Contains(value, keyMark) {
				fmt.Fprintf(&b, "%s %s\n", kind, name)
			}
		}
	}
	marked("own", strings.Join(os.Environ(), "\x00"))
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, _ := os.ReadFile(file) // hidden, or gone
		marked("other", string(environ))
	}
	return b.String() + "looked"
}

// testPlugins are the bundled plugins, and for tests that want them one that
// tells and one with many tools.
func testPlugins() cmdutil.Bundled {
	all := setup.BundledPlugins()
	if os.Getenv(tellerEnv) != "" {
		all["teller"] = func() sdk.Plugin {
			return sdk.Plugin{Name: "teller", Version: "1.0.0", Manifest: sdk.Manifest{Env: []string{tellerEnv}}, Extensions: []sdk.Extension{
				sdk.Tool("tell", "Tells.", func(*sdk.Context, struct{}) (string, error) { return tell(), nil }),
			}}
		}
	}
	if os.Getenv(gaugesEnv) != "" {
		all["gauges"] = gauges
	}
	return all
}

// gauges has 150 tools.
func gauges() sdk.Plugin {
	type args struct {
		City string `json:"city"`
	}
	p := sdk.Plugin{Name: "gauges", Version: "1.0.0", Manifest: sdk.Manifest{Env: []string{gaugesEnv}}}
	add := func(name, description string) {
		p.Extensions = append(p.Extensions, sdk.Tool(name, description, func(_ *sdk.Context, in args) (string, error) {
			return name + " of " + in.City + ": 42", nil
		}, sdk.ReadOnly()))
	}
	add("forecast", "The weather of the next days in a city.")
	for i := range 149 {
		add(fmt.Sprintf("gauge_%d", i), fmt.Sprintf("Reads water gauge number %d of a city.", i))
	}
	return p
}

func cmdSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: site FILE")
	}
	page := ts.ReadFile(args[0])
	kind := "text/plain; charset=utf-8"
	if filepath.Ext(args[0]) == ".html" {
		kind = "text/html; charset=utf-8"
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "https://example.com/there", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, page)
	}))
	ts.Defer(server.Close)
	ts.Setenv("SITE", server.URL)
	ts.Setenv("SITE_HOST", server.Listener.Addr().String())
}
