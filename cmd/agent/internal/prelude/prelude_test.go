package prelude

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestPostpone checks that GOGC is back to its default after the first collection.
func TestPostpone(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	postpone()
	if got := percent(); got != 400 {
		t.Fatalf("GOGC = %d, want 400", got)
	}
	for deadline := time.Now().Add(time.Minute); percent() != 100; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("GOGC is not reset after a collection")
		}
	}
	t.Setenv("GOGC", "50")
	postpone()
	if got := percent(); got != 100 {
		t.Errorf("postpone changed a GOGC that the user set to %d", got)
	}
}
