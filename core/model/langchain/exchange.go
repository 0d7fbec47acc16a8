package langchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// exchange is the HTTP client of one call. langchaingo takes any type with Do;
// an *http.Client would not do, since langchaingo replaces the errors of one
// by texts that no longer hold the cause.
type exchange struct {
	provider *chat
	req      *model.Request
	ctx      context.Context // the consumer's; the call runs under one derived from it
	cancel   context.CancelCauseFunc
	yield    func(model.Delta, error) bool

	answer  answer
	stopped bool  // the consumer wants no more
	err     error // what Do returned
}

// errStopped ends the reading of an answer whose consumer has left.
var errStopped = errors.New("the consumer stopped")

// Do completes the request, sends it, streams the answer to the consumer and
// returns it, gathered, as a completion without streaming.
func (x *exchange) Do(r *http.Request) (*http.Response, error) {
	err := x.send(r)
	switch {
	case err == nil:
		return completionResponse(r, x.answer.completion()), nil
	case errors.Is(err, errStopped):
		x.stopped = true
		return nil, errStopped
	}
	x.err = err
	return nil, err
}

func completionResponse(r *http.Request, body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// send makes the request and reads its answer to the end.
func (x *exchange) send(r *http.Request) error {
	if err := x.complete(r); err != nil {
		return err
	}
	return x.roundTrip(r, x.receive)
}

// roundTrip sends the request and has read take the answer, both within their
// time limits. A *brokenError of read is a failure of the connection.
func (x *exchange) roundTrip(r *http.Request, read func(*http.Response, *watchedBody) error) error {
	p := x.provider
	first := x.after(p.cfg.FirstByteTimeout, errNoFirstByte)
	resp, err := p.client.Do(r)
	first.Stop()
	if err != nil {
		return x.lost(r.Context(), err, p.faults.connection)
	}
	defer func() { _ = resp.Body.Close() }() // whatever it says, the answer is complete or has failed by now
	body := &watchedBody{body: resp.Body, timer: x.after(p.cfg.IdleTimeout, errIdle), limit: p.cfg.IdleTimeout}
	defer body.timer.Stop()
	err = read(resp, body)
	var broken *brokenError
	if errors.As(err, &broken) {
		return x.lost(r.Context(), broken.err, x.brokenOff)
	}
	return err
}

// receive reads the answer. A *brokenError is a failure to read it.
func (x *exchange) receive(resp *http.Response, body *watchedBody) error {
	p := x.provider
	if resp.StatusCode != http.StatusOK {
		return x.refused(resp, body, chatPath)
	}
	kind := resp.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/html") {
		return p.faults.wrap(model.CodeInvalidResponse, fmt.Sprintf("%s answered with a web page, not with a completion: is providers.%s.baseUrl right?", p.info.Endpoint, p.info.Name), nil)
	}
	x.answer.emit = x.emit
	var err error
	if strings.HasPrefix(kind, "application/json") {
		err = x.receiveWhole(body, resp.Header)
	} else {
		err = x.receiveEvents(body, resp.Header)
	}
	if err != nil {
		return err
	}
	if err := x.answer.finish(); err != nil {
		return x.invalid(err)
	}
	return nil
}

// refused returns the error that an answer other than 200 stands for.
func (x *exchange) refused(resp *http.Response, body *watchedBody, path string) error {
	const longest = 64 << 10
	text, err := io.ReadAll(io.LimitReader(body, longest))
	if err != nil && x.ctx.Err() != nil {
		return &brokenError{err}
	}
	return x.provider.faults.response(resp, text, path) // a cut error body still has its status
}

// receiveEvents reads a stream of server-sent events.
func (x *exchange) receiveEvents(body *watchedBody, header http.Header) error {
	events := newEventReader(body)
	for {
		data, err := events.next()
		if err == nil {
			err = x.take(data, events.isError, header)
		}
		switch {
		case err == nil:
		case errors.Is(err, errDone):
			body.drain()
			return nil
		case errors.Is(err, io.EOF) && x.answer.finished():
			return nil // some servers leave [DONE] out
		case errors.Is(err, io.EOF):
			return &brokenError{io.ErrUnexpectedEOF}
		case errors.Is(err, errLineTooLong):
			return x.invalid(err)
		default:
			return err
		}
	}
}

// receiveWhole reads an answer of a server that does not stream.
func (x *exchange) receiveWhole(body io.Reader, header http.Header) error {
	data, err := io.ReadAll(io.LimitReader(body, maxLine))
	if err != nil {
		return &brokenError{err}
	}
	return x.take(data, false, header)
}

// errDone is the end of a stream that says so.
var errDone = errors.New("[DONE]")

// take handles one event.
func (x *exchange) take(data []byte, isError bool, header http.Header) error {
	if err := x.provider.faults.ended(x.ctx); err != nil {
		return err
	}
	if string(data) == "[DONE]" {
		if !x.answer.finished() {
			return &brokenError{io.ErrUnexpectedEOF} // a relay whose own source broke off
		}
		return errDone
	}
	err := errFailed
	if !isError {
		err = x.answer.add(data)
	}
	switch {
	case err == nil || errors.Is(err, errStopped):
		return err
	case errors.Is(err, errFailed):
		return x.provider.faults.event(data, header)
	}
	return x.invalid(err)
}

func (x *exchange) emit(d model.Delta) error {
	if !x.yield(d, nil) {
		return errStopped
	}
	return nil
}

func (x *exchange) invalid(err error) error {
	return x.provider.faults.wrap(model.CodeInvalidResponse, "the answer of "+x.provider.info.Endpoint+" cannot be understood", err)
}

// brokenError marks an error of reading the body.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

func (x *exchange) brokenOff(err error) *model.Error {
	return x.provider.faults.wrap(model.CodeNetwork, "the answer of "+x.provider.info.Endpoint+" broke off before its end", err)
}

// lost returns the error of a connection that failed: the consumer's own
// cancelling, one of the time limits, or what other makes of err.
func (x *exchange) lost(ctx context.Context, err error, other func(error) *model.Error) error {
	p := x.provider
	if ended := p.faults.ended(x.ctx); ended != nil {
		return ended
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errNoFirstByte):
		return p.faults.wrap(model.CodeTimeout, fmt.Sprintf("%s did not begin to answer within %v", p.info.Endpoint, p.cfg.FirstByteTimeout), nil)
	case errors.Is(cause, errIdle):
		return p.faults.wrap(model.CodeTimeout, fmt.Sprintf("%s sent nothing for %v in the middle of its answer", p.info.Endpoint, p.cfg.IdleTimeout), nil)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the rest of it repeats the address, with what may be secret in it
	}
	return other(err)
}

// after cancels the request with that cause when d has passed.
func (x *exchange) after(d time.Duration, cause error) *time.Timer {
	return time.AfterFunc(d, func() { x.cancel(cause) })
}

// watchedBody restarts a timer with everything that it reads.
type watchedBody struct {
	body  io.Reader
	timer *time.Timer
	limit time.Duration
}

// Read implements [io.Reader]. Its errors, but for io.EOF, are *brokenErrors.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.timer.Reset(b.limit)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // readers return io.EOF itself
		err = &brokenError{err}
	}
	return n, err
}

// drain reads the few bytes that may follow the last event, so that the
// connection can be used again, and waits for each no longer than a moment.
func (b *watchedBody) drain() {
	const moment, few = 50 * time.Millisecond, 4 << 10
	b.limit = moment
	b.timer.Reset(moment)
	_, _ = io.CopyN(io.Discard, b, few) // without the end of the body, the connection is closed
}
