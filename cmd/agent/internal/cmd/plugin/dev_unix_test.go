//go:build unix

package plugin

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

func TestMain(m *testing.M) {
	if os.Getenv(toolproto.CookieKey) == toolproto.CookieValue { // started as a plugin
		says, err := os.ReadFile("says.txt")
		if err != nil {
			panic(err)
		}
		sdk.Serve(sdk.Plugin{Name: "parrot", Version: "1.0.0"}, sdk.Tool("say", "Say it.", func(*sdk.Context, struct{}) (string, error) {
			return string(says), nil
		}))
	}
	os.Exit(m.Run())
}

// parrot writes a plugin whose program is this test.
func parrot(t *testing.T, dir, says string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"says.txt":     says,
		"samples.json": `{"samples": [{"tool": "say", "text": "hello"}]}`,
		"plugin.json":  `{"name": "parrot", "version": "1.0.0", "protocol": 1, "command": {"*": ["./parrot"]}}`,
		"parrot":       "#!/bin/sh\nexec '" + self + "'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// watched is output that a test waits for.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// TestDev: the plugin is linked and tested, and tested again after each change until
// the command is cancelled.
func TestDev(t *testing.T) {
	s, _ := newIO(t)
	out := &watched{}
	s.Out = out
	parrot(t, s.Cwd, "hello")
	o := &devOptions{}
	o.IO, o.yes, o.flags.Sets = s, true, []string{`sandbox.plugins=off`}
	wait, end := develop(t, o, out)
	wait("Linked parrot.", 1)
	wait("ready: 10 checks passed", 1)
	parrot(t, s.Cwd, "goodbye")
	wait(`text "goodbye", want "hello"`, 1)
	wait("the plugin parrot failed 1 of 10 checks", 1)
	if err := os.WriteFile(filepath.Join(s.Cwd, "plugin.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	wait("plugin.json:1:", 1)
	parrot(t, s.Cwd, "hello")
	wait("ready: 10 checks passed", 2)
	end()
	before := strings.Count(out.text(), "Linked")
	if linked, err := o.link(t.Context(), s.Cwd); err != nil || !linked || strings.Count(out.text(), "Linked") != before {
		t.Errorf("the second time: %t, %v", linked, err)
	}
}

// develop runs the command. It returns what waits until the output has a text so many
// times, and what ends the command.
func develop(t *testing.T, o *devOptions, out *watched) (wait func(text string, times int), end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx, o.folder(nil)) }()
	wait = func(text string, times int) {
		t.Helper()
		for end := time.Now().Add(coretest.Patience); strings.Count(out.text(), text) < times; {
			select {
			case err := <-ended:
				t.Fatalf("it ended: %v\n%s", err, out.text())
			case <-time.After(10 * time.Millisecond):
			}
			if time.Now().After(end) {
				t.Fatalf("no %q in\n%s", text, out.text())
			}
		}
	}
	end = func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	return wait, end
}

// TestDevBundle: a plugin for another program is built, linked and tested after each change,
// and what it runs is approved again if that grows.
func TestDevBundle(t *testing.T) {
	s, _ := newIO(t)
	out := &watched{}
	s.Out = out
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(s.Cwd, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".claude-plugin/plugin.json", `{"name": "notes"}`)
	write("about", "first")
	o := &devOptions{build: "mkdir -p skills/one && { echo ---; echo description: $(cat about); echo ---; echo Text.; } >skills/one/SKILL.md"}
	o.IO, o.yes = s, true
	wait, end := develop(t, o, out)
	wait("skill     notes:one first", 1)
	wait("Linked notes.", 1)
	wait("ready: 1 check passed", 1)
	write("about", "second")
	wait("building …", 2)
	wait("ready: 1 check passed", 2)
	write(".mcp.json", `{"mcpServers": {"db": {"command": "db"}}}`)
	wait("NEW since you linked it: MCP server notes_db", 1)
	wait("ready: 2 checks passed", 1)
	write(".mcp.json", `{"mcpServers": {"db": {"command": "db", "url": "https://example.com"}}}`)
	wait("FAIL  server db", 1)
	write(".claude-plugin/plugin.json", "{")
	wait("plugin.json:1:", 1)
	write(".claude-plugin/plugin.json", `{"name": "notes"}`)
	write(".mcp.json", `{"mcpServers": {"db": {"command": "db"}}}`)
	wait("ready: 2 checks passed", 2)
	end()
	if n := strings.Count(out.text(), "Linked notes."); n != 2 {
		t.Errorf("linked %d times:\n%s", n, out.text())
	}
}

// TestDevIgnoresItsOutput: the output of the command, such as with > dev.log, is no source.
func TestDevIgnoresItsOutput(t *testing.T) {
	s, _ := newIO(t)
	parrot(t, s.Cwd, "hello")
	log, err := os.Create(filepath.Join(s.Cwd, "dev.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := &devOptions{}
	o.IO, s.Out = s, &cmdutil.CheckedWriter{Writer: log}
	made := o.madeHere("")
	before := plugins.SourceStamp(s.Cwd, made)
	if _, err := log.WriteString("testing …\n"); err != nil {
		t.Fatal(err)
	}
	if plugins.SourceStamp(s.Cwd, made) != before {
		t.Error("its output counts as a source")
	}
	if parrot(t, s.Cwd, "goodbye"); plugins.SourceStamp(s.Cwd, made) == before {
		t.Error("a change was missed")
	}
}
