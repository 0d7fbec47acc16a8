package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core/proc"
)

// ConnectOptions say how a connection is made. The zero value does for a server
// that is reached by HTTP.
type ConnectOptions struct {
	Supervisor *proc.Supervisor // owns the processes of stdio servers; needed for those
	// Prepare may change how a process is started, such as its sandbox. It is
	// called with the server's settings, their variables put in.
	Prepare   func(name string, s Server, spec *proc.Spec) error
	Authorize Authorizer // nil signs in nowhere
	// Lookup finds variables for the settings; nil is the environment.
	Lookup  func(name string) (string, bool)
	Environ []string // of this process, of which servers get what is harmless; nil is os.Environ()
	Dir     string   // that servers work in which name none; empty = the present one
	Known   Known    // what an earlier connection found out
	Roots   []string // directories that the server may know of, absolute
	Sample  Sampler  // asks a model; nil = there is none

	ClientName, ClientVersion string
	// Notify hears of changes on the server's side. It is called by one
	// goroutine at a time, and may make requests.
	Notify func(ctx context.Context, n Notice)
	Logger *slog.Logger // nil discards
}

// Known is what a connection found out that the next one need not try again.
type Known struct {
	Protocol  string `json:"protocol,omitempty"`  // version of the protocol
	Transport string `json:"transport,omitempty"` // where it is not the one that was asked for
}

// probeShare is which part of the time for the handshake the newest protocol
// gets before an older one is tried.
const probeShare = 2

// Connect connects to a server. It returns when the handshake is done, within
// the server's start time-out for each way that has to be tried. The connection
// outlives ctx. Errors are of type [*ServerError].
func Connect(ctx context.Context, name string, s Server, o ConnectOptions) (*Conn, error) {
	if o.Lookup == nil {
		o.Lookup = Environ
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	wrap := func(err error) error { return (&Conn{name: name}).wrap(err) }
	s, err := s.Expand(o.Lookup)
	if err != nil {
		return nil, wrap(err)
	}
	d := &dialer{name: name, server: s, options: o}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	return c, nil
}

// dialer makes a connection, in whichever way works.
type dialer struct {
	name    string
	server  Server
	options ConnectOptions
}

// connect tries the newest protocol first, unless it is known what the server
// speaks. A server that falls over a question of the new era gets a new process
// and the old handshake.
func (d *dialer) connect(ctx context.Context) (*Conn, error) {
	kind, version := d.server.Transport(), d.server.Protocol
	known := d.options.Known
	if version == "" {
		version = known.Protocol
	}
	if kind == TransportHTTP && known.Transport == TransportSSE {
		kind = TransportSSE
	}
	c, err := d.attempt(ctx, kind, version)
	if err != nil && version != "" && d.server.Protocol == "" && !final(err) && ctx.Err() == nil {
		version = "" // what was known holds no more
		c, err = d.attempt(ctx, kind, version)
	}
	switch {
	case err != nil && kind == TransportHTTP && errors.Is(err, transport.ErrLegacySSEServer):
		older, err := d.attempt(ctx, TransportSSE, "")
		if err == nil {
			return older, nil
		}
		if own := (*ServerError)(nil); errors.As(err, &own) {
			err = own.Err
		}
		return nil, fmt.Errorf("%s speaks MCP neither over HTTP nor over SSE: %w", d.server.Describe(), err)
	case err != nil && kind == TransportStdio && version == "" && !final(err) && ctx.Err() == nil:
		return d.attempt(ctx, kind, mcp.LATEST_LEGACY_PROTOCOL_VERSION)
	case err == nil && kind == TransportHTTP && version == "" && !c.modern.Load():
		// In the old era notifications and questions outside a call come over a
		// stream of their own, which the transport must be made for.
		version = c.info.Protocol
		_ = c.Close()
		return d.attempt(ctx, kind, version)
	}
	return c, err
}

// final reports whether another protocol would not help.
func final(err error) bool {
	return errors.Is(err, ErrSignIn) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, errNotStarted) ||
		errors.Is(err, transport.ErrLegacySSEServer) || errors.Is(err, ErrMessageTooLong)
}

var errNotStarted = errors.New("it could not be started")

