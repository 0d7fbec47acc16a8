package root

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/zalando/go-keyring"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

var update = flag.Bool("update", false, "write docs/cli.md, docs/cli and the expected files of scripts")

// TestMain makes "agent" a command on the PATH of the tests: this binary, run
// under that name, is the command.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // or every process of the command sleeps a second at its end
		os.Setenv("GORACE", "atexit_sleep_ms=10")
	}
	testscript.Main(m, map[string]func(){"agent": func() {
		managed := setup.ManagedSettings(os.Getenv)
		if other := os.Getenv("AGENT_TEST_MANAGED"); other != "" {
			managed = other
		}
		if key := os.Getenv(keyringEnv); key != "" {
			keyring.MockInit()
			if err := keyring.Set("agent", "test", key); err != nil {
				panic(err)
			}
		}
		os.Exit(mainWith(managed, testPlugins()))
	}, "mcpserver": func() { os.Exit(mcpServer()) }, "xdg-open": browse})
}

// browse is a browser that follows every redirect and asks nobody.
func browse() {
	res, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = res.Body.Close()
}

// docs returns the path of a page of the documentation.
func docs(name string) string { return filepath.Join("..", "..", "..", "..", "..", "docs", name) }
