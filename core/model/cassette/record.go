package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// maxBody limits the recorded part of an answer, in bytes.
const maxBody = 64 << 20

// Recorder is a transport that records its exchanges. It is safe for concurrent
// use.
type Recorder struct {
	next  http.RoundTripper
	codec *codec

	mu      sync.Mutex
	file    *os.File
	pending []pending // answered, but not written yet
	count   int       // of exchanges written
	err     error     // of file
}

// pending is an exchange whose answer is not cleaned yet: what a call in it writes
// to a sensitive file is known to be secret when the call has been judged.
type pending struct {
	exchange
	stream bool
	answer []byte
}

// Record creates a file at path, which must not exist, and returns a transport
// that sends requests by next. An exchange is written before the next request, so
// that a crash loses only the last exchange and those in progress. Answers are
// passed through as they arrive.
func Record(path string, next http.RoundTripper, o Options) (*Recorder, error) {
	h := header{Cassette: version}
	for _, s := range o.Stable {
		h.Stable = append(h.Stable, s.Name)
	}
	head, err := document(h)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { // as a test's data, not as a secret
		return nil, fmt.Errorf("cassette: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cassette: %w", err)
	}
	if _, err := f.Write(head[len("---\n"):]); err != nil {
		return nil, errors.Join(fmt.Errorf("cassette: %w", err), f.Close())
	}
	return &Recorder{next: next, codec: newCodec(o), file: f}, nil
}

// RoundTrip implements [http.RoundTripper]. It fails if the file cannot be
// written, as an incomplete recording is of no use.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.flush()
	err := r.err
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	data, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	asked := r.codec.request(req, data)
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(data))
	resp, err := r.next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	resp.Body = &recordedBody{ReadCloser: resp.Body, done: func(text []byte, cut bool) {
		x := exchange{Request: asked, Response: response{Status: resp.StatusCode, Header: pick(resp.Header, responseHeaders), Cut: cut}}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pending = append(r.pending, pending{x, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"), text})
	}}
	return resp, nil
}

// takeBody reads the whole body of a request, and closes it.
func takeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(req.Body)
	return data, errors.Join(err, req.Body.Close())
}

// flush writes the pending exchanges. The caller holds the lock.
func (r *Recorder) flush() {
	for _, x := range r.pending {
		if r.err != nil {
			break
		}
		if x.stream {
			x.answer = r.codec.redactor().Stream(x.answer)
		}
		x.Response.Body = newBody(r.codec.clean(x.answer))
		text, err := document(x.exchange)
		if err == nil {
			_, err = r.file.Write(text)
		}
		if err != nil {
			r.err = fmt.Errorf("cassette: the exchange was not recorded: %w", err)
			break
		}
		r.count++
	}
	r.pending = nil
}

// errClosed is the error of requests after Close.
var errClosed = errors.New("cassette: the recording is closed")

// Close ends the recording. An error means that the file is incomplete. Answers in
// progress are not recorded. A file without exchanges is removed.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.err, errClosed) {
		return nil
	}
	r.flush()
	err := errors.Join(r.err, r.file.Close())
	if r.count == 0 {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	r.err = errClosed
	return err
}

// recordedBody collects what is read of a body, and passes it to done once.
type recordedBody struct {
	io.ReadCloser
	done func(text []byte, cut bool)

	mu   sync.Mutex // Close may be called during Read
	text []byte
	over bool // done was called
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(n, maxBody-len(b.text))]...)
	if err != nil || len(b.text) == maxBody {
		b.end(!errors.Is(err, io.EOF))
	}
	return n, err
}

func (b *recordedBody) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(true)
	return err
}

func (b *recordedBody) end(cut bool) {
	if !b.over {
		b.over = true
		b.done(b.text, cut)
		b.text = nil
	}
}
