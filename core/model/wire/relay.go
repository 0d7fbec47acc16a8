package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Relay is the HTTP transport of a foreign client for one call: it adds the
// credential, headers and time limits of a [Client], and keeps the error, which
// foreign clients often replace by a text. It is safe for concurrent use.
type Relay struct {
	exchange *Exchange

	mu   sync.Mutex
	err  error
	tail []byte
}

// Relay returns a transport for requests of this exchange.
func (x *Exchange) Relay() *Relay { return &Relay{exchange: x} }

// RoundTrip implements [http.RoundTripper]. A response that is not an answer is
// an error. Its errors are *model.Errors.
func (r *Relay) RoundTrip(req *http.Request) (*http.Response, error) {
	x := r.exchange
	stop := context.AfterFunc(req.Context(), x.Close)
	req = req.Clone(x.ctx)
	req.RequestURI = "" // of a request that a server has received
	resp, body, err := x.start(req)
	if err == nil {
		err = x.broken(x.check(resp, body, req.URL))
		if err != nil {
			_ = body.Close()
		}
	}
	if err != nil {
		stop()
		r.fail(err)
		return nil, err
	}
	resp.Body = &relayedBody{watchedBody: body, relay: r, stop: stop}
	return resp, nil
}

func (r *Relay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// Err returns the first error of a request or its answer.
func (r *Relay) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Tail returns the end of what was read of the answer.
func (r *Relay) Tail() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail
}

func (r *Relay) keep(data []byte) {
	const limit = 4 << 10
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tail = append(r.tail, data...)
	if cut := len(r.tail) - limit; cut > 0 {
		r.tail = append(r.tail[:0], r.tail[cut:]...)
	}
}

// relayedBody is the body of an answer that a foreign client reads.
type relayedBody struct {
	*watchedBody
	relay *Relay
	stop  func() bool
	size  int
}

// Read implements [io.Reader].
func (b *relayedBody) Read(p []byte) (int, error) {
	n, err := b.watchedBody.Read(p)
	b.relay.keep(p[:n])
	if b.size += n; b.size > maxAnswer && err == nil {
		err = b.relay.exchange.tooLong()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.relay.exchange.broken(err)
		b.relay.fail(err)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *relayedBody) Close() error {
	b.stop()
	return b.watchedBody.Close()
}
