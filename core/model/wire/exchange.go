package wire

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
	"github.com/seed-009c0928/agent/core/sse"
)

// Exchange is one request and its answer, within the client's time limits.
type Exchange struct {
	client   *Client
	consumer context.Context // of the consumer; ctx is derived from it
	ctx      context.Context
	cancel   context.CancelCauseFunc
}

// Exchange returns a new exchange. The caller must close it.
func (c *Client) Exchange(ctx context.Context) *Exchange {
	x := &Exchange{client: c, consumer: ctx}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

// Context returns the context that the request must use.
func (x *Exchange) Context() context.Context { return x.ctx }

// Close ends the exchange.
func (x *Exchange) Close() { x.cancel(nil) }

// ErrStopped is the error of emitting a delta after the consumer stopped.
var ErrStopped = errors.New("the consumer stopped")

// Receive authorizes and sends r, passes the events of the answer to dec, and
// returns its DeltaDone. The error is a *model.Error or [ErrStopped].
func (x *Exchange) Receive(r *http.Request, dec Decoder) (done model.Delta, err error) {
	err = x.roundTrip(r, func(resp *http.Response, body *watchedBody) error {
		if err := x.check(resp, body, r.URL); err != nil {
			return err
		}
		if err := x.receive(resp, body, dec); err != nil {
			return err
		}
		done, err = dec.Done()
		return x.answerError(err, resp.Header)
	})
	if err != nil {
		return model.Delta{}, err
	}
	return done, nil
}

// roundTrip sends the request and calls read with the response, both within
// their time limits. A *brokenError of read is a failure of the connection.
func (x *Exchange) roundTrip(r *http.Request, read func(*http.Response, *watchedBody) error) error {
	resp, body, err := x.start(r)
	if err != nil {
		return err
	}
	defer body.Close()
	return x.broken(read(resp, body))
}

// start sends the request and returns the response, whose body must be closed.
func (x *Exchange) start(r *http.Request) (*http.Response, *watchedBody, error) {
	c := x.client
	if err := c.Ended(x.consumer); err != nil {
		return nil, nil, err
	}
	first, total := x.after(c.cfg.FirstByteTimeout, errNoFirstByte), x.after(c.cfg.TotalTimeout, errTooLate)
	err := c.authorize(r)
	var resp *http.Response
	if err == nil {
		if resp, err = c.http.Do(r); err != nil {
			err = x.connectionError(err, c.connection)
		}
	}
	first.Stop()
	if err != nil {
		total.Stop()
		return nil, nil, err
	}
	c.answered.Store(true)
	return resp, &watchedBody{body: resp.Body, total: total, timer: x.after(c.cfg.IdleTimeout, errIdle), limit: c.cfg.IdleTimeout}, nil
}

// broken returns the error of a connection that failed, for a *brokenError, and
// other errors unchanged.
func (x *Exchange) broken(err error) error {
	var broken *brokenError
	if errors.As(err, &broken) {
		return x.connectionError(broken.err, x.brokenOff)
	}
	return err
}

// check returns the error of a response that is not an answer. A *brokenError is
// a failure to read it.
func (x *Exchange) check(resp *http.Response, body *watchedBody, u *url.URL) error {
	c := x.client
	if resp.StatusCode != http.StatusOK {
		return x.statusError(resp, body, u)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return c.Wrap(model.CodeInvalidResponse, fmt.Sprintf("%s answered with a web page: is %s right?", c.info.Endpoint, c.names.BaseURL), nil)
	}
	return nil
}

// statusError returns the error of a response with a status other than 200.
func (x *Exchange) statusError(resp *http.Response, body *watchedBody, u *url.URL) error {
	const maxBody = 64 << 10
	text, err := io.ReadAll(io.LimitReader(body, maxBody))
	if err != nil && x.consumer.Err() != nil {
		return &brokenError{err}
	}
	path := strings.TrimPrefix(u.Path, strings.TrimSuffix(x.client.base.Path, "/"))
	return x.client.response(resp, text, resp.Request.Method, path) // a cut error body still has its status
}

// receive reads the answer to its end. It may be incomplete.
func (x *Exchange) receive(resp *http.Response, body *watchedBody, dec Decoder) error {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1)) // the server does not stream
		if err != nil {
			return &brokenError{err}
		}
		if len(data) > maxAnswer {
			return x.answerError(sse.ErrTooLong, resp.Header)
		}
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		return x.answerError(x.handle(dec, "", data), resp.Header)
	}
	events := newEvents(body)
	for {
		ev, err := nextEvent(events)
		switch {
		case err == nil:
			err = x.handle(dec, ev.Type, ev.Data)
		case errors.Is(err, io.EOF):
			return nil
		}
		if errors.Is(err, ErrDone) {
			body.drain()
			return nil
		}
		if err != nil {
			return x.answerError(err, resp.Header)
		}
	}
}

