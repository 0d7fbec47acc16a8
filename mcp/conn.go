package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core/tracecontext"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// cancelTimeout limits the message that cancels a request or a task.
const cancelTimeout = 5 * time.Second

// Info describes a server, as reported in the handshake.
type Info struct {
	Name, Title, Version string
	Protocol             string // the protocol version in use
	Transport            string // the transport in use, which may be an older one than configured
	Instructions         string // without hidden characters
	Tools, Resources     bool
	Prompts, Completions bool
	Subscribe            bool // supports subscribing to resources
	Logging              bool
	Tasks                bool // supports calls as tasks
}

// Conn is a connection to a server. It is safe for concurrent use. The caller of
// [Connect] closes it; it may end earlier, see [Conn.Done].
type Conn struct {
	*session
	name    string
	server  Server
	info    Info
	notices *notices
	about   fields // describes this client in each request of the modern protocol

	level  atomic.Value // string: log level, in the modern protocol
	token  atomic.Int64
	closed sync.Once
	// the stream of notifications of the modern protocol
	subscribed struct {
		sync.Mutex
		uris   map[string]bool
		stop   func()
		opened chan struct{} // signalled when the server has opened it
	}
}

// Info describes the server.
func (c *Conn) Info() Info { return c.info }

// PID returns the ID of the server's process, 0 for a server reached over HTTP.
func (c *Conn) PID() int {
	if t, ok := c.link.(*stdio); ok {
		return t.pid()
	}
	return 0
}

// Done is closed when the connection has ended. Over streamable HTTP that is only
// after Close.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns why the connection has ended, nil before.
func (c *Conn) Err() error { return c.wrap(context.Cause(c.ctx)) }

// Close ends the connection and the server's process with all its children. It
// takes at most 5 seconds. Further calls do nothing.
func (c *Conn) Close() error {
	c.closed.Do(c.close)
	return nil
}

func (c *Conn) wrap(err error) error {
	if e := (*ServerError)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	return &ServerError{c.name, err}
}

// RPCError is a server's error response to a request.
type RPCError struct {
	Code    int
	Message string // without control characters, at most 4,000 characters
	Data    json.RawMessage
}

// Error implements error.
func (e *RPCError) Error() string {
	return fmt.Sprintf("the server returned error %d: %s", e.Code, e.Message)
}

// do makes a request and returns its result.
func (c *Conn) do(ctx context.Context, method mcp.MCPMethod, params fields) (json.RawMessage, error) {
	return c.send(ctx, method, params, nil)
}

// send is do with additional HTTP headers.
func (c *Conn) send(ctx context.Context, method mcp.MCPMethod, params fields, headers map[string]string) (json.RawMessage, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, c.wrap(err)
	}
	m := outgoing{jsonrpc.Message{Version: mcp.JSONRPC_VERSION, ID: c.nextID(), Method: string(method), Params: encode(c.withMeta(ctx, params))}, headers}
	result, err := c.call(ctx, m)
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil && params["task"] == nil { // a task is cancelled as such
		c.cancelRequest(method, m.ID)
	}
	if failed := (*url.Error)(nil); errors.Is(err, ErrSignIn) && errors.As(err, &failed) {
		err = failed.Err // without the method and URL
	}
	return nil, c.wrap(err)
}

// withMeta adds the trace that a request belongs to, and the description of the client
// that each request of the modern protocol carries.
func (c *Conn) withMeta(ctx context.Context, params fields) fields {
	all, meta := fields{}, fields{}
	maps.Copy(all, params)
	if header := tracecontext.Header(ctx); header != "" {
		meta["traceparent"] = header
	}
	if c.modern() {
		meta[mcp.MetaKeyProtocolVersion] = c.version()
		maps.Copy(meta, c.about)
		if level, _ := c.level.Load().(string); level != "" {
			meta[mcp.MetaKeyLogLevel] = level
		}
	}
	if len(meta) == 0 {
		return all
	}
	if own, ok := params["_meta"].(fields); ok {
		maps.Copy(meta, own)
	}
	all["_meta"] = meta
	return all
}

// cancelRequest tells the server that a request is cancelled, unless the end of
// its HTTP request says so.
func (c *Conn) cancelRequest(method mcp.MCPMethod, id json.RawMessage) {
	if _, http := c.link.(*streamable); http && c.modern() || method == mcp.MethodInitialize || method == mcp.MethodServerDiscover {
		return
	}
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(c.ctx, cancelTimeout)
		defer cancel()
		_ = c.sendNotification(ctx, mcp.MethodNotificationCancelled, fields{"requestId": id, "reason": "cancelled by the client"}) // best effort
	})
}

// nextToken returns a progress token.
func (c *Conn) nextToken() string { return "p" + strconv.FormatInt(c.token.Add(1), 10) }

// pingTimeout limits a ping.
const pingTimeout = 5 * time.Second

// Ping checks whether the server responds, within 5 seconds or the start timeout.
func (c *Conn) Ping(ctx context.Context) error {
	limit := min(pingTimeout, c.server.startTimeout())
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response to a ping within %s", limit))
	defer cancel()
	err := c.ping(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return c.wrap(context.Cause(ctx))
	}
	return err
}

func (c *Conn) ping(ctx context.Context) error {
	if c.modern() { // has no ping: any request will do
		_, err := c.Tools(ctx)
		return err
	}
	_, err := c.do(ctx, mcp.MethodPing, nil)
	return err
}

// SetLogLevel requests log messages of a level ("debug" … "emergency") and above.
func (c *Conn) SetLogLevel(ctx context.Context, level string) error {
	if !c.info.Logging {
		return nil
	}
	if c.modern() {
		c.level.Store(level) // sent with each request
		return nil
	}
	_, err := c.do(ctx, mcp.MethodSetLogLevel, fields{"level": level})
	return err
}

// clip truncates a text to n characters.
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
