package modeltest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// serve writes the turn.
func (s *Server) serve(ctx context.Context, w http.ResponseWriter, t *Turn, req *Request, id string) {
	if t.Gate != nil {
		t.Gate(ctx, -1)
	}
	for name, values := range t.Header {
		w.Header()[name] = values
	}
	if t.Fault != nil || t.Status != 0 && t.Status != http.StatusOK {
		t.serveBody(w, s.protocol)
		return
	}
	a := &answer{Turn: t, server: s, req: req, id: id, model: cmp.Or(t.Model, req.Model)}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, s.protocol.whole(a)) // the client may be gone
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	out := &stream{w: w, rc: http.NewResponseController(w), turn: t, left: -1}
	if t.Break != nil {
		out.left = t.Break.After
	}
	for i, f := range a.frames() {
		if t.Gate != nil {
			t.Gate(ctx, i)
		}
		if out.write(f) != nil {
			return
		}
	}
}

// frames returns the frames of the answer, edited.
func (a *answer) frames() []string {
	out := a.server.protocol.frames(a)
	for _, edit := range a.Edits {
		out = edit(out)
	}
	return out
}

func (t *Turn) serveBody(w http.ResponseWriter, speak protocol) {
	status, body := t.Status, t.Body
	if t.Fault != nil {
		var own int
		own, body = speak.fault(t.Fault)
		status = cmp.Or(own, status)
	}
	if w.Header().Get("Content-Type") == "" {
		kind := "application/json"
		if !strings.HasPrefix(body, "{") {
			kind = "text/html"
		}
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may be gone
}

// stream writes frames until the turn's break.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	turn *Turn
	left int // bytes until the break; negative means that there is none
}

var errBroken = errors.New("the stream breaks off here")

func (s *stream) write(frame string) error {
	broken := s.left >= 0 && s.left <= len(frame)
	if broken {
		frame = frame[:s.left]
	}
	s.left -= len(frame)
	step := s.turn.Split
	if step <= 0 {
		step = max(len(frame), 1)
	}
	for ; len(frame) > 0; frame = frame[min(step, len(frame)):] {
		if _, err := io.WriteString(s.w, frame[:min(step, len(frame))]); err != nil {
			return err
		}
		if err := s.rc.Flush(); err != nil {
			return err
		}
	}
	if !broken {
		return nil
	}
	return s.end()
}

// end breaks the stream off.
func (s *stream) end() error {
	switch s.turn.Break.How {
	case End:
		return errBroken
	case Abort:
		panic(http.ErrAbortHandler)
	}
	conn, _, err := s.rc.Hijack()
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes Close send a reset; without it, the close alone must do
	}
	_ = conn.Close()
	return errBroken
}

// streamed returns the edited frames of the answer to a streaming request for the
// model.
func (t *Turn) streamed(api API, name string) []string {
	s := New(api)
	req := &Request{Model: name, Stream: true, StreamOptions: &StreamOptions{IncludeUsage: true}}
	a := &answer{Turn: t, server: s, req: req, id: s.protocol.name(http.Header{}, 1), model: cmp.Or(t.Model, name)}
	return a.frames()
}
