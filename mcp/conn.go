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

	"github.com/seed-009c0928/agent/mcp/internal/jsonrpc"
)

// cancelTimeout bounds the message that takes a request or a task back.
const cancelTimeout = 5 * time.Second

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
	*session
	name    string
	server  Server
	info    Info
	notices *notices
	about   fields // this client, in what each request of the new era holds

	level  atomic.Value // string: of the log, in the new era
	token  atomic.Int64
	closed sync.Once
	// the stream of notifications of the new era
	subscribed struct {
		sync.Mutex
		uris   map[string]bool
		stop   func()
		opened chan struct{} // gets something when the server has opened it
	}
}

// Info returns what the server said of itself.
func (c *Conn) Info() Info { return c.info }

// PID returns the id of the server's process, 0 for one that is reached by HTTP.
func (c *Conn) PID() int {
	if t, ok := c.link.(*stdio); ok {
		return t.pid()
	}
	return 0
}

// Done is closed when the connection has ended. A server that is reached by
// streamable HTTP has none that could end by itself.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err says why the connection has ended; nil before.
func (c *Conn) Err() error { return c.wrap(context.Cause(c.ctx)) }

// Close ends the connection and the server's process with all that it started.
// It takes at most 5 seconds and can be called again.
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

// do makes a request and returns the bytes of its result.
func (c *Conn) do(ctx context.Context, method mcp.MCPMethod, params fields) (json.RawMessage, error) {
	return c.send(ctx, method, params, nil)
}

// send is do with headers, for HTTP.
func (c *Conn) send(ctx context.Context, method mcp.MCPMethod, params fields, headers map[string]string) (json.RawMessage, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, c.wrap(err)
	}
	m := outgoing{jsonrpc.Message{Version: mcp.JSONRPC_VERSION, ID: c.nextID(), Method: string(method), Params: encode(c.withMeta(params))}, headers}
	result, err := c.call(ctx, m)
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil && params["task"] == nil { // a task is cancelled as such
		c.takeBack(method, m.ID)
	}
	if failed := (*url.Error)(nil); errors.Is(err, ErrSignIn) && errors.As(err, &failed) {
		err = failed.Err // the reason, without the request
	}
	return nil, c.wrap(err)
}

// withMeta adds what each request of the new era says of its client.
func (c *Conn) withMeta(params fields) fields {
	all := fields{}
	maps.Copy(all, params)
	if !c.modern() {
		return all
	}
	meta := fields{mcp.MetaKeyProtocolVersion: c.version()}
	maps.Copy(meta, c.about)
	if level, _ := c.level.Load().(string); level != "" {
		meta[mcp.MetaKeyLogLevel] = level
	}
	if own, ok := params["_meta"].(fields); ok {
		maps.Copy(meta, own)
	}
	all["_meta"] = meta
	return all
}

// takeBack tells a server that nobody waits for a request any more, where the
// end of its HTTP request does not say so.
func (c *Conn) takeBack(method mcp.MCPMethod, id json.RawMessage) {
	if _, http := c.link.(*streamable); http && c.modern() || method == mcp.MethodInitialize || method == mcp.MethodServerDiscover {
		return
	}
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(c.ctx, cancelTimeout)
		defer cancel()
		_ = c.tell(ctx, mcp.MethodNotificationCancelled, fields{"requestId": id, "reason": "nobody waits for it any more"}) // a courtesy
	})
}

// nextToken returns a progress token.
func (c *Conn) nextToken() string { return "p" + strconv.FormatInt(c.token.Add(1), 10) }

// Ping asks whether the server is there.
func (c *Conn) Ping(ctx context.Context) error {
	if c.modern() { // which has no ping: any request will do
		_, err := c.Tools(ctx)
		return err
	}
	_, err := c.do(ctx, mcp.MethodPing, nil)
	return err
}

// SetLogLevel asks for the messages of a level ("debug" … "emergency") and
// above.
func (c *Conn) SetLogLevel(ctx context.Context, level string) error {
	if !c.info.Logging {
		return nil
	}
	if c.modern() {
		c.level.Store(level) // each request says it
		return nil
	}
	_, err := c.do(ctx, mcp.MethodSetLogLevel, fields{"level": level})
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
