package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of restarts after failures.
const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 30 * time.Second
	// maxRetryWait is how long a call waits for the next attempt before it fails.
	maxRetryWait = 2 * time.Second
)

// server is a configured server of a host.
type server struct {
	host *Host
	Configured
	hash    string
	changed chan struct{} // of its toolset

	// mu guards the following and is never held while waiting for the server.
	mu       sync.Mutex
	rec      *record  // nil until needed
	cached   *summary // of the record, if only that was needed
	refused  error    // see [Host.Refuse]
	conn     *Conn
	dialing  *dial
	failures int // since the last success
	retry    time.Time
	err      error // of the last attempt to start it
	starts   int
	closed   bool
	closing  sync.Once
	sandbox  *Confine // since [Host.Confine]

	learning sync.Mutex // held while the record changes
}

// dial is an attempt to connect, shared by all who wait for it.
type dial struct {
	done   chan struct{}
	cancel context.CancelFunc
	conn   *Conn
	err    error
	now    atomic.Pointer[session] // the current attempt
}

// missing says what the server has left unanswered so far.
func (d *dial) missing() string {
	if s := d.now.Load(); s != nil {
		return s.missing()
	}
	return ""
}

func (s *server) usable() bool { return s.problem() == nil && !s.Server.Disabled }

// problem returns why the server cannot be used, nil if it can.
func (s *server) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.Problem, s.refused)
}

// record returns the record of the server. The caller holds s.mu.
func (s *server) record() *record {
	if s.rec == nil {
		rec, err := s.host.records.load(s.hash)
		if err != nil {
			s.host.log.Warn("cannot read the cache of an MCP server", "server", s.Name, "error", err)
		}
		s.rec = rec
	}
	return s.rec
}

// summary returns the summary of the server's record. The caller holds s.mu.
func (s *server) summary() summary {
	if s.rec != nil {
		return s.rec.summary()
	}
	if s.cached == nil {
		f, err := s.host.records.loadSummary(s.hash)
		if err != nil {
			s.host.log.Warn("cannot read the cache of an MCP server", "server", s.Name, "error", err)
		}
		s.cached = &f
	}
	return *s.cached
}

// known reports whether the server's tools are known.
func (s *server) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary().known
}

// connection returns the connection to the server, which it makes if there is
// none. Concurrent callers share one attempt.
func (s *server) connection(ctx context.Context) (*Conn, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	conn, d, err := s.begin()
	if conn != nil || err != nil {
		return conn, err
	}
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, &ServerError{s.Name, fmt.Errorf("still starting: %w%s", context.Cause(ctx), d.missing())}
	}
}

// wait waits for the end of a short backoff.
func (s *server) wait(ctx context.Context) error {
	s.mu.Lock()
	left, last := time.Until(s.retry), s.err
	idle := s.conn == nil && s.dialing == nil
	s.mu.Unlock()
	switch {
	case !idle || left <= 0:
		return nil
	case left > maxRetryWait:
		return fmt.Errorf("%w (failed %d times; next attempt possible in %s)", last, s.tries(), left.Round(time.Second))
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &ServerError{s.Name, ctx.Err()}
	}
}

func (s *server) tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

// begin returns the connection or, if there is none, the attempt to make one.
func (s *server) begin() (*Conn, *dial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, &ServerError{s.Name, ErrClosed}
	case s.conn != nil && s.conn.Err() == nil:
		return s.conn, nil, nil
	case s.dialing != nil:
		return nil, s.dialing, nil
	}
	life, cancel := context.WithCancel(s.host.life)
	d := &dial{done: make(chan struct{}), cancel: cancel}
	known := s.record().Known
	if !s.host.spawn(func(context.Context) {
		defer cancel()
		start := time.Now()
		d.conn, d.err = s.connect(life, known, d.now.Store)
		if started := s.host.options.Started; started != nil {
			started(s.Name, time.Since(start), d.err)
		}
		s.finish(d)
	}) {
		cancel()
		return nil, nil, &ServerError{s.Name, ErrClosed}
	}
	s.dialing = d
	return nil, d, nil
}

