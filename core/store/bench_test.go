package store_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// BenchmarkResume opens a session of 100,000 records, which was compacted near its end.
func BenchmarkResume(b *testing.B) {
	dir := b.TempDir()
	size := writeLong(b, dir, 100_000)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		j, err := store.Open(dir, longID, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s, err := core.New(b.Context(), core.Config{
			Provider: silent{}, Env: env.NewMemory("/work", nil), Policy: coretest.AllowAll, Journal: j,
		})
		if err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(s)
		_ = s.Close()
		_ = j.Close()
	}
}

const longID = "01980000-0000-7000-8000-000000000000"

// writeLong writes the log of a session with so many records, and returns its size.
func writeLong(b *testing.B, dir string, records int) int64 {
	b.Helper()
	j, err := store.Create(dir, longID, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	seq := event.Seq(0)
	add := func(call string, body event.Body) {
		seq++
		e := event.Event{
			V: event.Version, Seq: seq, Time: time.Unix(1_700_000_000+int64(seq), 0).UTC(), Session: longID, Call: call,
			Required: event.Rebuilds(body), Body: body,
		}
		if err := j.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	add("", event.SessionStart{Cwd: "/work", Provider: "local", Model: "m"})
	output := model.TextParts(strings.Repeat("a line of output\n", 40))
	for n := 0; int(seq) < records-8; n++ {
		id := fmt.Sprint("call-", n)
		add("", event.User{Content: model.TextParts("do the next thing")})
		add("", event.LLMStart{Provider: "local", Model: "m"})
		add("", event.Message{Content: model.Parts{model.ToolCall{ID: id, Name: "shell", Args: `{"command":"make test"}`}}, Stop: model.StopToolCalls})
		add("", event.LLMEnd{Provider: "local", Model: "m"})
		add(id, event.ToolResult{Name: "shell", Content: output, DurationMS: 1200})
		add("", event.Message{Content: model.TextParts("Done: all is well."), Stop: model.StopEnd})
		add("", event.Idle{State: "idle", Stop: "done"})
		if int(seq) > records-100 && int(seq) <= records-93 {
			add("", event.Compacted{Content: model.TextParts("What was done so far."), Summarised: 4 * n})
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(j.Path())
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

// silent is a model that is not asked.
type silent struct{}

func (silent) Info() model.ProviderInfo { return model.ProviderInfo{Name: "silent", Model: "silent"} }

func (silent) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(func(model.Delta, error) bool) {}
}
