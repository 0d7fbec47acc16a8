//go:build !windows

package plugins_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
)

// pluginFlag, followed by a mode, makes the test binary a plugin.
const pluginFlag = "-serve-plugin="

func TestMain(m *testing.M) {
	for _, arg := range os.Args[1:] {
		if mode, ok := strings.CutPrefix(arg, pluginFlag); ok {
			servePlugin(mode)
		}
		if home, ok := strings.CutPrefix(arg, holdFlag); ok {
			holdPlugin(home)
		}
	}
	goleak.VerifyTestMain(m)
}

// holdFlag, followed by a home, makes the test binary an agent that starts the
// plugins there, prints their process IDs and waits.
const holdFlag = "-hold-plugins="

func holdPlugin(home string) {
	pl := &place{home: home, supervisor: proc.NewSupervisor(proc.Options{})}
	for _, p := range plugins.Open(context.Background(), pl.options()).Plugins() {
		tools, err := p.Tools(context.Background())
		if err != nil {
			panic(err)
		}
		var out bytes.Buffer
		res, err := tools[4].Run(context.Background(), &core.Call{Args: json.RawMessage(`{"what": "pid"}`), Output: &out})
		if err != nil {
			panic(err)
		}
		fmt.Println(model.Parts(res.Content).Text())
	}
	forever()
}

// place is an agent's home with plugins.
type place struct {
	home, workspace string
	supervisor      *proc.Supervisor
}

func newPlace(t testing.TB) *place {
	t.Helper()
	s := proc.NewSupervisor(proc.Options{})
	t.Cleanup(func() { _ = s.Close() })
	return &place{t.TempDir(), t.TempDir(), s}
}

// link creates a plugin in a new folder and links it into the home. Its program
// is the test binary in the mode; change may modify its plugin.json.
func (p *place) link(t testing.TB, name, mode string, change func(map[string]any)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	placeBinary(t, filepath.Join(dir, "plugin.exe"))
	writeSpec(t, dir, name, mode, change)
	file := filepath.Join(p.home, "plugin-links.json")
	var doc struct {
		Version int               `json:"version"`
		Links   map[string]string `json:"links"`
	}
	if data, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
	} else {
		doc.Version, doc.Links = 1, map[string]string{}
	}
	doc.Links[name] = dir
	writeJSON(t, file, doc)
	return dir
}

func writeSpec(t testing.TB, dir, name, mode string, change func(map[string]any)) {
	t.Helper()
	spec := map[string]any{
		"name": name, "version": "1.0.0", "protocol": 1,
		"command": map[string]any{"*": []string{"./plugin.exe", pluginFlag + mode}},
	}
	if change != nil {
		change(spec)
	}
	writeJSON(t, filepath.Join(dir, plugins.SpecFile), spec)
}

func writeJSON(t testing.TB, file string, v any) {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// placeBinary links or copies the test binary to a path.
func placeBinary(t testing.TB, at string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, at) == nil {
		return
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// options returns the options of a host for the place, without a sandbox.
func (p *place) options() plugins.Options {
	return plugins.Options{
		Supervisor: p.supervisor, Home: p.home, Workspace: p.workspace, UserHome: p.home, Sandbox: sandbox.ModeOff,
		Version: "test", Watch: -1, StartTimeout: time.Minute, Idle: -1,
	}
}

// open opens a host and closes it at the end of the test.
func open(t testing.TB, o plugins.Options) *plugins.Host {
	t.Helper()
	h := plugins.Open(t.Context(), o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// only returns the only plugin of a host.
func only(t testing.TB, h *plugins.Host) *plugins.Plugin {
	t.Helper()
	for _, err := range h.Broken() {
		t.Errorf("broken: %v", err)
	}
	list := h.Plugins()
	if len(list) != 1 {
		t.Fatalf("%d plugins, want 1", len(list))
	}
	return list[0]
}

// openPlugin returns the plugin "good" in a mode, the only one of its place.
func openPlugin(t testing.TB, mode string) (*place, *plugins.Plugin) {
	t.Helper()
	pl := newPlace(t)
	pl.link(t, "good", "good:"+mode, nil)
	return pl, only(t, open(t, pl.options()))
}

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func exampleSupervisor() *proc.Supervisor { return proc.NewSupervisor(proc.Options{}) }
