package page

import (
	"io"
	"testing"
	"time"
)

// BenchmarkExport writes the page of a session with 10,000 events.
func BenchmarkExport(b *testing.B) {
	m := memory{"s": longSession(10_000)}
	for b.Loop() {
		if err := Export(b.Context(), io.Discard, m, "s", cents, time.UTC); err != nil {
			b.Fatal(err)
		}
	}
}
