//go:build !windows

package plugins_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/plugins"
)

// TestFaultyStarts starts plugins that fail before their first call. The error
// must name the plugin and the fault.
func TestFaultyStarts(t *testing.T) {
	for mode, want := range map[string]string{
		"early stdout":    `it printed "Loading the weather…" to stdout instead of a handshake line`,
		"early flood":     `it printed "xxxxxxxxxx`,
		"hang":            "it printed no handshake line within 1s",
		"exit":            "it exited before it was ready (exit code 3); last output: the moon is full",
		"wrong version":   "it uses version 7 of the plugin protocol, this agent version 1",
		"net/rpc":         `it uses "netrpc", expected grpc`,
		"bogus socket":    "it did not answer on its socket",
		"no socket":       "no such file or directory",
		"foreign socket":  `it listens on unix "/var/run/docker.sock", expected a unix socket in the directory`,
		"climbing socket": "expected a unix socket in the directory",
		"tcp":             `it listens on tcp "127.0.0.1:1", expected a unix socket`,
		"other name":      `its name is "somebody"`,
		"other version":   `its version is "2.0.0"`,
		"greedy":          "it needs more than the manifest in its plugin.json grants: network evil.example",
		"no object":       `tool "echo": its schema must be a JSON object with "type": "object"`,
		"no schema":       `tool "echo": its schema must be a JSON object`,
		"twice":           `duplicate tool "echo"`,
		"shell access":    `tool "echo": access to "shell-run": expected`,
		"adds context":    "plugin.json grants no budget",
		"dynamic":         `does not set "dynamic": true`,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pl.link(t, "bad", "bad:"+mode, nil)
			pl.link(t, "good", "good:good", nil)
			o := pl.options()
			if mode == "hang" || mode == "bogus socket" {
				o.StartTimeout = time.Second
			}
			list := open(t, o).Plugins()
			_, err := list[0].Tools(t.Context())
			if mode == "bogus socket" && err != nil && strings.Contains(err.Error(), "deadline") {
				err = errors.New("plugin bad: it did not answer on its socket") // whichever came first
			}
			if err == nil || !strings.HasPrefix(err.Error(), "plugin bad: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
			if _, err := list[1].Tools(t.Context()); err != nil {
				t.Errorf("the other plugin: %v", err)
			}
		})
	}
}

// TestFaultyCalls makes failing calls. Each must have a result that names the
// plugin, and the next call must work.
func TestFaultyCalls(t *testing.T) {
	for w, want := range map[string]string{
		"panic":           "the plugin panicked: boom in the handler",
		"panic elsewhere": "The plugin good crashed (exit code 2); last output: panic: boom in a goroutine.",
		"exit":            "The plugin good crashed (exit code 9)",
		"too large":       "The plugin good was aborted: it sent more than 256 MiB of text.",
	} {
		t.Run(w, func(t *testing.T) {
			t.Parallel()
			_, p := openPlugin(t, "good")
			o, err := call(t, t.Context(), p, "misbehave", misbehavior{What: w}, "")
			text := o.text[max(0, len(o.text)-400):]
			if err != nil || o.Code != core.CodeUnknown || !strings.Contains(text, want) {
				t.Errorf("%v, %s %q, want UNKNOWN %q", err, o.Code, text, want)
			}
			if got := must(t, p, "echo", echoArgs{"again"}).text; got != "again" {
				t.Errorf("the next call: %q", got)
			}
		})
	}
}

func TestMessageTooLarge(t *testing.T) {
	_, p := openPlugin(t, "message too large")
	o, err := call(t, t.Context(), p, "echo", echoArgs{"x"}, "")
	if err != nil || !strings.Contains(o.text, "a message was larger than 64 MiB") {
		t.Errorf("%v, %q", err, o.text)
	}
}

// TestStdoutIsDrained floods descriptor 1, bypassing the SDK.
func TestStdoutIsDrained(t *testing.T) {
	pl, p := openPlugin(t, "good")
	for range 5 {
		if got := must(t, p, "misbehave", misbehavior{What: "flood"}).text; got != "1048576" {
			t.Fatalf("wrote %s", got)
		}
	}
	info, err := os.Stat(filepath.Join(plugins.LogDir(pl.home), "good.log"))
	if err == nil && info.Size() > 1<<20 {
		t.Errorf("the log grew to %d bytes", info.Size())
	}
}

