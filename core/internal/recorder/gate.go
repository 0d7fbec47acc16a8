package recorder

import (
	"context"
	"sync"
)

// Gate lets calls in until it is shut. The zero value is open.
type Gate struct{ mu sync.RWMutex }

// Enter waits until the gate is open, and returns what the caller calls when it leaves.
func (g *Gate) Enter() (leave func()) {
	g.mu.RLock()
	return g.mu.RUnlock
}

// Shut lets no other caller in, and waits until all have left or ctx is done. The gate
// stays shut until open is called.
func (g *Gate) Shut(ctx context.Context) (open func()) {
	quiet, opened := make(chan struct{}), make(chan struct{})
	go func() {
		g.mu.Lock()
		close(quiet)
		<-opened
		g.mu.Unlock()
	}()
	select {
	case <-quiet:
	case <-ctx.Done():
	}
	return func() { close(opened) }
}
