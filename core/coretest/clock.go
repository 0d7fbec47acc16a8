package coretest

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Clock returns a clock for core.Config: it starts at 2026-03-01 12:00 UTC and
// advances by a millisecond at each reading. It is safe for concurrent use.
func Clock() func() time.Time {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	var reads atomic.Int64
	return func() time.Time {
		return start.Add(time.Duration(reads.Add(1)-1) * time.Millisecond)
	}
}

// NewID returns a source of ids for core.Config: prefix-1, prefix-2 and so on.
// It is safe for concurrent use.
func NewID(prefix string) func() string {
	var last atomic.Int64
	return func() string { return fmt.Sprintf("%s-%d", prefix, last.Add(1)) }
}
