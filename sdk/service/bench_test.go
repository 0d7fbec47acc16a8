package service_test

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// BenchmarkSessions runs batches of sessions of one input and one answer, from the
// command to the end, on one worker in this process. Several clients create them.
func BenchmarkSessions(b *testing.B) {
	const clients, each = 8, 50
	db, _ := engine(b)
	runWorker(b, db, opener(b.TempDir(), ""), 16)
	n := 0
	for b.Loop() {
		var creating sync.WaitGroup
		for c := range clients {
			creating.Go(func() {
				for i := range each {
					id := fmt.Sprintf("s%d", n+c*each+i)
					create(b, db, id, core.Allow)
					send(b, db, id, rounds("in", 0))
				}
			})
		}
		creating.Wait()
		for range clients * each {
			until(b, db, fmt.Sprintf("s%d", n), in(service.State(core.StateIdle)))
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "sessions/s")
}

// BenchmarkParked parks sessions with a question, and says what one takes on disk.
func BenchmarkParked(b *testing.B) {
	db, dir := engine(b)
	runWorker(b, db, opener(b.TempDir(), filepath.Join(b.TempDir(), "effects")), 16)
	n := 0
	for b.Loop() {
		n++
		create(b, db, fmt.Sprintf("s%d", n), core.Ask)
		send(b, db, fmt.Sprintf("s%d", n), rounds("in", 1))
	}
	for i := range n {
		until(b, db, fmt.Sprintf("s%d", i+1), in(service.State(core.StateParked)))
	}
	var size int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/float64(n), "bytes/session")
}

// BenchmarkWatch measures the time from an append to the event at one who watches.
func BenchmarkWatch(b *testing.B) {
	db, _ := engine(b)
	j, err := db.Journal(b.Context(), tenant, "s")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	seen := make(chan time.Time)
	go func() {
		defer close(seen)
		for _, err := range db.Watch(ctx, tenant, "s", 0) {
			if err != nil {
				return
			}
			seen <- time.Now()
		}
	}()
	var took []time.Duration
	for b.Loop() {
		started := time.Now()
		if err := j.Append(b.Context(), event.Event{V: event.Version, Seq: event.Seq(len(took) + 1), Body: event.Warning{Message: "m"}}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-seen).Sub(started))
	}
	cancel()
	for range seen {
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