// connect makes a connection and reads the tools, so that no call reaches a tool
// whose definition has changed.
func (s *server) connect(life context.Context, known Known, trying func(*session)) (*Conn, error) {
	o := s.host.options.Connect
	o.Known, o.trying = known, trying
	var self atomic.Pointer[Conn]
	o.Notify = func(ctx context.Context, n Notice) {
		if conn := self.Load(); conn != nil {
			s.handleNotice(ctx, conn, n)
		}
	}
	settings := s.Server
	s.mu.Lock()
	if s.sandbox != nil {
		settings.Sandbox = s.sandbox
	}
	s.mu.Unlock()
	ctx, cancel := withStartTimeout(life, settings)
	defer cancel()
	conn, err := Connect(ctx, s.Name, settings, o)
	if err != nil {
		if s.Hint != "" {
			err = fmt.Errorf("%w; %s", err, s.Hint)
		}
		return nil, err
	}
	self.Store(conn)
	if err := s.refresh(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// finish records the result of an attempt.
func (s *server) finish(d *dial) {
	s.mu.Lock()
	s.dialing = nil
	late := d.conn
	if s.closed && d.conn != nil {
		d.conn, d.err = nil, &ServerError{s.Name, ErrClosed}
	}
	s.conn, s.err = d.conn, d.err
	if d.err != nil {
		s.failed()
		s.host.log.Info("an MCP server failed to start", "server", s.Name, "error", d.err)
	} else {
		s.starts++
	}
	conn := d.conn
	s.mu.Unlock()
	if conn == nil && late != nil {
		_ = late.Close()
	}
	if conn != nil { // before anyone uses it
		s.host.run.set(s.Name, conn.PID(), conn.info.Transport)
	}
	close(d.done)
	if conn == nil {
		return
	}
	s.host.spawn(func(life context.Context) { s.refreshRest(life, conn) })
	s.host.spawn(func(life context.Context) {
		select {
		case <-conn.Done():
			s.disconnected(conn)
		case <-life.Done():
		}
	})
}

// failed counts a failure. The caller holds s.mu.
func (s *server) failed() {
	s.failures++
	s.retry = time.Now().Add(min(firstBackoff<<min(s.failures-1, 10), maxBackoff))
}

// disconnected records that a connection has ended.
func (s *server) disconnected(conn *Conn) {
	s.mu.Lock()
	if s.conn == conn {
		s.conn = nil
		s.err = conn.Err()
		if !errors.Is(s.err, ErrClosed) {
			s.failed()
		}
	}
	gone := s.conn == nil && s.dialing == nil
	s.mu.Unlock()
	if gone {
		s.host.run.set(s.Name, 0, "")
	}
	_ = conn.Close()
}

// drop closes an unusable connection.
func (s *server) drop(conn *Conn) {
	s.mu.Lock()
	if s.conn == conn {
		s.conn = nil
	}
	s.mu.Unlock()
	_ = conn.Close()
}

// confine changes the sandbox of the process.
func (s *server) confine(c *Confine) {
	s.mu.Lock()
	s.sandbox, s.failures, s.retry = c, 0, time.Time{}
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		s.drop(conn)
	}
}

// succeeded records a successful request.
func (s *server) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.retry, s.err = 0, time.Time{}, nil
}

// close stops the server for good.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	conn, d := s.conn, s.dialing
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
	if d != nil {
		d.cancel()
		<-d.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = nil
	s.closing.Do(func() { close(s.changed) })
}

// handleNotice handles a notification of the server.
func (s *server) handleNotice(ctx context.Context, conn *Conn, n Notice) {
	switch n.Kind {
	case ToolsChanged:
		if err := s.refresh(ctx, conn); err != nil {
			s.host.log.Info("cannot reread the tools of an MCP server", "server", s.Name, "error", err)
		}
	case PromptsChanged, ResourcesChanged:
		s.refreshRest(ctx, conn)
	case ResourceUpdated:
		s.host.updated(s.Name, n.Text)
	case LogMessage:
		s.host.log.Debug("log message of an MCP server", "server", s.Name, "level", n.Level, "text", n.Text)
	}
}

