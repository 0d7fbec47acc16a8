package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

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
	case err != nil && kind == TransportHTTP && errors.Is(err, errNoEndpoint):
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
	}
	return c, err
}

// final reports whether another protocol would not help.
func final(err error) bool {
	return errors.Is(err, ErrSignIn) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, errNotStarted) ||
		errors.Is(err, errNoEndpoint) || errors.Is(err, ErrMessageTooLong)
}

var (
	errNotStarted = errors.New("it could not be started")
	// errNoEndpoint is the error of a server that takes no messages where
	// streamable HTTP sends them. It may be one of SSE.
	errNoEndpoint = errors.New("it takes no messages over streamable HTTP")
)

// attempt makes one try; version is empty where it is to be found out.
func (d *dialer) attempt(ctx context.Context, kind, version string) (*Conn, error) {
	timeout := d.server.startTimeout()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it did not answer the handshake within %s (startTimeoutMs)", timeout))
	defer cancel()
	c := &Conn{session: newSession(), name: d.name, server: d.server}
	c.notices = newNotices(d.options.Notify)
	c.notify = c.noticed
	c.answer = d.handlers(c).answer
	link, err := d.transport(c, kind)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	c.link = link
	if err = link.start(ctx); err == nil {
		err = c.handshake(ctx, version)
	}
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = context.Cause(ctx)
		}
		_ = c.Close()
		return nil, err
	}
	c.info.Transport = kind
	c.spawn(func() { c.notices.deliver(c.ctx) })
	c.listen(ctx)
	return c, nil
}

// handlers are what answers the server's requests. It says what of that there
// is.
func (d *dialer) handlers(c *Conn) *handlers {
	h := &handlers{conn: c, limits: d.server.Sampling, roots: []mcp.Root{}}
	for _, dir := range d.options.Roots {
		h.roots = append(h.roots, mcp.Root{URI: fileURI(dir), Name: filepath.Base(dir)})
	}
	abilities := fields{"roots": fields{}, "elicitation": fields{"form": fields{}, "url": fields{}}}
	if d.server.Sampling.Enabled && d.options.Sample != nil {
		h.sample = d.options.Sample
		abilities["sampling"] = fields{}
	}
	c.about = fields{
		mcp.MetaKeyClientInfo:         fields{"name": orElse(d.options.ClientName, "agent"), "version": orElse(d.options.ClientVersion, "dev")},
		mcp.MetaKeyClientCapabilities: abilities,
	}
	return h
}

// transport makes the transport of a kind.
func (d *dialer) transport(c *Conn, kind string) (transport, error) {
	if kind == TransportStdio {
		return d.stdio(c)
	}
	var authorize func(base http.RoundTripper) http.RoundTripper
	if d.options.Authorize != nil {
		authorize = func(base http.RoundTripper) http.RoundTripper { return d.options.Authorize(d.name, d.server, base) }
	}
	w, err := newWeb(c.session, d.server, authorize)
	if err != nil {
		return nil, err
	}
	if kind == TransportSSE {
		return &sseLink{web: w}, nil
	}
	return &streamable{web: w}, nil
}

func (d *dialer) stdio(c *Conn) (transport, error) {
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
	return newStdio(c.session, d.options.Supervisor, spec, d.server.maxMessage()), nil
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

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
