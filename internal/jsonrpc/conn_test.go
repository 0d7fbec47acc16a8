package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// pair connects two sides, and returns what ends both.
func pair(t *testing.T, first, second map[string]jsonrpc.Handler) (a, b *jsonrpc.Conn) {
	t.Helper()
	fromA, toB := io.Pipe()
	fromB, toA := io.Pipe()
	a, b = jsonrpc.NewConn(toB), jsonrpc.NewConn(toA)
	a.Handlers, b.Handlers = first, second
	ended := make(chan error, 2)
	go func() { ended <- a.Serve(context.Background(), fromB) }()
	go func() { ended <- b.Serve(context.Background(), fromA) }()
	t.Cleanup(func() {
		_ = toA.Close()
		_ = toB.Close()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return a, b
}

func TestConn(t *testing.T) {
	type numbers struct{ A, B int }
	started, withdrawn := make(chan struct{}), make(chan struct{})
	a, _ := pair(t, nil, map[string]jsonrpc.Handler{
		"add":  jsonrpc.On(func(_ context.Context, n numbers) (int, error) { return n.A + n.B, nil }),
		"fail": jsonrpc.On(func(context.Context, numbers) (int, error) { return 0, errors.New("broken") }),
		"wait": jsonrpc.On(func(ctx context.Context, _ numbers) (any, error) {
			close(started)
			return jsonrpc.Later(func() (any, error) {
				<-ctx.Done()
				close(withdrawn)
				return nil, ctx.Err()
			}), nil
		}),
	})
	var sum int
	if err := a.Call(t.Context(), "add", numbers{1, 2}, &sum); err != nil || sum != 3 {
		t.Errorf("1 + 2 = %d, %v", sum, err)
	}
	for method, code := range map[string]int{"fail": jsonrpc.CodeInternal, "unknown": jsonrpc.CodeMethod} {
		var failed *jsonrpc.Error
		if err := a.Call(t.Context(), method, numbers{}, &sum); !errors.As(err, &failed) || failed.Code != code {
			t.Errorf("%s: %v", method, err)
		}
	}
	var failed *jsonrpc.Error
	if err := a.Call(t.Context(), "add", "text", &sum); !errors.As(err, &failed) || failed.Code != jsonrpc.CodeParams {
		t.Errorf("wrong params: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if err := a.Call(ctx, "wait", numbers{}, &sum); !errors.Is(err, context.Canceled) {
		t.Errorf("a withdrawn request: %v", err)
	}
	<-withdrawn
}

// TestConnFinishes: at the end of the input, requests are answered.
func TestConnFinishes(t *testing.T) {
	release := make(chan struct{})
	var out bytes.Buffer
	c := jsonrpc.NewConn(&out)
	c.Ended = func() { close(release) }
	c.Handlers = map[string]jsonrpc.Handler{"wait": func(context.Context, json.RawMessage) (any, error) {
		return jsonrpc.Later(func() (any, error) {
			<-release
			return "done", nil
		}), nil
	}}
	if err := c.Serve(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)); err != nil || !strings.Contains(out.String(), `"result":"done"`) {
		t.Errorf("answered %s, %v", out.String(), err)
	}
}

// TestConnEnds: calls end with the connection.
func TestConnEnds(t *testing.T) {
	in, out := io.Pipe()
	c := jsonrpc.NewConn(io.Discard)
	served := make(chan error, 1)
	go func() { served <- c.Serve(context.Background(), in) }()
	called := make(chan error, 1)
	go func() { called <- c.Call(context.Background(), "x", nil, new(json.RawMessage)) }()
	if _, err := io.WriteString(out, "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}\n"); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-called; !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("a call without answer ends with %v", err)
	}
	if err := c.Call(context.Background(), "x", nil, new(json.RawMessage)); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("a call on a closed connection: %v", err)
	}
}

// TestConnCannotWrite: what cannot be written ends the connection, also before it is
// served, and says so like every other end.
func TestConnCannotWrite(t *testing.T) {
	in, open := io.Pipe()
	defer open.Close()
	closed, out := io.Pipe()
	_ = closed.Close()
	c := jsonrpc.NewConn(out)
	if err := c.Call(t.Context(), "x", nil, nil); !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a call: %v", err)
	}
	if err := c.Notify("x", nil); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("a notification: %v", err)
	}
	if err := c.Serve(t.Context(), in); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestHeaders: with headers, messages go both ways, and what is no message ends the
// connection.
func TestHeaders(t *testing.T) {
	var out bytes.Buffer
	c := jsonrpc.NewConn(&out)
	c.Headers = true
	c.Handlers = map[string]jsonrpc.Handler{"add": jsonrpc.On(func(_ context.Context, n struct{ A, B int }) (int, error) { return n.A + n.B, nil })}
	request := `{"jsonrpc":"2.0","id":1,"method":"add","params":{"a":1,"b":2}}`
	in := fmt.Sprintf("content-length: %d\r\nContent-Type: x\r\n\r\n%s", len(request), request)
	if err := c.Serve(t.Context(), strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "Content-Length: 35\r\n\r\n"+`{"jsonrpc":"2.0","id":1,"result":3}`; got != want {
		t.Errorf("answered %q, want %q", got, want)
	}
	for _, bad := range []string{"hello\n", "\r\n", "Content-Length: -1\r\n\r\n", "Content-Length: 99999999999\r\n\r\n", "Content-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n\r\n{}", strings.Repeat("a: b\r\n", 5000)} {
		c := jsonrpc.NewConn(io.Discard)
		c.Headers = true
		if err := c.Serve(t.Context(), strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q is a message", bad)
		}
	}
}
