package root

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/zalando/go-keyring"

	_ "github.com/seed-009c0928/agent/cmd/agent/internal/prelude" // as in the command
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

var update = flag.Bool("update", false, "write docs/cli.md, docs/cli and the expected files of scripts")

// TestMain makes "agent" a command on the PATH of the tests: this binary, run
// under that name, is the command.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // or every process of the command sleeps a second at its end
		os.Setenv("GORACE", "atexit_sleep_ms=10")
	}
	testscript.Main(patient{m}, map[string]func(){"agent": func() {
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

// patient runs more tests at once than there are cores, unless -parallel is given: most
// of them wait for processes.
type patient struct{ *testing.M }

func (p patient) Run() int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return p.M.Run()
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
