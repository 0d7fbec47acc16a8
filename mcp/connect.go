package mcp

import (
	"cmp"
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

// ConnectOptions configure [Connect]. The zero value works for a server reached
// over HTTP.
type ConnectOptions struct {
	Supervisor *proc.Supervisor // owns the processes of stdio servers; required for those
	// Prepare may change how a process is started, such as its sandbox. It is
	// called with the server's settings, variables expanded.
	Prepare   func(name string, s Server, spec *proc.Spec) error
	Authorize Authorizer // nil for no sign-in
	// Lookup looks up variables of the settings; nil uses the environment.
	Lookup func(name string) (string, bool)
	// Command runs the commands in the settings, each time a connection is made; nil
	// refuses them. What they print is removed from all that the server sends.
	Command Command
	Environ []string // environment whose harmless variables servers inherit; nil is os.Environ()
	Dir     string   // default working directory of servers; empty = the current one
	Known   Known    // from an earlier connection
	Roots   []string // absolute paths of directories to tell the server about
	Sample  Sampler  // queries a model; nil = none

	ClientName, ClientVersion string
	// Notify receives notices of the server, one at a time. It may make requests.
	Notify func(ctx context.Context, n Notice)
	Logger *slog.Logger // nil discards

	trying func(*session) // is called with each attempt; may be nil
}

// Known is what a connection found out, to spare the next one the attempts.
type Known struct {
	Protocol  string `json:"protocol,omitempty"`  // protocol version
	Transport string `json:"transport,omitempty"` // if not the configured one
}

// Connect connects to a server and does the handshake, within the server's start
// timeout, whatever protocols it has to try. The connection outlives ctx.
// Errors are of type [*ServerError].
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
	ctx, cancel := withStartTimeout(ctx, s)
	defer cancel()
	d := &dialer{name: name, options: o}
	var err error
	if d.server, err = s.Expand(ctx, o.Lookup, d.command()); err != nil {
		return nil, wrap(err)
	}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	return c, nil
}

// withStartTimeout limits starting a server.
func withStartTimeout(ctx context.Context, s Server) (context.Context, context.CancelFunc) {
	limit := s.startTimeout()
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response to the handshake within %s (startTimeoutMs)", limit))
}

// dialer makes a connection over whichever protocol works.
type dialer struct {
	name    string
	server  Server
	options ConnectOptions
	secrets secrets // what commands of the settings printed
}

// command returns the option Command, whose results are kept secret.
func (d *dialer) command() Command {
	if d.options.Command == nil {
		return nil
	}
	return func(ctx context.Context, line string) (string, error) {
		value, err := d.options.Command(ctx, line)
		d.secrets.add(value)
		return value, err
	}
}

// connect tries the newest protocol first, unless the server's is known. A server
// that crashes on a request of the modern protocol gets a new process and the
// legacy handshake.
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
		version = "" // what was known is outdated
		c, err = d.attempt(ctx, kind, version)
	}
	switch {
	case err != nil && kind == TransportHTTP && errors.Is(err, errNotStreamable):
		older, err := d.attempt(ctx, TransportSSE, "")
		if err == nil {
			return older, nil
		}
		if own := (*ServerError)(nil); errors.As(err, &own) {
			err = own.Err
		}
		return nil, fmt.Errorf("%s supports neither streamable HTTP nor SSE: %w", d.server.Describe(), err)
	case err != nil && kind == TransportStdio && version == "" && !final(err) && ctx.Err() == nil:
		return d.attempt(ctx, kind, mcp.LATEST_LEGACY_PROTOCOL_VERSION)
	}
	return c, err
}

// final reports whether trying another protocol would not help.
func final(err error) bool {
	return errors.Is(err, ErrSignIn) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, errNotStarted) ||
		errors.Is(err, errNotStreamable) || errors.Is(err, errMessageTooLong)
}

var (
	errNotStarted = errors.New("the server could not be started")
	// errNotStreamable is the error of a server that rejects POST requests to its
	// URL. It may use SSE.
	errNotStreamable = errors.New("the server does not support streamable HTTP")
)

// attempt tries one transport; an empty version is negotiated.
func (d *dialer) attempt(ctx context.Context, kind, version string) (*Conn, error) {
	c := &Conn{session: newSession(), name: d.name, server: d.server}
	c.secrets = d.secrets
	c.notices = newNotices(d.options.Notify)
	c.notify = c.handleNotification
	c.answer = d.newHandlers(c).answer
	if d.options.trying != nil {
		d.options.trying(c.session)
	}
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
			err = fmt.Errorf("%w%s", context.Cause(ctx), c.missing())
		}
		_ = c.Close()
		return nil, err
	}
	c.info.Transport = kind
	c.spawn(func() { c.notices.deliver(c.ctx) })
	c.listen(ctx)
	return c, nil
}

// newHandlers returns the handlers of the server's requests, and sets the
// capabilities that c announces.

func (d *dialer) newHandlers(c *Conn) *handlers {
	h := &handlers{conn: c, limits: d.server.Sampling, roots: []mcp.Root{}}
	for _, dir := range d.options.Roots {
		h.roots = append(h.roots, mcp.Root{URI: fileURI(dir), Name: filepath.Base(dir)})
	}
	capabilities := fields{"roots": fields{}, "elicitation": fields{"form": fields{}, "url": fields{}}}
	if d.server.Sampling.Enabled && d.options.Sample != nil {
		h.sample = d.options.Sample
		capabilities["sampling"] = fields{}
	}
	c.about = fields{
		mcp.MetaKeyClientInfo:         fields{"name": cmp.Or(d.options.ClientName, "agent"), "version": cmp.Or(d.options.ClientVersion, "dev")},
		mcp.MetaKeyClientCapabilities: capabilities,
	}
	return h
}

// transport returns a new transport.
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
		return nil, errors.New("a stdio server needs ConnectOptions.Supervisor")
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

// networkNames are variables that programs need to reach the internet from some
// networks.
var networkNames = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_cache", "UV_INDEX_URL",
}

// childEnv returns the environment of a server: harmless variables that programs
// need, and those of its settings. It inherits nothing that looks like a secret.
func childEnv(environ []string, own map[string]string) []string {
	env := proc.FilterEnvNames(environ, networkNames)
	for name, value := range own {
		env = append(env, name+"="+value) // the last one counts
	}
	return env
}
