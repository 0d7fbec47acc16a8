package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestPostponeGC: after the first collection the runtime's own measure holds.
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
		t.Fatalf("the measure is %d %%, want 400", got)
	}
	for deadline := time.Now().Add(10 * time.Second); percent() != 100; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the measure stays what it was at the start")
		}
	}
	t.Setenv("GOGC", "50")
	postponeGC()
	if got := percent(); got != 100 {
		t.Errorf("with GOGC set, the measure is changed to %d %%", got)
	}
}
