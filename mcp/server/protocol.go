package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// protocol is the server side of MCP in all revisions, over any transport. Up to
// 2025-11-25, here called legacy, a client describes itself once, in initialize;
// since 2026-07-28, here called modern, each request does so in its _meta, and
// the protocol is stateless. It is safe for concurrent use, except for legacy and
// modern, which are set before serving.
type protocol struct {
	info         mcp.Implementation
	instructions string
	capabilities mcp.ServerCapabilities
	refresh      func(context.Context) // updates the tools before they are listed; may be nil
	log          *slog.Logger

	legacy, modern map[string]method // by name

	mu       sync.Mutex
	tools    map[string]tool
	watchers map[any]func() // called when the tools have changed
}

// method answers a request. A *jsonrpc.Error goes to the client unchanged, other
// errors as internal errors. Results are of package mcp, and not shared.
type method func(ctx context.Context, r *request) (mcp.ResultMetadata, error)

// tool is an offered tool.
type tool struct {
	mcp.Tool
	call func(ctx context.Context, r *request, params *callParams) (*mcp.CallToolResult, error)
}

// callParams are the parameters of tools/call.
type callParams struct {
	Name           string                     `json:"name"`
	Arguments      json.RawMessage            `json:"arguments"`
	RequestState   string                     `json:"requestState"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
}

// request is a request of a client.
type request struct {
	jsonrpc.Message
	meta   meta
	modern bool
	header http.Header // nil for other transports than HTTP
	client *client
	send   sendFunc // sends messages before the response
}

// meta is the _meta of a request.
type meta struct {
	ProgressToken json.RawMessage         `json:"progressToken"`
	Version       string                  `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities  *mcp.ClientCapabilities `json:"io.modelcontextprotocol/clientCapabilities"`
	LogLevel      mcp.LoggingLevel        `json:"io.modelcontextprotocol/logLevel"`
}

// sendFunc sends a message to a client. It fails when the client is gone or does
// not read.
type sendFunc func(m jsonrpc.Message) error

func newProtocol(version, instructions string, log *slog.Logger) *protocol {
	p := &protocol{
		info: mcp.Implementation{Name: "agent", Version: version}, instructions: instructions, log: log,
		tools: map[string]tool{}, watchers: map[any]func(){},
	}
	p.capabilities.Tools = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{ListChanged: true}
	p.legacy = map[string]method{
		string(mcp.MethodInitialize): p.initialize,
		string(mcp.MethodPing):       func(context.Context, *request) (mcp.ResultMetadata, error) { return &mcp.Result{}, nil },
		string(mcp.MethodToolsList):  p.listTools,
		string(mcp.MethodToolsCall):  p.callTool,
	}
	p.modern = map[string]method{
		string(mcp.MethodServerDiscover):      p.discover,
		string(mcp.MethodSubscriptionsListen): p.listen,
		string(mcp.MethodToolsList):           p.listTools,
		string(mcp.MethodToolsCall):           p.callTool,
	}
	return p
}

func fault(code int, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func errorResponse(id json.RawMessage, err *jsonrpc.Error) jsonrpc.Message {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return jsonrpc.Message{Version: mcp.JSONRPC_VERSION, ID: id, Error: err}
}

// notification returns a notification.
func notification(method mcp.MCPMethod, params map[string]any) jsonrpc.Message {
	m := jsonrpc.Message{Version: mcp.JSONRPC_VERSION, Method: string(method)}
	if params != nil {
		m.Params = jsonrpc.Encode(params)
	}
	return m
}

// parse parses a message of a client.
func parse(data []byte) (jsonrpc.Message, *jsonrpc.Error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return jsonrpc.Message{}, fault(mcp.INVALID_REQUEST, "batches are not supported: send messages one by one")
	}
	m, err := jsonrpc.Parse(data)
	if err != nil {
		return jsonrpc.Message{}, fault(mcp.PARSE_ERROR, "invalid JSON-RPC message: %v", err)
	}
	note := !m.HasID() && strings.HasPrefix(m.Method, "notifications/")
	switch {
	case m.HasID() && !strings.ContainsRune(`"-0123456789`, rune(m.ID[0])):
		m.ID = nil
		return m, fault(mcp.INVALID_REQUEST, "id: expected a string or a number")
	case m.Version != mcp.JSONRPC_VERSION:
		return m, fault(mcp.INVALID_REQUEST, `jsonrpc: expected "2.0"`)
	case m.Method == "" && (!m.HasID() || m.Result == nil && m.Error == nil), m.Method != "" && !m.HasID() && !note:
		return m, fault(mcp.INVALID_REQUEST, "expected a request, a notification or a response")
	}
	return m, nil
}

