//go:build !windows

package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk"
)

func TestContextIsWithinTheBudget(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:contexts", func(s map[string]any) { s["context"] = map[string]any{"maxTokens": 10} })
	sources := open(t, pl.options()).ContextSources()
	if len(sources) != 1 {
		t.Fatalf("%d sources, want 1", len(sources))
	}
	blocks, err := sources[0].Context(t.Context(), core.ContextRequest{Input: model.TextParts("what now?"), Budget: 1000})
	if err == nil || !strings.Contains(err.Error(), "plugin good: context source broken: no ticket") {
		t.Errorf("a source that fails: %v", err)
	}
	if len(blocks) != 1 || blocks[0].Trusted || blocks[0].Source != "plugin good: long" {
		t.Fatalf("the blocks are %+v", blocks)
	}
	if text := blocks[0].Text; !strings.HasPrefix(text, "10 what now?") || len([]rune(text)) != 40 {
		t.Errorf("the text is %q, want 40 characters", text)
	}
	short, _ := sources[0].Context(t.Context(), core.ContextRequest{Budget: 2})
	if len(short) != 1 || len([]rune(short[0].Text)) != 8 {
		t.Errorf("with a budget of 2 tokens: %+v", short)
	}
}

// TestStockPlugin uses a plugin with go-plugin's own server.
func TestStockPlugin(t *testing.T) {
	pl, p := openPlugin(t, "stock")
	if got := must(t, p, "echo", echoArgs{"hello"}).text; got != "hello" {
		t.Errorf("echo: %q", got)
	}
	_, _ = call(t, t.Context(), p, "misbehave", misbehavior{What: "print"}, "")
	waitFor(t, "its output", func() bool {
		var log strings.Builder
		if err := plugins.ReadLog(&log, plugins.LogDir(pl.home), "good", 1<<20); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(log.String(), "a line on stdout")
	})
}