// attempt makes one try; version is empty where it is to be found out.
func (d *dialer) attempt(ctx context.Context, kind, version string) (*Conn, error) {
	timeout := d.server.startTimeout()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it did not answer the handshake within %s (startTimeoutMs)", timeout))
	defer cancel()
	c := &Conn{name: d.name, server: d.server, pid: func() int { return 0 }, gone: func() error { return nil }, idle: func() {}}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.notices = newNotices(d.options.Notify)
	inner, err := d.transport(c, kind, version)
	if err != nil {
		c.end(err)
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	c.client = client.NewClient(newTap(c, inner), d.clientOptions(c, version, timeout)...)
	c.client.OnNotification(c.notices.take)
	startCtx := ctx
	if _, streams := inner.(*transport.StreamableHTTP); streams {
		startCtx = c.life // what it begins there lasts as long as the connection
	}
	if err = c.client.Start(startCtx); err == nil {
		err = d.handshake(ctx, c)
	}
	if err != nil {
		if cause := context.Cause(ctx); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		_ = c.Close()
		return nil, err
	}
	d.watch(c, inner)
	c.info.Transport = kind
	c.ready.Store(true)
	c.spawn(c.notices.deliver)
	c.listen()
	return c, nil
}

// handshake introduces the two sides to each other.
func (d *dialer) handshake(ctx context.Context, c *Conn) error {
	var req mcp.InitializeRequest
	req.Params.ClientInfo = mcp.Implementation{Name: orElse(d.options.ClientName, "agent"), Version: orElse(d.options.ClientVersion, "dev")}
	ctx, r := withRaw(ctx)
	res, err := c.client.Initialize(ctx, req)
	if err != nil {
		return c.explain(err, r)
	}
	c.info = infoOf(res)
	c.modern.Store(mcp.IsModernProtocol(res.ProtocolVersion))
	return nil
}

func infoOf(res *mcp.InitializeResult) Info {
	can := res.Capabilities
	return Info{
		Name: clip(cleanLine(res.ServerInfo.Name), 100), Title: clip(cleanLine(res.ServerInfo.Title), 100), Version: clip(cleanLine(res.ServerInfo.Version), 100),
		Protocol: res.ProtocolVersion, Instructions: clip(cleanText(res.Instructions), 8000),
		Tools: can.Tools != nil, Resources: can.Resources != nil, Prompts: can.Prompts != nil, Completions: can.Completions != nil,
		Subscribe: can.Resources != nil && can.Resources.Subscribe, Logging: can.Logging != nil,
		Tasks: can.Tasks != nil && can.Tasks.Requests != nil && can.Tasks.Requests.Tools != nil && can.Tasks.Requests.Tools.Call != nil,
	}
}

func (d *dialer) clientOptions(c *Conn, version string, timeout time.Duration) []client.ClientOption {
	h := &handlers{conn: c, sample: d.options.Sample, limits: d.server.Sampling}
	for _, dir := range d.options.Roots {
		h.roots = append(h.roots, mcp.Root{URI: fileURI(dir), Name: filepath.Base(dir)})
	}
	opts := []client.ClientOption{
		client.WithElicitationHandler(h), client.WithRootsHandler(h), client.WithDiscoverTimeout(timeout / probeShare),
		client.WithClientCapabilities(mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}}),
	}
	if version != "" {
		opts = append(opts, client.WithProtocolVersion(version))
	}
	if d.server.Sampling.Enabled && d.options.Sample != nil {
		opts = append(opts, client.WithSamplingHandler(h))
	}
	return opts
}

// transport makes the transport of a kind.
func (d *dialer) transport(c *Conn, kind, version string) (transport.Interface, error) {
	if kind == TransportStdio {
		return d.stdio(c)
	}
	var authorize func(base http.RoundTripper) http.RoundTripper
	if d.options.Authorize != nil {
		authorize = func(base http.RoundTripper) http.RoundTripper { return d.options.Authorize(d.name, d.server, base) }
	}
	httpClient, idle, err := newHTTPClient(d.server, authorize)
	if err != nil {
		return nil, err
	}
	c.idle = idle
	if kind == TransportSSE {
		return newSSE(d.server.URL, d.server.Headers, httpClient)
	}
	opts := []transport.StreamableHTTPCOption{
		transport.WithHTTPBasicClient(httpClient), transport.WithHTTPHeaders(d.server.Headers), transport.WithHTTPLogger(d.options.Logger),
	}
	if version != "" && !mcp.IsModernProtocol(version) {
		//lint:ignore SA1019 in the old era notifications come no other way
		opts = append(opts, transport.WithContinuousListening())
	}
	return transport.NewStreamableHTTP(d.server.URL, opts...)
}

func (d *dialer) stdio(c *Conn) (transport.Interface, error) {
	if d.options.Supervisor == nil {
		return nil, errors.New("ConnectOptions.Supervisor is needed for a stdio server")
	}
	dir := d.options.Dir
	if cwd := d.server.Cwd; cwd != "" {
		if dir = cwd; !filepath.IsAbs(dir) {
			dir = filepath.Join(d.options.Dir, cwd)
		}
	}
	spec := proc.Spec{Path: d.server.Command, Args: d.server.Args, Dir: dir, Env: childEnv(d.options.Environ, d.server.Env)}
	if d.options.Prepare != nil {
		if err := d.options.Prepare(d.name, d.server, &spec); err != nil {
			return nil, err
		}
	}
	t := newStdio(d.options.Supervisor, spec, d.server.maxMessage())
	c.pid = t.pid
	return t, nil
}

// networkNames are variables without which a program finds no way out of some
// networks.
var networkNames = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_cache", "UV_INDEX_URL",
}

// childEnv is the environment of a server: what programs need to find their
// way, and what its settings give it. Nothing that looks like a secret gets
// there by itself.
func childEnv(environ []string, own map[string]string) []string {
	env := proc.FilterEnv(environ, proc.InheritCore, networkNames...)
	for name, value := range own {
		env = append(env, name+"="+value) // the last one counts
	}
	return env
}

// watch ends the connection when its transport does.
func (d *dialer) watch(c *Conn, inner transport.Interface) {
	var p *peer
	switch t := inner.(type) {
	case *stdio:
		p = t.peer
	case *sse:
		p = t.peer
	default:
		return
	}
	c.gone = func() error { return context.Cause(p.ctx) }
	c.spawn(func(life context.Context) {
		select {
		case <-p.ctx.Done():
			c.end(context.Cause(p.ctx))
		case <-life.Done():
		}
	})
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
