package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestPostponeGC checks that GOGC is back to its default after the first collection.
func TestPostponeGC(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	postponeGC()
	if got := percent(); got != 400 {
		t.Fatalf("GOGC = %d, want 400", got)
	}
	for deadline := time.Now().Add(time.Minute); percent() != 100; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("GOGC is not reset after a collection")
		}
	}
	t.Setenv("GOGC", "50")
	postponeGC()
	if got := percent(); got != 100 {
		t.Errorf("postponeGC changed a GOGC that the user set to %d", got)
	}
}
