package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
)

// sse is the transport of 2024-11-05: a stream of events brings everything that
// the server says, and each message to it is a POST. It implements
// [transport.BidirectionalInterface]; the library's own takes a request of the
// server for the response to one of ours.
type sse struct {
	*peer
	address *url.URL
	headers map[string]string
	client  *http.Client

	mu       sync.Mutex
	endpoint *url.URL // where messages go; nil before the server has said it
	version  string
	wg       sync.WaitGroup
	started  bool
}

var (
	_ transport.BidirectionalInterface = (*sse)(nil)
	_ transport.HTTPConnection         = (*sse)(nil)
)

func newSSE(address string, headers map[string]string, client *http.Client) (*sse, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	t := &sse{peer: newPeer(), address: u, headers: headers, client: client}
	t.peer.write = t.post
	return t, nil
}

// Start implements [transport.Interface]. It returns when the server has said
// where messages go. The stream lives until Close, not until ctx is done.
func (t *sse) Start(ctx context.Context) error {
	if t.started {
		return nil
	}
	t.started = true
	req, err := http.NewRequestWithContext(t.ctx, http.MethodGet, t.address.String(), nil)
	if err != nil {
		return err
	}
	t.decorate(req)
	req.Header.Set("Accept", "text/event-stream")
	ready := make(chan error, 1)
	t.wg.Go(func() { t.listen(req, ready) })
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
func (t *sse) listen(req *http.Request, ready chan<- error) {
	err := t.stream(req, func() {
		select {
		case ready <- nil:
		default:
		}
	})
	if err == nil {
		err = errors.New("the server ended the stream of events")
	}
	t.fail(err)
	select {
	case ready <- err:
	default:
	}
}

func (t *sse) stream(req *http.Request, ready func()) error {
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return statusError(resp)
	}
	return readEvents(resp.Body, func(event string, data []byte) error {
		switch event {
		case "endpoint":
			if err := t.setEndpoint(string(data)); err != nil {
				return err
			}
			ready()
		case "message", "":
			t.receive(data)
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
	if t.endpoint == nil {
		t.endpoint = u
	}
	return nil
}

// post sends a message.
func (t *sse) post(ctx context.Context, data []byte) error {
	t.mu.Lock()
	endpoint := t.endpoint
	t.mu.Unlock()
	if endpoint == nil {
		return errors.New("the connection was not started")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(data))
	if err != nil {
		return err
	}
	t.decorate(req)
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return statusError(resp)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return err
}

func (t *sse) decorate(req *http.Request) {
	t.mu.Lock()
	version := t.version
	t.mu.Unlock()
	if version != "" {
		req.Header.Set(transport.HeaderKeyProtocolVersion, version)
	}
	for name, value := range t.headers {
		req.Header.Set(name, value)
	}
}

// SetProtocolVersion implements [transport.HTTPConnection].
func (t *sse) SetProtocolVersion(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

// RequiresLegacyProtocol tells the library that nothing newer speaks SSE.
func (t *sse) RequiresLegacyProtocol() bool { return true }

// Close implements [transport.Interface].
func (t *sse) Close() error {
	t.fail(ErrClosed)
	t.wg.Wait()
	t.peer.wg.Wait()
	return nil
}

// statusError is the error of a response that is none of success.
func statusError(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%w (HTTP status 401)", ErrSignIn)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
	if line := cleanLine(string(text)); line != "" {
		return fmt.Errorf("HTTP status %s: %s", resp.Status, line)
	}
	return fmt.Errorf("HTTP status %s", resp.Status)
}

// readEvents reads server-sent events until the stream ends or emit fails.
func readEvents(r io.Reader, emit func(event string, data []byte) error) error {
	br := bufio.NewReader(r)
	event, data := "", []byte(nil)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil // an event that was not ended is none
			}
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			event = string(value)
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "":
			if len(line) > 0 {
				continue // a comment
			}
			if data != nil {
				if err := emit(event, data); err != nil {
					return err
				}
			}
			event, data = "", nil
		}
	}
}
