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

// known prepares a host with a plugin whose description is cached.
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

// BenchmarkOpen measures the cost of a plugin at the agent's start.
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

// BenchmarkFirstCall measures a call that starts the plugin.
func BenchmarkFirstCall(b *testing.B) {
	for name, mode := range map[string]sandbox.Mode{"plain": sandbox.ModeOff, "sandbox": sandbox.ModeAuto} {
		b.Run(name, func(b *testing.B) {
			_, o := known(b, mode)
			b.ReportAllocs()
			for b.Loop() {
				h := plugins.Open(b.Context(), o)
				must(b, only(b, h), "echo", echoArgs{"x"})
				b.StopTimer()
				if err := h.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkStartAlone measures the plugin's start without the host, as the
// baseline for BenchmarkFirstCall.
func BenchmarkStartAlone(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := sdktest.StartBinary(b, self, pluginFlag+"good:good")
		p.Call(b, "echo", echoArgs{"x"})
	}
}

// BenchmarkCall measures a call of a running plugin, with a progress report.
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

// BenchmarkIdlePlugin measures the memory of the host per running plugin.
func BenchmarkIdlePlugin(b *testing.B) {
	_, o := known(b, sandbox.ModeOff)
	var before, after runtime.MemStats
	n := 0
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		must(b, only(b, open(b, o)), "echo", echoArgs{"x"})
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/float64(n), "B/plugin")
}
