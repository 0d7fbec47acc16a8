package wire

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/seed-009c0928/agent/core/sse"
)

// maxAnswer bounds an event of a stream, and an answer that is not streamed.
const maxAnswer = 64 << 20

// newEvents reads the events of a service. Some leave out the blank line after
// an event, or after the last one.
func newEvents(r io.Reader) *sse.Reader {
	events := sse.NewReader(r, maxAnswer)
	events.Complete = complete
	return events
}

// nextEvent returns the next event with data, valid until the next call. It
// returns io.EOF at the end of the stream, also when an event is cut off there.
func nextEvent(events *sse.Reader) (sse.Event, error) {
	for {
		ev, err := events.Next()
		if errors.Is(err, sse.ErrIncomplete) {
			if !complete(ev.Data) {
				return sse.Event{}, io.EOF
			}
			err = nil
		}
		if err != nil || len(ev.Data) > 0 {
			return ev, err
		}
	}
}

func complete(data []byte) bool {
	return string(data) == "[DONE]" || json.Valid(data)
}
