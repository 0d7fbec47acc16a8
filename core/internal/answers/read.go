package answers

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Source is what answers, and what its answers get.
type Source struct {
	Provider model.Provider
	Clock    func() time.Time
	NewID    func() string // of calls without one
}

// Ask makes a request and passes the events of its answer on. It returns the answer and
// the event of its end. On an error the answer has the text that was received.
func (s Source) Ask(ctx context.Context, req *model.Request, emit func(event.Body)) (event.Message, event.LLMEnd, error) {
	name, start := s.Provider.Info().Name, s.Clock()
	resp, first, err := read(ctx, s.Provider, req, s.Clock, emit)
	answer := event.Message{Provider: name, Model: req.Model}
	if resp != nil {
		answer.Content, answer.Usage, answer.Stop, answer.ResponseID = resp.Parts, resp.Usage, resp.Stop, resp.ID
		answer.Provider, answer.Model = By(resp, name, req.Model)
	}
	if err == nil && resp.Empty() {
		err = &model.Error{Code: model.CodeInvalidResponse, Provider: answer.Provider, Message: model.ErrEmpty.Error(), Err: model.ErrEmpty}
		answer.Content = nil
	}
	end := event.LLMEnd{Provider: answer.Provider, Model: answer.Model, LatencyMS: s.Clock().Sub(start).Milliseconds(), FirstMS: first.Milliseconds()}
	if err != nil {
		answer.Partial = true
		end.Error, end.Code = err.Error(), model.AsError(err).Code
		answer.Content = textOnly(answer.Content)
	}
	uniqueIDs(answer.Content, s.NewID)
	end.Usage, end.Stop = answer.Usage, answer.Stop
	return answer, end, err
}

// read passes the events of an answer on. On an error the response holds what was
// received. First is the time to the first part.
func read(ctx context.Context, p model.Provider, req *model.Request, clock func() time.Time, emit func(event.Body)) (resp *model.Response, first time.Duration, err error) {
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
