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
	// Event takes one server-sent event, or an answer that came whole as JSON,
	// with an empty kind. The data is valid until Event returns. Its error is
	// that of emitting a delta, as it is; [ErrDone] at the service's own end
	// mark; a *[Failed]; or any other for an answer that cannot be understood.
	Event(kind string, data []byte) error
	// Done is asked when the stream has ended. It returns the DeltaDone, with
	// the usage, or io.ErrUnexpectedEOF if the answer is not whole, or why it
	// cannot be understood.
	Done() (model.Delta, error)
}

// ErrDone is the end of a stream that says so.
var ErrDone = errors.New("the stream says that it ends here")

// Failed is an event by which the service reports an error.
type Failed struct{ Data []byte }

// Error implements error.
func (*Failed) Error() string { return "the service reports an error" }

// Stream sends what prepare returns and yields the answer, as
// [model.Provider] promises. The decoder emits deltas with the function that
// newDecoder gets.
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
