package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Info is what a server said of itself in the handshake.
type Info struct {
	Name, Title, Version string
	Protocol             string // the version of the protocol in use
	Transport            string // the transport in use, which may be older than asked for
	Instructions         string // cleaned
	Tools, Resources     bool
	Prompts, Completions bool
	Subscribe            bool // resources can be subscribed to
	Logging              bool
	Tasks                bool // calls can be made as tasks
}

// Conn is a connection to a server. It is safe for concurrent use. Whoever
// makes it closes it; it may end before, see [Conn.Done].
type Conn struct {
	name     string
	server   Server
	client   *client.Client
	info     Info
	requests requests
	notices  *notices
	pid      func() int
	gone     func() error // why the transport has ended; nil while it has not
	idle     func()       // closes idle HTTP connections

	modern atomic.Bool
	ready  atomic.Bool // the handshake is done
	token  atomic.Int64

	life   context.Context // ends with the connection
	end    context.CancelCauseFunc
	wg     sync.WaitGroup
	closed sync.Once
	// listening
	subscribed struct {
		sync.Mutex
		uris map[string]bool
		stop func()
	}
}

// Info returns what the server said of itself.
func (c *Conn) Info() Info { return c.info }

// PID returns the id of the server's process, 0 for one that is reached by HTTP.
func (c *Conn) PID() int { return c.pid() }

// Done is closed when the connection has ended. A server that is reached by
// streamable HTTP has none that could end by itself.
func (c *Conn) Done() <-chan struct{} { return c.life.Done() }

// Err says why the connection has ended; nil before.
func (c *Conn) Err() error {
	if c.life.Err() != nil {
		return c.wrap(context.Cause(c.life))
	}
	return c.wrap(c.gone())
}

// Close ends the connection and the server's process with all that it started.
// It takes at most 5 seconds and can be called again.
func (c *Conn) Close() error {
	c.closed.Do(func() {
		c.end(ErrClosed)
		_ = c.client.Close() // it tells a server that need not listen
		c.idle()
	})
	c.wg.Wait()
	return nil
}

// spawn runs f in a goroutine that Close waits for.
func (c *Conn) spawn(f func(life context.Context)) {
	if c.life.Err() == nil {
		c.wg.Go(func() { f(c.life) })
	}
}

func (c *Conn) wrap(err error) error {
	if e := (*ServerError)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	return &ServerError{c.name, err}
}

// RPCError is an error that a server answered a request with.
type RPCError struct {
	Code    int
	Message string // cleaned, at most 4,000 characters
	Data    json.RawMessage
}

// Error implements error.
func (e *RPCError) Error() string {
	return fmt.Sprintf("it answered with error %d: %s", e.Code, e.Message)
}

// errSessionGone is the error of a request with a session that the server does
// not know any more.
var errSessionGone = errors.New("the session has expired")

// explain turns the library's error into ours.
func (c *Conn) explain(err error, r *raw) error {
	required := (*transport.AuthorizationRequiredError)(nil)
	switch {
	case err == nil:
		return nil
	case r != nil && r.rpc != nil:
		e := &RPCError{Code: r.rpc.Code, Message: clip(cleanLines(r.rpc.Message), 4000)}
		if r.rpc.Data != nil {
			e.Data = encode(r.rpc.Data)
		}
		return c.wrap(e)
	case errors.Is(err, ErrSignIn):
		return c.wrap(ErrSignIn)
	case errors.As(err, &required), errors.Is(err, transport.ErrAuthorizationRequired):
		return c.wrap(fmt.Errorf("%w (HTTP status 401)", ErrSignIn))
	case errors.Is(err, transport.ErrSessionTerminated):
		return c.wrap(errSessionGone)
	}
	failed := (*url.Error)(nil)
	if errors.As(err, &failed) { // the library's words in front of it add nothing
		return c.wrap(failed)
	}
	for e := (*transport.Error)(nil); errors.As(err, &e); {
		err = e.Err
	}
	return c.wrap(err)
}

// do makes a request and returns the bytes of its result. The library's own
// idea of the result may fail where the bytes are good enough.
func (c *Conn) do(ctx context.Context, request func(context.Context) error) (json.RawMessage, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	ctx, r := withRaw(ctx)
	err := request(ctx)
	if r.result != nil && r.rpc == nil && !errors.Is(err, client.ErrMaxInputRoundTripsExceeded) && ctx.Err() == nil {
		return r.result, nil
	}
	return nil, c.explain(err, r)
}

// nextToken returns a progress token.
func (c *Conn) nextToken() string { return "p" + strconv.FormatInt(c.token.Add(1), 10) }

// Ping asks whether the server is there.
func (c *Conn) Ping(ctx context.Context) error {
	if c.modern.Load() { // which has no ping: any request will do
		_, err := c.Tools(ctx)
		return err
	}
	//lint:ignore SA1019 the old era has it
	_, err := c.do(ctx, c.client.Ping)
	return err
}

// SetLogLevel asks for the messages of a level ("debug" … "emergency") and
// above.
func (c *Conn) SetLogLevel(ctx context.Context, level string) error {
	if !c.info.Logging {
		return nil
	}
	var req mcp.SetLevelRequest
	req.Params.Level = mcp.LoggingLevel(level)
	if c.modern.Load() {
		//lint:ignore SA1019 servers still log this way
		return c.client.SetLevel(ctx, req)
	}
	//lint:ignore SA1019 servers still log this way
	_, err := c.do(ctx, func(ctx context.Context) error { return c.client.SetLevel(ctx, req) })
	return err
}

// clip shortens a text to n characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n]) + "…"
}