// refresh reads the tools and updates the record.
func (s *server) refresh(ctx context.Context, conn *Conn) error {
	var tools []ToolInfo
	var left []string
	if conn.info.Tools {
		list, err := conn.Tools(ctx)
		if err != nil && list == nil {
			return err
		}
		if err != nil {
			left = append(left, err.Error())
		}
		for _, t := range list {
			if err := checkTool(t); err != nil {
				left = append(left, err.Error())
				continue
			}
			tools = append(tools, t)
		}
	}
	known := Known{Protocol: conn.info.Protocol}
	if conn.info.Transport != s.Server.Transport() {
		known.Transport = conn.info.Transport
	}
	s.change(ctx, func(r *record) bool {
		first := r.Time.IsZero()
		changed := r.learn(s.hash, tools) || first || r.Known != known || r.Info != conn.info || !slices.Equal(r.Skipped, left)
		r.Name, r.Known, r.Info, r.Skipped = s.Name, known, conn.info, left
		return changed
	})
	return nil
}

// refreshRest reads the resources and prompts, if the server has any, within one
// list timeout.
func (s *server) refreshRest(ctx context.Context, conn *Conn) {
	limit := min(s.Server.listTimeout(), defaultListTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no lists of resources and prompts within %s (startTimeoutMs)", limit))
	defer cancel()
	var resources, templates []Resource
	var prompts []Prompt
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	if conn.info.Resources {
		var err error
		resources, err = conn.Resources(ctx)
		check(err)
		templates, err = conn.ResourceTemplates(ctx)
		if rpc := (*RPCError)(nil); !errors.As(err, &rpc) { // many do not support them
			check(err)
		}
	}
	if conn.info.Prompts {
		var err error
		prompts, err = conn.Prompts(ctx)
		check(err)
	}
	if err := errors.Join(errs...); err != nil {
		s.host.log.Info("cannot read the resources or prompts of an MCP server", "server", s.Name, "error", err)
		return
	}
	s.change(ctx, func(r *record) bool {
		before := encode([]any{r.Resources, r.Templates, r.Prompts})
		r.Resources, r.Templates, r.Prompts = firstOf(resources), firstOf(templates), firstOf(prompts)
		return string(before) != string(encode([]any{r.Resources, r.Templates, r.Prompts}))
	})
}

func firstOf[T any](list []T) []T { return list[:min(len(list), maxKept)] }

// change changes the record of the server, in memory and on disk, and signals the
// toolset.
func (s *server) change(ctx context.Context, f func(*record) (changed bool)) {
	s.learning.Lock()
	defer s.learning.Unlock()
	s.mu.Lock()
	rec := s.record()
	s.mu.Unlock()
	next := rec.clone()
	if !f(next) && !rec.Time.IsZero() {
		return
	}
	stored, err := s.host.records.update(ctx, s.hash, func(r *record) {
		f(r)
		r.Time = time.Now().UTC()
	})
	if err != nil {
		s.host.log.Warn("cannot write the cache of an MCP server", "server", s.Name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored == nil {
		stored, next.Time = next, time.Now().UTC()
	}
	s.rec = stored
	if stored.Info.Resources != rec.Info.Resources {
		s.host.touchResources()
	}
	if s.closed {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// accept approves changed definitions.
func (s *server) accept(ctx context.Context, tools ...string) (taken []string, err error) {
	s.change(ctx, func(r *record) bool {
		taken = r.accept(s.hash, tools...)
		return len(taken) > 0
	})
	return taken, nil
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Configured: s.Configured, Hash: s.hash, Starts: s.starts, Err: s.err}
	if st.Problem = errors.Join(s.Problem, s.refused); st.Problem != nil {
		return st
	}
	rec := s.record()
	st.Skipped = rec.Skipped
	st.Known, st.Info, st.Prompts, st.Resources = !rec.Time.IsZero(), rec.Info, rec.Prompts, len(rec.Resources)+len(rec.Templates)
	for _, t := range rec.Tools {
		if s.Server.offers(t.Name) {
			st.Tools = append(st.Tools, t.tool())
		}
	}
	for _, t := range rec.Changed {
		st.Blocked = append(st.Blocked, t.Name)
	}
	if s.conn != nil && s.conn.Err() == nil {
		st.Running, st.PID = true, s.conn.PID()
	}
	return st
}
