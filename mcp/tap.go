package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// cancelTimeout bounds the notification that takes a request back.
const cancelTimeout = 5 * time.Second

// tap lies between the library's client and a transport. It keeps what the
// library would lose or do wrong: the bytes of results and the codes of errors,
// a discovery that says nothing, requests that are cancelled over HTTP, and
// the time that a person may take to answer.
type tap struct {
	transport.Interface
	conn *Conn
}

// raw takes the outcome of a request as the server sent it.
type raw struct {
	result json.RawMessage
	rpc    *mcp.JSONRPCErrorDetails
}

type rawKey struct{}

// withRaw has the outcome of the requests that are made with the context kept;
// of several the last.
func withRaw(ctx context.Context) (context.Context, *raw) {
	r := &raw{}
	return context.WithValue(ctx, rawKey{}, r), r
}

// SendRequest implements [transport.Interface].
func (t *tap) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	resp, err := t.Interface.SendRequest(ctx, req)
	if err == nil && resp == nil {
		err = errors.New("the server gave no response")
	}
	if err != nil {
		if ctx.Err() != nil {
			t.takeBack(req)
		}
		return nil, err
	}
	if req.Method == string(mcp.MethodServerDiscover) && resp.Error == nil && !discovered(resp.Result) {
		resp.Error = &mcp.JSONRPCErrorDetails{Code: mcp.METHOD_NOT_FOUND, Message: "the server answers, but names no versions"}
		resp.Result = nil
	}
	if resp.Error == nil && len(resp.Result) == 0 {
		resp.Result = json.RawMessage("null")
	}
	if r, ok := ctx.Value(rawKey{}).(*raw); ok {
		r.result, r.rpc = resp.Result, resp.Error
	}
	return resp, nil
}

// discovered reports whether the result of server/discover is one. A server
// that answers {} to whatever it does not know is of no new era.
func discovered(result json.RawMessage) bool {
	var r mcp.DiscoverResult
	return json.Unmarshal(result, &r) == nil && slices.ContainsFunc(r.SupportedVersions, mcp.IsModernProtocol)
}

// takeBack tells a server that nobody waits for a request any more, where the
// end of its HTTP request does not say so.
func (t *tap) takeBack(req transport.JSONRPCRequest) {
	if _, http := t.Interface.(transport.HTTPConnection); !http || t.conn.modern.Load() || !t.conn.ready.Load() {
		return // else the library does it, or the transport by itself
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: string(mcp.MethodNotificationCancelled),
		Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": req.ID, "reason": "nobody waits for it any more"}},
	}}
	t.conn.spawn(func(life context.Context) {
		ctx, cancel := context.WithTimeout(life, cancelTimeout)
		defer cancel()
		_ = t.Interface.SendNotification(ctx, n) // a courtesy
	})
}

// SetRequestHandler implements [transport.BidirectionalInterface]. The handler
// gets as long as the request lasts that the server's belongs to: the library
// allows 30 seconds, a person needs more.
func (t *tap) SetRequestHandler(handle transport.RequestHandler) {
	both, ok := t.Interface.(transport.BidirectionalInterface)
	if !ok {
		return
	}
	both.SetRequestHandler(func(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		p := pendingOf(ctx)
		if p == nil {
			p = t.conn.requests.latest()
		}
		own, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), pendingKey{}, p))
		defer cancel()
		defer context.AfterFunc(t.conn.life, cancel)()
		if p != nil {
			defer context.AfterFunc(p.ctx, cancel)()
		}
		if _, http := t.Interface.(*transport.StreamableHTTP); !http {
			defer context.AfterFunc(ctx, cancel)() // there it ends only when the server takes the request back
		}
		return handle(own, req)
	})
}

// httpTap is a tap on a transport over HTTP.
type httpTap struct {
	*tap
	http transport.HTTPConnection
}

// SetProtocolVersion implements [transport.HTTPConnection].
func (t *httpTap) SetProtocolVersion(version string) { t.http.SetProtocolVersion(version) }

// RequiresLegacyProtocol tells the library whether the transport is of the old
// era.
func (t *httpTap) RequiresLegacyProtocol() bool {
	l, ok := t.http.(interface{ RequiresLegacyProtocol() bool })
	return ok && l.RequiresLegacyProtocol()
}

// newTap wraps a transport for a connection.
func newTap(c *Conn, inner transport.Interface) transport.Interface {
	t := &tap{Interface: inner, conn: c}
	if http, ok := inner.(transport.HTTPConnection); ok {
		return &httpTap{t, http}
	}
	return t
}