func TestLargeResult(t *testing.T) {
	_, p := openPlugin(t, "good")
	if got := must(t, p, "misbehave", misbehavior{What: "large"}).text; len(got) != 100_000_000 || got[99_999_990:] != "0123456789" {
		t.Errorf("%d bytes received", len(got))
	}
}

func TestEndlessProgressIsLimitedAndCancelled(t *testing.T) {
	_, p := openPlugin(t, "good")
	must(t, p, "echo", echoArgs{"x"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begin := time.Now()
	o, err := call(t, ctx, p, "misbehave", misbehavior{What: "endless progress"}, "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", err)
	}
	took := time.Since(begin)
	if most := int(took/(100*time.Millisecond)) + 1; len(o.progress) == 0 || len(o.progress) > most {
		t.Errorf("%d reports in %s", len(o.progress), took)
	}
}

// TestUnresponsiveProcessIsKilled stops the process during a call: cancelling
// returns, and the process is replaced. A process that only ignores the
// cancellation is kept.
func TestUnresponsiveProcessIsKilled(t *testing.T) {
	for _, w := range []string{"stop", "ignore cancel"} {
		t.Run(w, func(t *testing.T) {
			t.Parallel()
			_, p := openPlugin(t, "good")
			pid, err := strconv.Atoi(mustPid(t, p))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if _, err := call(t, ctx, p, "misbehave", misbehavior{What: w}, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline's", err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("cancelling took %s", took)
			}
			if w == "ignore cancel" {
				if got := mustPid(t, p); got != strconv.Itoa(pid) {
					t.Errorf("a responsive plugin was killed for ignoring a cancellation")
				}
				return
			}
			waitFor(t, "the end of the stopped process", func() bool { return syscall.Kill(pid, 0) != nil })
			if got := must(t, p, "echo", echoArgs{"again"}).text; got != "again" {
				t.Errorf("the next call: %q", got)
			}
		})
	}
}

// TestCloseIsBounded closes hosts of plugins that do not exit by themselves.
func TestCloseIsBounded(t *testing.T) {
	for _, w := range []string{"stop", "grandchild", "ignore cancel"} {
		t.Run(w, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pl.link(t, "good", "good:good", nil)
			h := plugins.Open(t.Context(), pl.options())
			p := only(t, h)
			pids := []string{mustPid(t, p)}
			if w == "grandchild" {
				pids = append(pids, must(t, p, "misbehave", misbehavior{What: w}).text)
			} else {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = call(t, ctx, p, "misbehave", misbehavior{What: w}, "")
				}()
				defer func() { <-done }()
				if w == "stop" {
					waitFor(t, "the plugin to stop", func() bool { return stopped(t, pids[0]) })
				}
			}
			begin := time.Now()
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("Close took %s", took)
			}
			for _, text := range pids {
				pid, err := strconv.Atoi(text)
				if err != nil {
					t.Fatal(err)
				}
				waitFor(t, "the end of process "+text, func() bool { return syscall.Kill(pid, 0) != nil })
			}
		})
	}
}

// stopped reports whether a process is stopped.
func stopped(t testing.TB, pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Skip("no /proc")
	}
	return strings.Contains(string(data), ") T ")
}

// TestChangedDescription uses a plugin whose description changes although its
// files do not.
func TestChangedDescription(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:moody", nil)
	first := plugins.Open(t.Context(), pl.options())
	if _, err := only(t, first).Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	p := only(t, open(t, pl.options()))
	o, err := call(t, t.Context(), p, "echo", echoArgs{"x"}, "")
	if err != nil || o.Code == "" || !strings.Contains(o.text, `tool "misbehave" has another description`) {
		t.Errorf("%v, %s %q", err, o.Code, o.text)
	}
}

