package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of restarts: after a failure a server is left alone for a while, for
// longer each time.
const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 30 * time.Second
	// patience is how much of such a while a call waits for; for more it fails.
	patience = 2 * time.Second
)

// server is a configured server of a host.
type server struct {
	host *Host
	Configured
	hash    string
	changed chan struct{} // of its toolset

	// mu guards what follows and is never held while the server is waited for.
	mu       sync.Mutex
	rec      *record  // nil until it is looked at
	shown    *face    // the same, while nothing but its face was needed
	left     []string // why tools were left out
	refused  error    // why it is not used any more
	conn     *Conn
	dialing  *dial
	failures int // since something last went well
	retry    time.Time
	err      error // of the last try to start it
	starts   int
	closed   bool
	closing  sync.Once

	learning sync.Mutex // held while what is known changes
}

// dial is an attempt to connect, for all who wait for it.
type dial struct {
	done   chan struct{}
	cancel context.CancelFunc
	conn   *Conn
	err    error
}

func (s *server) usable() bool { return s.problem() == nil && !s.Server.Disabled }

// problem says why the server cannot be used.
func (s *server) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.Problem, s.refused)
}

// record returns what is known of the server. The lock is held.
func (s *server) record() *record {
	if s.rec == nil {
		rec, err := s.host.records.load(s.hash)
		if err != nil {
			s.host.log.Warn("what is known of an MCP server cannot be read", "server", s.Name, "error", err)
		}
		s.rec = rec
	}
	return s.rec
}

// face returns what the server's tools are made of. The lock is held.
func (s *server) face() face {
	if s.rec != nil {
		return s.rec.face()
	}
	if s.shown == nil {
		f, err := s.host.records.loadFace(s.hash)
		if err != nil {
			s.host.log.Warn("what is known of an MCP server cannot be read", "server", s.Name, "error", err)
		}
		s.shown = &f
	}
	return *s.shown
}

// known reports whether the server's tools are known.
func (s *server) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.face().known
}

// connection returns the connection to the server, and makes one if there is
// none. Whoever asks meanwhile waits for the same.
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
		return nil, &ServerError{s.Name, fmt.Errorf("it is still starting: %w", ctx.Err())}
	}
}

// wait lets a short while after a failure pass.
func (s *server) wait(ctx context.Context) error {
	s.mu.Lock()
	left, last := time.Until(s.retry), s.err
	idle := s.conn == nil && s.dialing == nil
	s.mu.Unlock()
	switch {
	case !idle || left <= 0:
		return nil
	case left > patience:
		return fmt.Errorf("%w (tried %d times; the next try is possible in %s)", last, s.tries(), left.Round(time.Second))
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
		d.conn, d.err = s.connect(life, known)
		s.finish(d)
	}) {
		cancel()
		return nil, nil, &ServerError{s.Name, ErrClosed}
	}
	s.dialing = d
	return nil, d, nil
}

// connect makes a connection and reads the tools: a call must not reach a tool
// whose definition has changed.
func (s *server) connect(life context.Context, known Known) (*Conn, error) {
	o := s.host.options.Connect
	o.Known = known
	var self atomic.Pointer[Conn]
	o.Notify = func(ctx context.Context, n Notice) {
		if conn := self.Load(); conn != nil {
			s.noticed(ctx, conn, n)
		}
	}
	conn, err := Connect(life, s.Name, s.Server, o)
	if err != nil {
		return nil, err
	}
	self.Store(conn)
	if err := s.refresh(life, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// finish notes how an attempt ended.
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
		s.host.log.Info("an MCP server did not start", "server", s.Name, "error", d.err)
	} else {
		s.starts++
	}
	conn := d.conn
	s.mu.Unlock()
	if conn == nil && late != nil {
		_ = late.Close()
	}
	if conn != nil { // before anybody uses it
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
			s.lost(conn)
		case <-life.Done():
		}
	})
}

// failed counts a failure. The lock is held.
func (s *server) failed() {
	s.failures++
	s.retry = time.Now().Add(min(firstBackoff<<min(s.failures-1, 10), maxBackoff))
}

// lost notes that a connection has ended by itself.
func (s *server) lost(conn *Conn) {
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

// drop ends a connection that is of no use any more.
func (s *server) drop(conn *Conn) {
	s.mu.Lock()
	if s.conn == conn {
		s.conn = nil
	}
	s.mu.Unlock()
	_ = conn.Close()
}

// worked notes that a request went well.
func (s *server) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.retry, s.err = 0, time.Time{}, nil
}

// close ends the server for good.
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

// noticed takes what the server tells unasked.
func (s *server) noticed(ctx context.Context, conn *Conn, n Notice) {
	switch n.Kind {
	case ToolsChanged:
		if err := s.refresh(ctx, conn); err != nil {
			s.host.log.Info("the tools of an MCP server cannot be read anew", "server", s.Name, "error", err)
		}
	case PromptsChanged, ResourcesChanged:
		s.refreshRest(ctx, conn)
	case ResourceUpdated:
		s.host.updated(s.Name, n.Text)
	case LogMessage:
		s.host.log.Debug("an MCP server says", "server", s.Name, "level", n.Level, "text", n.Text)
	}
}

// refresh reads the tools and learns them.
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
			if err := unusable(t); err != nil {
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
		changed := r.learn(s.hash, tools) || first || r.Known != known || r.Info != conn.info
		r.Name, r.Known, r.Info = s.Name, known, conn.info
		return changed
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = left
	return nil
}

// refreshRest reads the resources and prompts, as far as the server has them.
func (s *server) refreshRest(ctx context.Context, conn *Conn) {
	var resources, templates []Resource
	var prompts []Prompt
	var errs []error
	read := func(err error) { errs = append(errs, err) }
	if conn.info.Resources {
		var err error
		resources, err = conn.Resources(ctx)
		read(err)
		templates, err = conn.ResourceTemplates(ctx)
		if rpc := (*RPCError)(nil); !errors.As(err, &rpc) { // many have none and say so
			read(err)
		}
	}
	if conn.info.Prompts {
		var err error
		prompts, err = conn.Prompts(ctx)
		read(err)
	}
	if err := errors.Join(errs...); err != nil {
		s.host.log.Info("lists of an MCP server cannot be read", "server", s.Name, "error", err)
		return
	}
	s.change(ctx, func(r *record) bool {
		before := encode([]any{r.Resources, r.Templates, r.Prompts})
		r.Resources, r.Templates, r.Prompts = firstOf(resources), firstOf(templates), firstOf(prompts)
		return string(before) != string(encode([]any{r.Resources, r.Templates, r.Prompts}))
	})
}

func firstOf[T any](list []T) []T { return list[:min(len(list), maxKept)] }

// change changes what is known of the server, here and on disk, and has the
// toolset tell of it.
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
		s.host.log.Warn("what is known of an MCP server cannot be kept", "server", s.Name, "error", err)
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

// accept takes changed definitions.
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
	st := Status{Configured: s.Configured, Hash: s.hash, Starts: s.starts, Err: s.err, Left: s.left}
	if st.Problem = errors.Join(s.Problem, s.refused); st.Problem != nil {
		return st
	}
	rec := s.record()
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
