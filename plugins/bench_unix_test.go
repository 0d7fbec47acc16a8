//go:build !windows

package plugins_test

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

// known opens a host whose plugin was started once before, so that all that it
// offers is known.
func known(b *testing.B, mode sandbox.Mode) (*place, plugins.Options) {
	pl := newPlace(b)
	pl.link(b, "good", "good:good", nil)
	o := pl.options()
	o.Sandbox = mode
	h := plugins.Open(b.Context(), o)
	if _, err := only(b, h).Tools(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
	return pl, o
}

// BenchmarkOpen is what a plugin costs each start of the agent: no process.
func BenchmarkOpen(b *testing.B) {
	_, o := known(b, sandbox.ModeOff)
	b.ReportAllocs()
	for b.Loop() {
		h := plugins.Open(b.Context(), o)
		if tools, err := only(b, h).Tools(b.Context()); err != nil || len(tools) == 0 {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstCall is a call that starts the plugin, and its end.
func BenchmarkFirstCall(b *testing.B) {
	for name, mode := range map[string]sandbox.Mode{"plain": sandbox.ModeOff, "sandbox": sandbox.ModeAuto} {
		b.Run(name, func(b *testing.B) {
			_, o := known(b, mode)
			b.ReportAllocs()
			for b.Loop() {
				h := plugins.Open(b.Context(), o)
				must(b, only(b, h), "echo", say{"x"})
				b.StopTimer()
				if err := h.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkStartAlone is the plugin's own start, without the host: what
// BenchmarkFirstCall is to be compared with.
func BenchmarkStartAlone(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := sdktest.StartBinary(b, self, pluginFlag+"good:good")
		p.Call(b, "echo", say{"x"})
	}
}

// BenchmarkCall is a call of a plugin that runs, with a report of progress.
func BenchmarkCall(b *testing.B) {
	_, o := known(b, sandbox.ModeOff)
	h := open(b, o)
	tools, err := only(b, h).Tools(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	c := &core.Call{Args: json.RawMessage(`{"text":"x"}`), Output: &bytes.Buffer{}, Progress: func(core.Progress) {}}
	b.ReportAllocs()
	for b.Loop() {
		if res, err := tools[0].Run(b.Context(), c); err != nil || res.Code != "" {
			b.Fatal(err, res.Code)
		}
	}
}

// BenchmarkIdlePlugin is the memory that a running plugin takes in the host.
func BenchmarkIdlePlugin(b *testing.B) {
	_, o := known(b, sandbox.ModeOff)
	var before, after runtime.MemStats
	n := 0
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		must(b, only(b, open(b, o)), "echo", say{"x"})
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/float64(n), "B/plugin")
}