// parseRequest reads the metadata of a request, and over HTTP checks that it
// matches the headers.
func parseRequest(m jsonrpc.Message, header http.Header) (*request, *jsonrpc.Error) {
	r := &request{Message: m, header: header}
	var params struct {
		Meta meta `json:"_meta"`
	}
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &params); err != nil {
			return r, fault(mcp.INVALID_PARAMS, "params: %v", err)
		}
	}
	r.meta = params.Meta
	over := header.Get(mcp.HeaderProtocolVersion)
	r.modern = mcp.IsModernProtocol(r.meta.Version) || mcp.IsModernProtocol(over)
	if !r.modern {
		return r, nil
	}
	switch {
	case header != nil && over == "":
		return r, fault(mcp.HEADER_MISMATCH, "the header %s is missing", mcp.HeaderProtocolVersion)
	case r.meta.Version == "":
		return r, fault(mcp.INVALID_PARAMS, "_meta has no %s", mcp.MetaKeyProtocolVersion)
	case header != nil && over != r.meta.Version:
		return r, fault(mcp.HEADER_MISMATCH, "the header %s is %q, and %s is %q", mcp.HeaderProtocolVersion, over, mcp.MetaKeyProtocolVersion, r.meta.Version)
	case !mcp.IsValidProtocolVersion(r.meta.Version):
		return r, unsupported(r.meta.Version)
	case r.meta.Capabilities == nil:
		return r, fault(mcp.INVALID_PARAMS, "_meta has no %s", mcp.MetaKeyClientCapabilities)
	}
	if header != nil {
		if err := mcp.ValidateStandardHeaders(header.Get, r.meta.Version, mcp.MCPMethod(m.Method), m.Params); err != nil {
			return r, fault(mcp.HEADER_MISMATCH, "%v", err)
		}
	}
	return r, nil
}

func unsupported(version string) *jsonrpc.Error {
	err := fault(mcp.UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version %q: expected one of %s", version, strings.Join(mcp.ValidProtocolVersions, ", "))
	err.Data = jsonrpc.Encode(mcp.UnsupportedProtocolVersionData{Supported: mcp.ValidProtocolVersions, Requested: version})
	return err
}

// params decodes the parameters of a request.
func (r *request) params(into any) error {
	if len(r.Params) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Params, into); err != nil {
		return fault(mcp.INVALID_PARAMS, "params: %v", err)
	}
	return nil
}

// capabilities returns the capabilities of the request's client.
func (r *request) capabilities() mcp.ClientCapabilities {
	if r.modern {
		return *r.meta.Capabilities
	}
	return r.client.capabilities()
}

// ask sends a request to the client of a legacy request, and waits for its result.
func (r *request) ask(ctx context.Context, method mcp.MCPMethod, params any) (json.RawMessage, error) {
	if r.modern {
		return nil, errors.New("clients of the modern protocol accept no requests")
	}
	return r.client.ask(ctx, r.send, method, params)
}

// answer handles a request.
func (p *protocol) answer(ctx context.Context, r *request) jsonrpc.Message {
	methods := p.legacy
	if r.modern {
		methods = p.modern
	}
	do := methods[r.Method]
	if do == nil {
		return errorResponse(r.ID, fault(mcp.METHOD_NOT_FOUND, "unknown method %q in this protocol version", r.Method))
	}
	result, err := do(ctx, r)
	var data json.RawMessage
	if err == nil {
		p.complete(r, result)
		data, err = json.Marshal(result)
	}
	if err == nil {
		return jsonrpc.Message{Version: mcp.JSONRPC_VERSION, ID: r.ID, Result: data}
	}
	var known *jsonrpc.Error
	switch {
	case errors.As(err, &known):
	case ctx.Err() != nil:
		known = fault(mcp.REQUEST_INTERRUPTED, "the request was cancelled: %v", context.Cause(ctx))
	default:
		known = fault(mcp.INTERNAL_ERROR, "%v", err)
	}
	return errorResponse(r.ID, known)
}

// complete adds the fields of results of the modern protocol.
func (p *protocol) complete(r *request, result mcp.ResultMetadata) {
	if !r.modern {
		return
	}
	if result.GetResultType() == "" {
		result.SetResultType(mcp.ResultTypeComplete)
	}
	result.EnsureResultMeta().SetServerInfo(p.info)
	if c, ok := result.(mcp.CacheHintSetter); ok {
		c.SetCacheHints(0, mcp.CacheScopePrivate)
	}
}

