package core_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
)

// endless is a model without latency that calls echo for so many rounds, or
// returns so many words.
type endless struct {
	rounds, words int
	made          int
}

func (*endless) Info() model.ProviderInfo { return model.ProviderInfo{Name: "bench", Model: "bench"} }

func (e *endless) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	e.made++
	return func(yield func(model.Delta, error) bool) {
		if e.made <= e.rounds {
			_ = yield(model.Delta{Kind: model.DeltaToolStart, ID: fmt.Sprint("c", e.made), Name: "echo"}, nil) &&
				yield(model.Delta{Kind: model.DeltaToolArgs, Text: `{"text":"x"}`}, nil) &&
				yield(model.Delta{Kind: model.DeltaToolEnd}, nil) &&
				yield(model.Delta{Kind: model.DeltaDone, Stop: model.StopToolCalls}, nil)
			return
		}
		for range e.words {
			if !yield(model.Delta{Kind: model.DeltaText, Text: "word "}, nil) {
				return
			}
		}
		yield(model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd}, nil)
	}
}

func benchSession(b *testing.B, p model.Provider) *core.Session {
	b.Helper()
	s, err := core.New(b.Context(), core.Config{
		Provider: p, Env: env.NewMemory("/work", nil), Policy: coretest.AllowAll, Journal: &coretest.MemoryJournal{},
		Tools: core.StaticTools(echo), Limits: core.Limits{NoLoopDetection: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkRounds runs a session of that many tool rounds: the time and the
// allocations of a round must not grow with their number.
func BenchmarkRounds(b *testing.B) {
	for _, rounds := range []int{50, 500} {
		b.Run(fmt.Sprint(rounds), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := benchSession(b, &endless{rounds: rounds, words: 1}).Submit(b.Context(), core.TextInput("go")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rounds), "ns/round")
		})
	}
}

// BenchmarkDeltas streams an answer of 5,000 deltas to a reader.
func BenchmarkDeltas(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := benchSession(b, &endless{words: 5000})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, err := range s.Events(b.Context(), 0) {
				if err != nil {
					b.Error(err)
				}
			}
		}()
		if _, err := s.Submit(b.Context(), core.TextInput("go")); err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
		<-done
	}
}
