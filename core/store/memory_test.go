package store_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// TestLargeLogResumesInBoundedMemory resumes a log of 100 MB: full outputs,
// and a conversation that was compacted many times.
func TestLargeLogResumesInBoundedMemory(t *testing.T) {
	dir := t.TempDir()
	j := create(t, dir, store.Options{})
	seq, text := 0, strings.Repeat("output of a tool, with \"quotes\"\n", 60_000/32)
	write := func(id string, body event.Body) {
		seq++
		e := newEvent(seq, body)
		e.Call, e.Required = id, event.Rebuilds(body)
		appendAll(t, j, e)
	}
	for i := range 1000 {
		id := fmt.Sprint("c", i)
		write("", event.User{Content: model.TextParts("go on")})
		write("", event.Message{Content: model.Parts{model.ToolCall{ID: id, Name: "x", Args: "{}"}}, Stop: model.StopToolCalls})
		write(id, event.ToolResult{Name: "x", Content: model.TextParts(text[:30_000]), Output: &event.Output{Text: text, Bytes: 1}})
		if i%100 == 99 {
			write("", event.Compacted{Content: model.TextParts("notes"), Summarised: 300})
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	before := heapSys()
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	s, err := core.New(t.Context(), core.Config{
		ID: "s", Provider: coretest.Model(), Env: env.NewMemory("/", nil), Policy: coretest.DenyAll, Journal: j,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	const bound = 64 << 20
	if grown := int64(heapSys() - before); grown > bound {
		t.Errorf("resuming took %d MiB, want at most %d", grown>>20, bound>>20)
	}
}

// heapSys returns the heap memory obtained from the system, which hardly ever
// shrinks.
func heapSys() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}

// resume continues session "s" with one input.
func resume(dir string) error {
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		return err
	}
	defer j.Close()
	ctx := context.Background()
	s, err := core.New(ctx, core.Config{ID: "s", Provider: coretest.Model(coretest.Say("on")), Env: env.NewMemory("/", nil), Policy: coretest.DenyAll, Journal: j})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Submit(ctx, core.TextInput("go on"))
	return err
}