// TestBundledPlugin uses a bundled plugin: it is described without a process and
// run in one.
func TestBundledPlugin(t *testing.T) {
	pl := newPlace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shim := filepath.Join(t.TempDir(), "serve") // like the hidden command: followed by the name
	script := fmt.Sprintf("#!/bin/sh\nexec %q %s\"$1\":good\n", self, pluginFlag)
	if err := os.WriteFile(shim, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	o := pl.options()
	o.Bundled = []sdk.Plugin{{Name: "good", Version: "1.0.0", Extensions: goodTools("good", "")}}
	o.BundledCommand = []string{shim}
	pl.link(t, "good", "good:good", nil)
	h := open(t, o)
	if broken := h.Broken(); len(broken) != 1 || !strings.Contains(broken[0].Error(), "duplicate name: the bundled plugin is used") {
		t.Errorf("a link of the same name: %v", broken)
	}
	p := h.Plugins()[0]
	if tools, err := p.Tools(t.Context()); err != nil || len(tools) != 6 || len(children(t)) != 0 {
		t.Errorf("%d tools, %v, processes %v", len(tools), err, children(t))
	}
	if got := must(t, p, "echo", echoArgs{"hello"}).text; got != "hello" || p.Scope() != plugins.Bundled {
		t.Errorf("echo: %q", got)
	}
}

// TestAddFromArchive installs, replaces and refuses plugins from archives.
func TestAddFromArchive(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed")
	}
	pl := newPlace(t)
	work := t.TempDir()
	pack := func(change func(map[string]any)) string {
		dir := filepath.Join(work, "good")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		placeBinary(t, filepath.Join(dir, "plugin.exe"))
		writeSpec(t, dir, "good", "good:good", change)
		archive := filepath.Join(work, "good.tar")
		if out, err := exec.CommandContext(t.Context(), "tar", "-C", work, "-cf", archive, "good").CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
		return archive
	}
	add := func(archive string) (*plugins.Candidate, error) {
		h := plugins.Open(t.Context(), pl.options())
		defer h.Close()
		c, err := h.Store().Prepare(t.Context(), archive)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		_, _, err = c.Install(t.Context(), h)
		return c, err
	}
	if _, err := add(pack(nil)); err != nil {
		t.Fatal(err)
	}
	h := open(t, pl.options())
	p := only(t, h)
	if got := must(t, p, "echo", echoArgs{"hello"}).text; got != "hello" || p.Scope() != plugins.User {
		t.Errorf("echo: %q, scope %s", got, p.Scope())
	}
	c, err := add(pack(func(s map[string]any) { s["manifest"] = map[string]any{"network": []string{"a.example"}} }))
	if err != nil || c.Before == nil || fmt.Sprint(c.NewPermissions()) != "[network a.example]" || len(c.Changes) != 1 {
		t.Errorf("an update: %v, %+v", err, c)
	}
	if got := must(t, p, "echo", echoArgs{"again"}).text; got != "again" || len(p.Spec().Manifest.Network) != 1 {
		t.Errorf("the updated plugin in a running session: %q, %v", got, p.Spec().Manifest)
	}
	// A plugin that fails to start does not replace the installed one.
	if _, err := add(pack(func(s map[string]any) { s["version"] = "9" })); err == nil || !strings.Contains(err.Error(), "its version is") {
		t.Errorf("a plugin that cannot be used: %v", err)
	}
	if err := p.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	comparesWhenNeeded(t, pl)
	for name, text := range map[string]string{"no.tar": "not an archive", "nothing": ""} {
		at := filepath.Join(work, name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := add(at); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := add("nowhere"); err == nil || !strings.Contains(err.Error(), "no such folder or archive") {
		t.Errorf("nothing: %v", err)
	}
}

// comparesWhenNeeded: at an agent's start, an installed plugin is compared as far as it
// is read; its program does not start if any file changed.
func comparesWhenNeeded(t *testing.T, pl *place) {
	t.Helper()
	extra := filepath.Join(pl.home, "plugins", "good", "added.txt")
	if err := os.WriteFile(extra, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if list, failed := plugins.Bundles(t.Context(), pl.home, false); len(list) != 1 || len(failed) > 0 {
		t.Errorf("a file that nothing reads: %v, %v", list, failed)
	}
	changed := (*plugins.ChecksumError)(nil)
	if list, failed := plugins.Bundles(t.Context(), pl.home, true); len(list) > 0 || len(failed) != 1 || !errors.As(failed[0], &changed) {
		t.Errorf("all files: %v, %v", list, failed)
	}
	p := only(t, open(t, pl.options()))
	tools, err := p.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := tools[0].Run(t.Context(), &core.Call{Args: json.RawMessage(`{"text":"x"}`), Output: io.Discard})
	if err != nil || res.Code == "" || !strings.Contains(model.Parts(res.Content).Text(), "added.txt was added") {
		t.Errorf("a call: %v, %+v", err, res)
	}
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	spec := filepath.Join(pl.home, "plugins", "good", plugins.SpecFile)
	text, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spec, append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, failed := plugins.Bundles(t.Context(), pl.home, false); len(list) > 0 || len(failed) != 1 || !errors.As(failed[0], &changed) {
		t.Errorf("an edited plugin.json: %v, %v", list, failed)
	}
	if err := os.WriteFile(spec, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKilledHostLeavesNothing kills the agent's process, so that it cannot clean
// up.
func TestKilledHostLeavesNothing(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:good", nil)
	pl.link(t, "stock", "stock:stock", nil) // which does not watch its stdin
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self, holdFlag+pl.home)
	stdout, err := host.StdoutPipe()
	if err == nil {
		err = host.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Wait() }()
	for range 2 {
		var pid int
		if _, err := fmt.Fscan(stdout, &pid); err != nil {
			_ = host.Process.Kill()
			t.Fatal(err)
		}
		defer waitFor(t, fmt.Sprintf("the end of plugin %d", pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func Example() {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	o := (&place{home: home, supervisor: exampleSupervisor()}).options()
	defer o.Supervisor.Close()

	h := plugins.Open(ctx, o) // starts nothing
	defer h.Close()
	for _, p := range h.Plugins() { // each is a core.Toolset
		tools, err := p.Tools(ctx)
		fmt.Println(p.Name(), len(tools), err)
	}
	for _, broken := range h.Broken() {
		fmt.Println(broken)
	}
	// Output:
}