// handle passes one event to the decoder.
func (x *Exchange) handle(dec Decoder, kind string, data []byte) error {
	if err := x.client.Ended(x.consumer); err != nil {
		return err
	}
	return dec.Event(kind, data)
}

// answerError turns the error of a decoder, or of reading events, into that for
// the consumer.
func (x *Exchange) answerError(err error, header http.Header) error {
	var failed *Failed
	var broken *brokenError
	var known *model.Error
	switch {
	case err == nil || errors.Is(err, ErrDone):
		return nil
	case errors.Is(err, ErrStopped):
		return ErrStopped
	case errors.As(err, &failed):
		return x.client.event(failed.Data, header)
	case errors.As(err, &broken), errors.As(err, &known):
		return err
	case errors.Is(err, sse.ErrTooLong):
		return x.tooLong()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &brokenError{io.ErrUnexpectedEOF}
	}
	return x.client.Invalid(err)
}

// tooLong returns the error of an answer beyond the limit.
func (x *Exchange) tooLong() error {
	e := x.client.Invalid(fmt.Errorf("the answer was cut off: it exceeds the limit of %d MiB", maxAnswer>>20))
	e.Permanent = true
	return e
}

// Invalid returns the error of an invalid response.
func (c *Client) Invalid(err error) *model.Error {
	return c.Wrap(model.CodeInvalidResponse, "invalid response from "+c.info.Endpoint, err)
}

// brokenError marks an error of reading the body.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

func (x *Exchange) brokenOff(err error) *model.Error {
	return x.client.Wrap(model.CodeNetwork, "the response from "+x.client.info.Endpoint+" ended early", err)
}

// connectionError returns the error of a connection that failed: that of the
// consumer's context, of a time limit, or what other makes of err.
func (x *Exchange) connectionError(err error, other func(error) *model.Error) error {
	c := x.client
	if ended := c.Ended(x.consumer); ended != nil {
		return ended
	}
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errNoFirstByte):
		return c.Wrap(model.CodeTimeout, fmt.Sprintf("%s did not respond within %v", c.info.Endpoint, c.cfg.FirstByteTimeout), nil)
	case errors.Is(cause, errIdle):
		return c.Wrap(model.CodeTimeout, fmt.Sprintf("%s sent nothing for %v within its answer", c.info.Endpoint, c.cfg.IdleTimeout), nil)
	case errors.Is(cause, errTooLate):
		e := c.Wrap(model.CodeTimeout, fmt.Sprintf("the answer of %s took longer than %v", c.info.Endpoint, c.cfg.TotalTimeout), nil)
		e.Permanent = true // the next one would take as long
		return e
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the rest repeats the URL, which may contain secrets
	}
	var known *model.Error
	if errors.As(err, &known) { // of the transport, such as that of a replay
		e := *known
		e.Provider = c.info.Name
		return &e
	}
	e := other(err)
	if c.answered.Load() && errors.Is(err, connectionRefused) {
		e.Permanent = false // the server is restarting
	}
	return e
}

// after cancels the request with the cause after d.
func (x *Exchange) after(d time.Duration, cause error) *time.Timer {
	return time.AfterFunc(d, func() { x.cancel(cause) })
}

// watchedBody restarts a timer with every read.
type watchedBody struct {
	body  io.ReadCloser
	total *time.Timer // of the whole answer
	timer *time.Timer
	limit time.Duration
}

// Close implements [io.Closer]. The answer is complete or has failed by then.
func (b *watchedBody) Close() error {
	b.timer.Stop()
	b.total.Stop()
	return b.body.Close()
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
// connection can be reused. It waits only briefly for each.
func (b *watchedBody) drain() {
	const wait, maxBytes = 50 * time.Millisecond, 4 << 10
	b.limit = wait
	b.timer.Reset(wait)
	_, _ = io.CopyN(io.Discard, b, maxBytes) // if the body does not end, the connection is closed
}
