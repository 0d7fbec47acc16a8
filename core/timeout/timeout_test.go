package timeout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-009c0928/agent/core/timeout"
)

func TestPausesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		timer := timeout.New(t.Context(), time.Second)
		defer timer.Stop()
		time.Sleep(400 * time.Millisecond)
		timer.Pause()
		timer.Pause() // two questions at once
		time.Sleep(time.Hour)
		timer.Resume()
		time.Sleep(time.Hour)
		if timer.Expired() {
			t.Fatal("it timed out during a pause")
		}
		timer.Resume()
		<-timer.Context().Done()
		if took := time.Since(start) - 2*time.Hour; took != time.Second || !timer.Expired() {
			t.Errorf("ended after %s without the pauses, expired %t; want 1s", took, timer.Expired())
		}
	})
}

func TestStopAndParentAreNoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		byParent, byStop, none := timeout.New(ctx, time.Second), timeout.New(t.Context(), time.Second), timeout.New(t.Context(), 0)
		cancel()
		byStop.Stop()
		time.Sleep(time.Hour)
		for name, timer := range map[string]*timeout.Timer{"parent": byParent, "stop": byStop} {
			if timer.Context().Err() == nil || timer.Expired() {
				t.Errorf("%s: context error %v, expired %t", name, timer.Context().Err(), timer.Expired())
			}
			timer.Stop()
		}
		if none.Pause(); none.Context().Err() != nil {
			t.Error("a timer without a duration ended")
		}
		none.Resume()
		none.Stop()
	})
}
