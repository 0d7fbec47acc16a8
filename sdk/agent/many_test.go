package agent_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// slow is a model that answers when it is told to.
type slow struct {
	asked  chan struct{}
	answer chan struct{}
}

func (slow) Info() model.ProviderInfo { return model.ProviderInfo{Name: "slow", Model: "slow"} }

func (s slow) Stream(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.asked <- struct{}{}
		select {
		case <-s.answer:
		case <-ctx.Done():
			yield(model.Delta{}, ctx.Err())
			return
		}
		_ = yield(model.Delta{Kind: model.DeltaText, Text: "done"}, nil) && yield(model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd}, nil)
	}
}

// BenchmarkSessions opens 1,000 sessions of one agent, all of which wait for the model,
// with their logs in files or only in memory. The goal is 30 KiB each.
func BenchmarkSessions(b *testing.B) {
	for _, ephemeral := range []bool{false, true} {
		b.Run(fmt.Sprintf("ephemeral=%t", ephemeral), func(b *testing.B) { benchmarkSessions(b, ephemeral) })
	}
}

func benchmarkSessions(b *testing.B, ephemeral bool) {
	const many = 1000
	for b.Loop() {
		a, err := agent.Open(b.Context(), agent.Options{Dir: b.TempDir(), Home: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		before := memory()
		p := slow{make(chan struct{}), make(chan struct{})}
		var running sync.WaitGroup
		sessions := make([]*agent.Session, many)
		for i := range sessions {
			s, err := a.NewSession(b.Context(), agent.SessionOptions{Provider: p})
			if err != nil {
				b.Fatal(err)
			}
			sessions[i] = s
			running.Go(func() {
				if out, err := s.Submit(b.Context(), core.TextInput("go")); err != nil || out.Text != "done" {
					b.Errorf("session %d: %q, %v", i, out.Text, err)
				}
			})
		}
		for range sessions {
			<-p.asked
		}
		b.ReportMetric(float64(memory()-before)/many/1024, "KiB/session")
		close(p.answer)
		running.Wait()
		for _, s := range sessions {
			_ = s.Close()
		}
		_ = a.Close()
	}
}

// memory returns the bytes of objects and stacks in use.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
