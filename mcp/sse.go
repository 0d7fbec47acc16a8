package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sse is the transport of 2024-11-05: a stream of events brings everything that
// the server says, and each message to it is a POST.
type sse struct {
	web
	mu       sync.Mutex
	endpoint string // where messages go; empty before the server has said it
}

// start implements [transport]. It returns when the server has said where
// messages go.
func (t *sse) start(ctx context.Context) error {
	ready := make(chan error, 1)
	t.spawn(func() { t.listen(ready) })
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		t.fail(ctx.Err())
		return fmt.Errorf("%w (the server opened no stream of events)", ctx.Err())
	}
}

// listen reads the stream to its end. It tells ready once: nil when the
// endpoint is known, else what is wrong.
func (t *sse) listen(ready chan<- error) {
	tell := func(err error) {
		select {
		case ready <- err:
		default:
		}
	}
	err := t.stream(func() { tell(nil) })
	if err == nil {
		err = errors.New("the server ended the stream of events")
	}
	t.fail(err)
	tell(err)
}

func (t *sse) stream(ready func()) error {
	resp, err := t.do(t.ctx, http.MethodGet, t.address.String(), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readEvents(resp.Body, &cursor{}, func(event string, data []byte) error {
		switch event {
		case "endpoint":
			if err := t.setEndpoint(string(data)); err != nil {
				return err
			}
			ready()
		case "message", "":
			t.receive(nil, data)
		}
		return nil
	})
}

// setEndpoint notes where messages go, which must be at the server itself: they
// carry its headers.
func (t *sse) setEndpoint(text string) error {
	u, err := t.address.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != t.address.Scheme || u.Host != t.address.Host {
		return fmt.Errorf("the server wants messages at %.200q, which is not its own address", text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endpoint == "" {
		t.endpoint = u.String()
	}
	return nil
}

// send implements [transport].
func (t *sse) send(ctx context.Context, m outgoing) error {
	t.mu.Lock()
	endpoint := t.endpoint
	t.mu.Unlock()
	resp, err := t.do(ctx, http.MethodPost, endpoint, encode(m.Message), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
	return err
}

// close implements [transport]. The stream ends with the session.
func (*sse) close() {}

// cursor is where a stream of events can be taken up again.
type cursor struct {
	id    string        // of the last event
	retry time.Duration // what to wait before that; 0 = the server has not said
}

// readEvents reads server-sent events until the stream ends or emit fails, and
// notes in at how far it came.
func readEvents(r io.Reader, at *cursor, emit func(event string, data []byte) error) error {
	br := bufio.NewReader(r)
	event, id, data := "", at.id, []byte(nil)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		ended := err != nil // servers are known to leave out the last empty line
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			event = string(value)
		case "id":
			id = string(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				at.retry = max(time.Duration(ms)*time.Millisecond, minRetry)
			}
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
		if len(line) > 0 && !ended {
			continue
		}
		if !ended {
			at.id = id
		}
		if len(data) > 0 {
			if err := emit(event, data); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		event, data = "", nil
	}
}
