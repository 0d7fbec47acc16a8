package vt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Live is a terminal that shows the output of a running program. It is safe for
// concurrent use.
type Live struct {
	mu   sync.Mutex
	term *Terminal
}

// NewLive returns an empty terminal.
func NewLive(width, height int) *Live { return &Live{term: New(width, height)} }

// Write processes a program's output.
func (l *Live) Write(p []byte) (int, error) {
	l.See(func(v *Terminal) { v.Write(string(p)) })
	return len(p), nil
}

// See calls f with the terminal, which f must not keep.
func (l *Live) See(f func(v *Terminal)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.term)
}

// All returns the text of the scrollback and the screen.
func (l *Live) All() (text string) {
	l.See(func(v *Terminal) { text = v.All() })
	return text
}

// Wait waits until the scrollback and the screen contain all texts at the same time.
func (l *Live) Wait(ctx context.Context, texts ...string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		now := l.All()
		if !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(now, t) }) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w; the terminal shows\n%s", texts, ctx.Err(), now)
		}
	}
}
