package answers

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Read makes a request and passes the events of its answer on. On an error the
// response holds what was received. First is the time to the first part.
func Read(ctx context.Context, p model.Provider, req *model.Request, clock func() time.Time, emit func(event.Body)) (resp *model.Response, first time.Duration, err error) {
	var g model.Gatherer
	start, begun, name := clock(), false, req.Model
	defer func() {
		if v := recover(); v != nil {
			err = &model.Error{Code: model.CodeUnknown, Provider: p.Info().Name, Message: fmt.Sprintf("the provider panicked: %v", v)}
		}
	}()
	if err := ctx.Err(); err != nil { // nothing is asked after a cancellation
		return nil, 0, err
	}
	for d, derr := range p.Stream(ctx, req) {
		if derr != nil {
			partial, _ := g.Response()
			return partial, first, derr
		}
		if d.Kind == model.DeltaRetry {
			if emit(Retry(d.Retry)); d.Retry.Discard {
				begun, first = false, 0
			}
			if d.Retry.Next != nil {
				name = d.Retry.Next.Model
			}
		} else if !begun {
			begun, first = true, clock().Sub(start)
			emit(event.MessageStart{Model: name})
		}
		switch d.Kind {
		case model.DeltaText:
			emit(event.MessageDelta{Text: d.Text})
		case model.DeltaReasoning:
			emit(event.ReasoningDelta{Text: d.Text})
		}
		if err := g.Add(d); err != nil {
			return nil, first, err
		}
	}
	resp, err = g.Response()
	return resp, first, err
}
