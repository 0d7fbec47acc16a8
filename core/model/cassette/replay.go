package cassette

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/model"
)

// Player is a transport that answers from a file, without any connection. It is
// safe for concurrent use: a request gets the first unused answer to an equal
// request.
type Player struct {
	path  string
	codec *codec

	mu   sync.Mutex
	list []*exchange
}

// Replay returns a transport that answers from the file at path. The error
// contains the line.
func Replay(path string, o Options) (*Player, error) {
	list, err := load(path)
	if err != nil {
		return nil, err
	}
	return &Player{path: path, codec: newCodec(o), list: list}, nil
}

// MismatchError is the error of a request that was not recorded.
type MismatchError struct {
	Path string   // of the recording
	Line int      // of the next exchange; 0 if all were used
	Diff []string // where the request differs from it
}

// Error implements [error], over several lines.
func (e *MismatchError) Error() string {
	if e.Line == 0 {
		return "no more requests were recorded in " + e.Path
	}
	return fmt.Sprintf("the request differs from the one recorded at %s:%d:\n  %s", e.Path, e.Line, strings.Join(e.Diff, "\n  "))
}

// RoundTrip implements [http.RoundTripper]. Its errors are those of the
// request's context, and a *[model.Error] of CodeInvalidRequest around a
// *[MismatchError].
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	x, err := p.take(p.codec.request(req, data))
	if err != nil {
		return nil, &model.Error{
			Code: model.CodeInvalidRequest, Err: err, Permanent: true,
			Message: err.Error() + "\nif the change is intended, record again",
		}
	}
	text, _ := x.Response.Body.bytes() // checked by read
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", x.Response.Status, http.StatusText(x.Response.Status)), StatusCode: x.Response.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req, ContentLength: -1,
	}
	for name, v := range x.Response.Header {
		resp.Header.Set(name, v)
	}
	resp.Body = &replayedBody{ctx: req.Context(), rest: p.codec.expand(text, true), cut: x.Response.Cut}
	return resp, nil
}

// take finds the exchange of a request and marks it as used.
func (p *Player) take(asked request) (*exchange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var next *exchange
	for _, x := range p.list {
		if x.used {
			continue
		}
		if len(p.diff(x.Request, asked)) == 0 {
			x.used = true
			return x, nil
		}
		if next == nil {
			next = x
		}
	}
	if next == nil {
		return nil, &MismatchError{Path: p.path}
	}
	return nil, &MismatchError{Path: p.path, Line: next.line, Diff: p.diff(next.Request, asked)}
}

// diff returns where a request differs from a recorded one. The host is ignored.
func (p *Player) diff(recorded, now request) []string {
	d := differ{ignore: p.codec.ignore}
	d.value("method", recorded.Method, now.Method)
	d.value("url", pathOf(recorded.URL), pathOf(now.URL))
	d.header(recorded.Header, now.Header)
	d.body(recorded.Body, now.Body)
	return d.lines
}

// pathOf returns a URL without scheme and host.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.RequestURI()
}

// Unused returns how many recorded exchanges have not been used, and how many
// there are.
func (p *Player) Unused() (unused, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		if !x.used {
			unused++
		}
	}
	return unused, len(p.list)
}

// replayedBody streams an answer, one event for each Read.
type replayedBody struct {
	ctx  context.Context
	rest []byte
	cut  bool
}

func (b *replayedBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if len(b.rest) == 0 {
		if b.cut {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, io.EOF
	}
	n := len(b.rest)
	for _, end := range []string{"\n\n", "\r\n\r\n"} {
		if i := bytes.Index(b.rest[:n], []byte(end)); i >= 0 {
			n = i + len(end)
		}
	}
	n = copy(p, b.rest[:n])
	b.rest = b.rest[n:]
	return n, nil
}

func (b *replayedBody) Close() error { return nil }
