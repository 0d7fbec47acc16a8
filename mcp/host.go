package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// Configured is a configured server.
type Configured struct {
	Name   string
	Server Server
	Source string // where it is configured, for display
	// Project says that a project configures it, and not the user.
	Project bool
	// Problem is why it cannot be used, such as an untrusted project; nil if it
	// can.
	Problem error
	// Hint is added to the error of a server that does not start; may be empty.
	Hint string
	// Widen stores that the server may access more, once the user allowed it, and
	// returns its sandbox from now on; nil if nothing can be added.
	Widen func(ctx context.Context, more core.Access) (*Confine, error)
}

// HostOptions configure a [Host].
type HostOptions struct {
	Servers []Configured // the first of several with the same name wins
	Connect ConnectOptions
	// Dir caches what is known of servers; empty disables the cache.
	Dir    string
	Logger *slog.Logger // nil discards
	// Started is called when a server was started, or could not be; may be nil.
	Started func(server string, took time.Duration, err error)
}

// Host owns the connections to servers: one per server, shared by all sessions.
// It is safe for concurrent use. Creating one starts and reads nothing.
type Host struct {
	options HostOptions
	records records
	servers []*server
	log     *slog.Logger

	life context.Context // ends with the host
	end  context.CancelFunc
	wg   sync.WaitGroup // background work
	run  runFile

	resourcesChanged chan struct{} // Changed of the resource toolset

	mu              sync.Mutex
	closed          bool
	resourcesClosed bool                       // resourcesChanged is closed
	readers         map[string]map[string]bool // sessions by "server uri" that they have read
	changes         map[string][]string        // changed "server uri" by session
}

