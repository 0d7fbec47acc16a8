package service_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/api"
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

// BenchmarkWorkers runs the sessions of BenchmarkSessions with a model that takes 300 ms,
// on one worker and on four, of eight places each.
func BenchmarkWorkers(b *testing.B) {
	for _, workers := range []int{1, 4} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			db, _ := engine(b)
			for range workers {
				runWorker(b, db, with(b.TempDir(), slow{byConversation{}, 300 * time.Millisecond}), 8)
			}
			const each = 160
			n := 0
			for b.Loop() {
				for i := range each {
					id := fmt.Sprintf("s%d", n+i)
					create(b, db, id, core.Allow)
					send(b, db, id, rounds("in", 0))
				}
				for range each {
					until(b, db, fmt.Sprintf("s%d", n), in(service.State(core.StateIdle)))
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "sessions/s")
		})
	}
}

// slow is a model that takes some time for an answer.
type slow struct {
	model.Provider
	latency time.Duration
}

func (s slow) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		select {
		case <-time.After(s.latency):
			s.Provider.Stream(ctx, req)(yield)
		case <-ctx.Done():
			yield(model.Delta{}, ctx.Err())
		}
	}
}

// BenchmarkRunning runs sessions of which each is followed over HTTP, and measures the time
// from an event to the client. The model takes 100 ms, for two answers in each session.
func BenchmarkRunning(b *testing.B) {
	for _, running := range []int{20, 500} {
		b.Run(fmt.Sprint(running), func(b *testing.B) { benchmarkRunning(b, running) })
	}
}

func benchmarkRunning(b *testing.B, running int) {
	db, _ := engine(b)
	runWorker(b, db, with(b.TempDir(), slow{byConversation{}, 100 * time.Millisecond}), running)
	a, err := api.New(api.Options{Engine: db, Tokens: []api.Token{{Hash: api.Hash("all"), Tenant: tenant, Scopes: []api.Scope{api.ScopeRead}}}})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(a)
	defer server.Close()
	var took []time.Duration
	n := 0
	for b.Loop() {
		times := make([][]time.Duration, running)
		var following sync.WaitGroup
		for i := range times {
			id := fmt.Sprintf("s%d", n+i)
			create(b, db, id, core.Allow)
			following.Go(func() { times[i] = follow(b, server, id) })
		}
		for i := range times {
			send(b, db, fmt.Sprintf("s%d", n+i), rounds("in", 1))
		}
		following.Wait()
		n += running
		took = slices.Concat(append(times, took)...)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "events/s")
}

// follow reads the events of a session until it is idle, and returns how old each was.
func follow(b *testing.B, server *httptest.Server, id string) (ages []time.Duration) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		b.Error(err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer all")
	res, err := server.Client().Do(req)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, err := io.ReadAll(res.Body)
		b.Errorf("session %s: %s: %s, %v", id, res.Status, text, err)
		return nil
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(text, &e); err != nil {
			b.Error(err)
			return ages
		}
		ages = append(ages, time.Since(e.Time))
		if _, idle := e.Body.(event.Idle); idle {
			return ages
		}
	}
	b.Errorf("session %s was not idle before the end of its events: %v", id, lines.Err())
	return ages
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
