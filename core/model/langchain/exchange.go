package langchain

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// exchange is the HTTP client of one call. It is not an *http.Client, whose errors
// langchaingo replaces by texts that do not wrap the cause.
type exchange struct {
	*wire.Exchange
	provider *chat
	req      *model.Request
	model    string // requested
	yield    func(model.Delta, error) bool

	answer  answer
	stopped bool  // the consumer stopped
	err     error // what Do returned
}

// Do completes the request, sends it, streams the answer to the consumer and
// returns it as a completion that is not streamed.
func (x *exchange) Do(r *http.Request) (*http.Response, error) {
	err := x.send(r)
	switch {
	case err == nil:
		return completionResponse(r, x.answer.completion()), nil
	case errors.Is(err, wire.ErrStopped):
		x.stopped = true
		return nil, err
	}
	x.err = err
	return nil, err
}

func (x *exchange) send(r *http.Request) error {
	if err := x.complete(r); err != nil {
		return err
	}
	x.answer.emit = x.emit
	_, err := x.Receive(r, &x.answer)
	return err
}

func (x *exchange) emit(d model.Delta) error {
	if !x.yield(d, nil) {
		return wire.ErrStopped
	}
	return nil
}

func completionResponse(r *http.Request, body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