// TestRestartsAreBounded uses a plugin that exits on each start.
func TestRestartsAreBounded(t *testing.T) {
	pl := newPlace(t)
	dir := pl.link(t, "bad", "bad:exit", nil)
	now := time.Now()
	o := pl.options()
	o.Clock = func() time.Time { return now }
	p := only(t, open(t, o))
	try := func() string {
		_, err := p.Tools(t.Context())
		return err.Error()
	}
	for range 3 {
		if got := try(); !strings.Contains(got, "exit code 3") || strings.Contains(got, "not restarted") {
			t.Errorf("start: %s", got)
		}
	}
	if got := try(); !strings.Contains(got, "it failed 3 times in a row and is not restarted for 1s") {
		t.Errorf("fourth start: %s", got)
	}
	now = now.Add(2 * time.Second)
	if got := try(); strings.Contains(got, "not restarted") {
		t.Errorf("after the pause: %s", got)
	}
	if got := try(); !strings.Contains(got, "for 2s") {
		t.Errorf("next start: %s", got)
	}
	writeSpec(t, dir, "bad", "bad:good", func(s map[string]any) { s["summary"] = "repaired" })
	if _, err := p.Tools(t.Context()); err != nil {
		t.Errorf("a repaired plugin: %v", err)
	}
}

// TestBadInput uses plugins that cannot be started at all.
func TestBadInput(t *testing.T) {
	pl := newPlace(t)
	broken := map[string]struct {
		breakIt func(dir string) error
		want    string
	}{
		"missing":    {func(dir string) error { return os.Remove(filepath.Join(dir, "plugin.exe")) }, "is missing: build it"},
		"plain-file": {func(dir string) error { return replace(dir, "text", 0o644) }, "is not executable: run chmod +x"},
		"json": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "plugin.json"), []byte("{\n  \"name\": \"json\",\n  \"version\" \"1\"\n}"), 0o600)
		}, "plugin.json:3:13:"},
		"unknown-key": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "plugin.json"), []byte("{\n  \"nmae\": \"json\"\n}"), 0o600)
		}, `plugin.json:2:3: unknown key "nmae"`},
		"other-system": {func(dir string) error {
			writeSpec(t, dir, "other-system", "x", func(s map[string]any) { s["command"] = map[string]any{"plan9/mips": []string{"./plugin.exe"}} })
			return nil
		}, "it has no command for"},
		"not-in-path": {func(dir string) error {
			writeSpec(t, dir, "not-in-path", "x", func(s map[string]any) { s["command"] = map[string]any{"*": []string{"no-such-interpreter"}} })
			return nil
		}, `its program "no-such-interpreter" is not in PATH`},
		"misnamed": {func(dir string) error { writeSpec(t, dir, "misnomer", "x", nil); return nil }, `the plugin's name is "misnomer", expected "misnamed"`},
		"gone":     {os.RemoveAll, "is not a plugin"},
	}
	for name, b := range broken {
		if err := b.breakIt(pl.link(t, name, name+":good", nil)); err != nil {
			t.Fatal(err)
		}
	}
	dir := pl.link(t, "foreign", "foreign:good", nil)
	if err := replace(dir, "\x7fELF\x02\x01\x01 of another machine", 0o755); err != nil {
		t.Fatal(err)
	}
	pl.link(t, "good", "good:good", nil)
	h := open(t, pl.options())
	for _, e := range h.Broken() {
		want := broken[e.Plugin].want
		delete(broken, e.Plugin)
		if want == "" || !strings.Contains(e.Error(), want) {
			t.Errorf("%v, want an error with %q", e, want)
		}
	}
	for name := range broken {
		t.Errorf("%s is not reported as broken", name)
	}
	for _, p := range h.Plugins() {
		_, err := p.Tools(t.Context())
		switch {
		case p.Name() == "good" && err != nil:
			t.Error(err)
		case p.Name() == "foreign" && (err == nil || !strings.Contains(err.Error(), "its program is not for")):
			t.Errorf("a program of another machine: %v", err)
		}
	}
}

// replace puts another program into a plugin's folder.
func replace(dir, text string, mode os.FileMode) error {
	at := filepath.Join(dir, "plugin.exe")
	return errors.Join(os.Remove(at), os.WriteFile(at, []byte(text), mode))
}