// handleNotification handles a notification of a client. Unknown and invalid ones
// are ignored.
func (p *protocol) handleNotification(c *client, m jsonrpc.Message) {
	if m.Method == string(mcp.MethodNotificationCancelled) {
		var params struct {
			ID     json.RawMessage `json:"requestId"`
			Reason string          `json:"reason"`
		}
		if json.Unmarshal(m.Params, &params) == nil {
			c.cancel(params.ID)
		}
	}
}

func (p *protocol) initialize(_ context.Context, r *request) (mcp.ResultMetadata, error) {
	var params mcp.InitializeParams
	if err := r.params(&params); err != nil {
		return nil, err
	}
	r.client.setCapabilities(params.Capabilities)
	p.watch(r.client, r.client.changed)
	return &mcp.InitializeResult{
		ProtocolVersion: mcp.NegotiateLegacyVersion(params.ProtocolVersion), ServerInfo: p.info, Capabilities: p.capabilities, Instructions: p.instructions,
	}, nil
}

func (p *protocol) discover(context.Context, *request) (mcp.ResultMetadata, error) {
	return &mcp.DiscoverResult{SupportedVersions: mcp.ValidProtocolVersions, Capabilities: p.capabilities, Instructions: p.instructions}, nil
}

// listen sends notifications of changes until the request ends.
func (p *protocol) listen(ctx context.Context, r *request) (mcp.ResultMetadata, error) {
	var params mcp.SubscriptionsListenParams
	if err := r.params(&params); err != nil {
		return nil, err
	}
	notify := func(method mcp.MCPMethod, params map[string]any) error {
		params["_meta"] = map[string]any{mcp.MetaKeySubscriptionID: r.ID}
		return r.send(notification(method, params))
	}
	granted := mcp.SubscriptionFilter{ToolsListChanged: params.Notifications.ToolsListChanged} // nothing else can change
	changed := make(chan struct{}, 1)
	if granted.ToolsListChanged {
		p.watch(r, func() { signal(changed) })
		defer p.unwatch(r)
	}
	if err := notify(mcp.MethodNotificationSubscriptionsAcknowledged, map[string]any{"notifications": granted}); err != nil {
		return nil, err
	}
	result := &mcp.SubscriptionsListenResult{}
	result.EnsureResultMeta().SetSubscriptionID(r.ID)
	if granted.IsEmpty() {
		return result, nil
	}
	for {
		select {
		case <-changed:
			if err := notify(mcp.MethodNotificationToolsListChanged, map[string]any{}); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			if abandoned(ctx) {
				return nil, context.Cause(ctx)
			}
			return result, nil // the server is shutting down
		}
	}
}

// signal sends to a channel of capacity 1, unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch registers a function to call when the tools change. It must not block.
func (p *protocol) watch(who any, changed func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[who] = changed
}

func (p *protocol) unwatch(who any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, who)
}

// setTools replaces the offered tools.
func (p *protocol) setTools(tools ...tool) {
	byName := make(map[string]tool, len(tools))
	for _, t := range tools {
		byName[t.Name] = t
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = byName
	for _, changed := range p.watchers {
		changed()
	}
}

func (p *protocol) listTools(ctx context.Context, r *request) (mcp.ResultMetadata, error) {
	var params mcp.PaginatedParams
	if err := r.params(&params); err != nil {
		return nil, err
	}
	if params.Cursor != "" {
		return nil, fault(mcp.INVALID_PARAMS, "unknown cursor %q: the list has one page", params.Cursor)
	}
	if p.refresh != nil {
		p.refresh(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	result := &mcp.ListToolsResult{Tools: make([]mcp.Tool, 0, len(p.tools))}
	for _, t := range p.tools {
		result.Tools = append(result.Tools, t.Tool)
	}
	slices.SortFunc(result.Tools, func(a, b mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

func (p *protocol) callTool(ctx context.Context, r *request) (mcp.ResultMetadata, error) {
	var params callParams
	if err := r.params(&params); err != nil {
		return nil, err
	}
	p.mu.Lock()
	t, ok := p.tools[params.Name]
	p.mu.Unlock()
	if !ok {
		return nil, fault(mcp.INVALID_PARAMS, "unknown tool %q: see tools/list", params.Name)
	}
	if r.modern && r.header != nil {
		given := func(name string) (string, bool) { return r.header.Get(name), len(r.header.Values(name)) > 0 }
		if err := mcp.ValidateParamHeadersLookup(given, &t.Tool, r.Params); err != nil {
			return nil, fault(mcp.HEADER_MISMATCH, "%v", err)
		}
	}
	result, err := t.call(ctx, r, &params)
	if err != nil {
		return nil, err // not a nil *CallToolResult
	}
	return result, nil
}
