package wire

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-009c0928/agent/core/model"
)

// Decoder turns the events of one answer into deltas. It is used by one
// goroutine.
type Decoder interface {
	// Event handles one server-sent event, or an answer in JSON that is not
	// streamed, with an empty kind. The data is valid until Event returns. Its
	// error is that of emitting a delta, unwrapped; [ErrDone] at the service's
	// end mark; a *[Failed]; or any other if the answer is invalid.
	Event(kind string, data []byte) error
	// Done is called when the stream has ended. It returns the DeltaDone, with
	// the usage; io.ErrUnexpectedEOF if the answer is incomplete; or any other
	// error if it is invalid.
	Done() (model.Delta, error)
}

// ErrDone is returned for the event that ends a stream.
var ErrDone = errors.New("end of the stream")

// Failed is the error of an event by which the service reports an error.
type Failed struct{ Data []byte }

// Error implements error.
func (*Failed) Error() string { return "the service reports an error" }

// Stream sends the request that prepare returns and yields the answer as
// [model.Provider] requires. The decoder emits deltas with emit.
func (c *Client) Stream(ctx context.Context, prepare func() (Post, error), newDecoder func(emit func(model.Delta) error) Decoder) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		x := c.Exchange(ctx)
		defer x.Close()
		stopped := false
		dec := newDecoder(func(d model.Delta) error {
			if stopped = stopped || !yield(d, nil); stopped {
				return ErrStopped
			}
			return nil
		})
		done, err := x.stream(prepare, dec)
		if !stopped {
			c.End(ctx, done, err, yield)
		}
	}
}

func (x *Exchange) stream(prepare func() (Post, error), dec Decoder) (model.Delta, error) {
	if err := x.client.Ended(x.consumer); err != nil {
		return model.Delta{}, err
	}
	post, err := prepare()
	if err != nil {
		return model.Delta{}, err
	}
	return x.Receive(x.request(post), dec)
}