// NewHost returns a host of the given servers. The caller closes it, even if its
// toolsets are closed.
func NewHost(o HostOptions) *Host {
	h := &Host{options: o, records: records{o.Dir}, log: o.Logger, resourcesChanged: make(chan struct{}, 1), readers: map[string]map[string]bool{}, changes: map[string][]string{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.options.Connect.Logger = h.log
	h.life, h.end = context.WithCancel(context.Background())
	if o.Dir != "" {
		h.run.dir = filepath.Join(o.Dir, "run")
	}
	for _, c := range o.Servers {
		s := &server{host: h, Configured: c, hash: c.Server.Hash(), changed: make(chan struct{}, 1)}
		if err := CheckName(c.Name); err != nil && s.Problem == nil {
			s.Problem = err
		}
		if err := c.Server.Check(); err != nil && s.Problem == nil {
			s.Problem = err
		}
		if other := h.server(c.Name); other != nil {
			s.Problem = fmt.Errorf("overridden by the server of the same name in %s", other.Source)
		}
		h.servers = append(h.servers, s)
	}
	return h
}

// server returns the server of that name, nil if there is none.
func (h *Host) server(name string) *server {
	i := slices.IndexFunc(h.servers, func(s *server) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return h.servers[i]
}

// usable returns the server of that name, if it can be used.
func (h *Host) usable(name string) (*server, error) {
	s := h.server(name)
	switch {
	case s == nil:
		var names []string
		for _, o := range h.servers {
			if o.usable() {
				names = append(names, o.Name)
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("no MCP server %q: none are configured", name)
		}
		return nil, fmt.Errorf("no MCP server %q; configured: %s", name, strings.Join(names, ", "))
	case s.problem() != nil:
		return nil, &ServerError{name, s.problem()}
	case s.Server.Disabled:
		return nil, &ServerError{name, errors.New("disabled")}
	}
	return s, nil
}

// Confine changes the sandbox of a server's process, which ends: the next call starts
// it again.
func (h *Host) Confine(name string, c *Confine) {
	if s := h.server(name); s != nil {
		s.confine(c)
	}
}

// Toolsets returns a toolset for each usable server and, if there are any, one
// that reads the resources of all. Closing a server's toolset stops the server.
func (h *Host) Toolsets() []core.Toolset {
	var sets []core.Toolset
	for _, s := range h.servers {
		if s.usable() {
			sets = append(sets, &toolset{s})
		}
	}
	if len(sets) > 0 {
		sets = append(sets, &resourceToolset{h})
	}
	return sets
}

// Refuse stops a server for good. Its status reports the reason.
func (h *Host) Refuse(name string, why error) {
	s := h.server(name)
	if s == nil {
		return
	}
	s.mu.Lock()
	s.refused = why
	s.mu.Unlock()
	s.close()
}

// Warm starts the servers whose tools are not known yet, in the background. Their
// toolsets signal when they are.
func (h *Host) Warm() {
	for _, s := range h.servers {
		if s.usable() && !s.known() {
			s.begin()
		}
	}
}

// Ready waits until the tools of all required servers are known. Missing are the
// other servers whose tools are not known yet. The error names the required
// servers that failed.
func (h *Host) Ready(ctx context.Context) (missing []string, err error) {
	h.Warm()
	var errs []error
	for _, s := range h.servers {
		switch {
		case !s.Server.Disabled && s.Server.Required && s.problem() != nil:
			errs = append(errs, &ServerError{s.Name, s.problem()})
		case !s.usable() || s.known():
		case s.Server.Required:
			_, err := s.connection(ctx)
			errs = append(errs, err)
		default:
			missing = append(missing, s.Name)
		}
	}
	return missing, errors.Join(errs...)
}

// Skipped returns how many tools of each server were left out, as last read. It
// starts no server.
func (h *Host) Skipped() map[string]int {
	all := map[string]int{}
	for _, s := range h.servers {
		if !s.usable() {
			continue
		}
		s.mu.Lock()
		if n := s.summary().skipped; n > 0 {
			all[s.Name] = n
		}
		s.mu.Unlock()
	}
	return all
}

// Status is the status of a server.
type Status struct {
	Configured
	Hash      string
	Running   bool
	PID       int
	Known     bool // its tools are known
	Info      Info
	Tools     []ToolInfo // offered to the model
	Blocked   []string   // names of those whose definition has changed
	Skipped   []string   // why tools were left out
	Resources int        // number of resources and templates
	Prompts   []Prompt
	Starts    int
	Err       error // of the last attempt to start it
}

// Status returns the status of all servers, in order.
func (h *Host) Status() []Status {
	list := make([]Status, len(h.servers))
	for i, s := range h.servers {
		list[i] = s.status()
	}
	return list
}

// Running reports which of the servers that can be used are connected.
func (h *Host) Running() map[string]bool {
	all := map[string]bool{}
	for _, s := range h.servers {
		if s.usable() {
			s.mu.Lock()
			all[s.Name] = s.conn != nil && s.conn.Err() == nil
			s.mu.Unlock()
		}
	}
	return all
}

// Change is a tool's approved definition and the server's current one.
type Change struct {
	Tool     string
	Old, New ToolInfo
}

// Changes returns the changes of a server's tools that need approval.
func (h *Host) Changes(name string) []Change {
	s := h.server(name)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.record()
	var list []Change
	for _, t := range rec.Changed {
		old, now, _ := rec.change(t.Name)
		list = append(list, Change{t.Name, old, now})
	}
	return list
}

// Accept approves the changed definitions of the named tools, or of all if none
// are named, and returns the names of those it approved.
func (h *Host) Accept(ctx context.Context, name string, tools ...string) ([]string, error) {
	s := h.server(name)
	if s == nil {
		return nil, fmt.Errorf("no MCP server %q", name)
	}
	return s.accept(ctx, tools...)
}

// Refresh connects to a server, if it is not connected, and rereads its lists, all
// within its start timeout.
// The status is valid even with an error.
func (h *Host) Refresh(ctx context.Context, name string) (Status, error) {
	s, err := h.usable(name)
	if err != nil {
		return Status{}, err
	}
	ctx, cancel := withStartTimeout(ctx, s.Server)
	defer cancel()
	conn, err := s.connection(ctx)
	if err == nil {
		err = s.refresh(ctx, conn)
	}
	if err == nil {
		s.refreshRest(ctx, conn)
	}
	return s.status(), err
}

// Ping checks whether a server responds; it starts the server if needed.
func (h *Host) Ping(ctx context.Context, name string) error {
	s, err := h.usable(name)
	if err != nil {
		return err
	}
	conn, err := s.connection(ctx)
	if err != nil {
		return err
	}
	return conn.Ping(ctx)
}

// Forget deletes what is cached about a server.
func (h *Host) Forget(s Server) error { return h.records.remove(s.Hash()) }

// Close ends all connections and waits for background work. It takes as long as
// the slowest server takes to exit, at most 5 seconds.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	var wg sync.WaitGroup
	for _, s := range h.servers {
		wg.Go(s.close)
	}
	wg.Wait()
	h.wg.Wait()
	h.closeResources()
	h.run.remove()
	return nil
}

// spawn runs f in the background, unless the host is closed.
func (h *Host) spawn(f func(life context.Context)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Go(func() { f(h.life) })
	return true
}

// Prompts returns the known prompts by server.
func (h *Host) Prompts() map[string][]Prompt {
	all := map[string][]Prompt{}
	for _, s := range h.servers {
		if !s.usable() {
			continue
		}
		s.mu.Lock()
		if p := s.record().Prompts; len(p) > 0 {
			all[s.Name] = p
		}
		s.mu.Unlock()
	}
	return all
}

// GetPrompt returns a prompt of a server with its arguments filled in.
func (h *Host) GetPrompt(ctx context.Context, name, prompt string, args map[string]string, caller Caller) (CallResult, error) {
	return withConn(ctx, h, name, func(c *Conn) (CallResult, error) { return c.GetPrompt(ctx, prompt, args, caller) })
}

// CompletePrompt lists completions for an argument of a prompt.
func (h *Host) CompletePrompt(ctx context.Context, name, prompt, argument, prefix string, others map[string]string) ([]string, error) {
	return withConn(ctx, h, name, func(c *Conn) ([]string, error) {
		return c.CompletePrompt(ctx, prompt, argument, prefix, others)
	})
}

// withConn makes a request to a server, and repeats it once if the server's
// session had expired.
func withConn[T any](ctx context.Context, h *Host, name string, request func(*Conn) (T, error)) (T, error) {
	var none T
	s, err := h.usable(name)
	if err != nil {
		return none, err
	}
	return withServer(ctx, s, request)
}

func withServer[T any](ctx context.Context, s *server, request func(*Conn) (T, error)) (T, error) {
	for again := true; ; again = false {
		conn, err := s.connection(ctx)
		if err != nil {
			var none T
			return none, err
		}
		v, err := request(conn)
		if err == nil {
			s.succeeded()
		}
		if !again || !errors.Is(err, errSessionGone) {
			return v, err
		}
		s.drop(conn)
	}
}
