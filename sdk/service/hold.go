package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// holding renews a lease until it ends. Whether the lease lasts is known from the clock
// of this process alone: it may have been stopped.
type holding struct {
	lease Lease
	ctx   context.Context // ends with the lease; then its cause is [core.ErrFenced]
	lose  context.CancelCauseFunc
	until atomic.Pointer[time.Time]
	work  sync.WaitGroup
}

// hold begins to renew a lease that was just taken.
func hold(ctx context.Context, l Lease) *holding {
	h := &holding{lease: l}
	h.ctx, h.lose = context.WithCancelCause(ctx)
	h.extend(time.Now())
	h.work.Go(h.renew)
	return h
}

// margin is the part of the term after which a lease counts as lost, so that this
// worker has let go when another one begins.
func (h *holding) extend(from time.Time) {
	until := from.Add(h.lease.Term() * 9 / 10)
	h.until.Store(&until)
}

// held reports whether the lease lasts. If not, all work under it ends.
func (h *holding) held() bool {
	if time.Now().Before(*h.until.Load()) {
		return true
	}
	h.lose(core.ErrFenced)
	return false
}

func (h *holding) renew() {
	tick := time.NewTicker(h.lease.Term() / 4)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		}
		if sent := time.Now(); h.held() && h.lease.Renew(h.ctx) == nil {
			h.extend(sent)
		}
	}
}

// end stops to renew the lease.
func (h *holding) end() {
	h.lose(nil)
	h.work.Wait()
}

// beforeTool is a [core.Hooks].BeforeTool: no tool starts when the lease is over.
func (h *holding) beforeTool(ctx context.Context, _ *model.ToolCall) error {
	if h.held() {
		return nil
	}
	<-ctx.Done() // the session is being closed
	return context.Cause(ctx)
}
