package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// hostSource is the source of tools that the host registered in code.
const hostSource = "host"

// ErrClosed is returned by a registry after Close.
var ErrClosed = errors.New("registry: closed")

// Options filter the tools of a registry.
type Options struct {
	// Allowed and Disallowed are patterns for names as the model sees them, in
	// which * matches any characters. If Allowed is not empty, the table has only
	// tools that it matches; tools that Disallowed matches are always left out.
	Allowed, Disallowed []string
}

// Registry is a table of tools that can change. It owns the toolsets added to it
// and closes them. It is safe for concurrent use.
type Registry struct {
	options Options
	closing context.Context // done when Close begins
	cancel  context.CancelFunc
	reading chan struct{} // holds a value while toolsets are read

	mu      sync.Mutex       // for all below; never held while calling toolsets
	members []*member        // in the order of adding
	owners  map[string]owner // of all names that were ever used
	table   *core.Snapshot
	stale   bool // members or their tools have changed
	version uint64
	closed  bool
}

var _ core.ToolTable = (*Registry)(nil)

// member is a toolset, or the host's tools if set is nil.
type member struct {
	name    string
	set     core.Toolset
	builtin bool
	changed <-chan struct{} // nil once it is closed
	unread  bool            // its tools are unknown or have changed
	tools   []namedTool     // as last read
	err     error           // of the last reading
}

// namedTool is a tool with the name in its definition.
type namedTool struct {
	name string
	tool core.Tool
}

// owner is the tool that a name of the table belongs to.
type owner struct{ source, tool string }

// New returns an empty registry.
func New(options Options) *Registry {
	closing, cancel := context.WithCancel(context.Background())
	return &Registry{
		options: Options{Allowed: slices.Clone(options.Allowed), Disallowed: slices.Clone(options.Disallowed)},
		closing: closing, cancel: cancel, reading: make(chan struct{}, 1),
		owners: map[string]owner{}, table: core.NewSnapshot(0, nil), stale: true,
	}
}

// AddHost adds tools of the host program. They replace built-in tools of the same
// name; of two host tools with one name the last is used.
func (r *Registry) AddHost(tools ...core.Tool) error {
	m := &member{name: hostSource}
	for i, t := range tools {
		named, err := define(t)
		if err != nil {
			return fmt.Errorf("registry: host tool %d: %w", i+1, err)
		}
		if clean, same := cleanName(named.name); !same || len(clean) > maxName {
			return fmt.Errorf("registry: host tool %q: use only letters, digits, _ and - in the name, at most %d", named.name, maxName)
		}
		m.tools = append(m.tools, named)
	}
	return r.add(m)
}

// AddBuiltin adds a toolset whose names have priority over all but the host's. See
// Add.
func (r *Registry) AddBuiltin(ctx context.Context, set core.Toolset) error {
	return r.addSet(ctx, set, true)
}

// Add adds an external toolset: a plugin, an MCP server, a skill. Its tools are
// read by the next Snapshot. The registry closes it, unless Add fails (the name is
// taken, the registry is closed, ctx is done).
func (r *Registry) Add(ctx context.Context, set core.Toolset) error {
	return r.addSet(ctx, set, false)
}

func (r *Registry) addSet(ctx context.Context, set core.Toolset, builtin bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := &member{set: set, builtin: builtin, unread: true}
	err := guard(func() error {
		m.name, m.changed = set.Name(), set.Changed()
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("registry: adding a toolset: %w", err)
	case m.name == "" || m.name == hostSource:
		return fmt.Errorf("registry: invalid toolset name %q: use another name", m.name)
	}
	return r.add(m)
}

func (r *Registry) add(m *member) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if m.set != nil && slices.ContainsFunc(r.members, func(o *member) bool { return o.name == m.name }) {
		return fmt.Errorf("registry: toolset %q already exists: remove it first, or use another name", m.name)
	}
	r.members = append(r.members, m)
	r.stale = true
	return nil
}

// Remove removes a toolset from the table and closes it. Earlier snapshots keep
// its tools.
func (r *Registry) Remove(name string) error {
	r.mu.Lock()
	i := slices.IndexFunc(r.members, func(m *member) bool { return m.set != nil && m.name == name })
	if i < 0 {
		r.mu.Unlock()
		return fmt.Errorf("registry: no toolset %q", name)
	}
	m := r.members[i]
	r.members = slices.Delete(r.members, i, i+1)
	r.stale = true
	r.mu.Unlock()
	return m.close()
}

// Snapshot implements [core.ToolTable]. The error names toolsets that cannot be
// read; they keep their last tools and are read again by the next call. After
// Close the table is empty and the error is ErrClosed.
func (r *Registry) Snapshot(ctx context.Context) (*core.Snapshot, error) {
	if table, err, ok := r.current(); ok {
		return table, err
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return r.present(ctx.Err())
	}
	r.read(ctx)
	return r.present(r.rebuild())
}

// current returns the table if nothing has changed since it was built.
func (r *Registry) current() (table *core.Snapshot, err error, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.table, ErrClosed, true
	}
	fresh := !r.stale && len(r.reading) == 0 // what is read is not yet in the table
	for _, m := range r.members {
		fresh = !m.poll() && fresh
	}
	return r.table, nil, fresh
}

// poll reports whether the tools must be read.
func (m *member) poll() bool {
	select {
	case _, open := <-m.changed:
		if !open {
			m.changed = nil
		}
		m.unread = true
	default:
	}
	return m.unread
}

// read reads changed toolsets concurrently, and returns when all have answered.
// Close cancels it.
func (r *Registry) read(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.closing, cancel)()
	var wg sync.WaitGroup
	r.mu.Lock()
	for _, m := range r.members {
		if !m.poll() {
			continue
		}
		m.unread = false
		wg.Go(func() {
			tools, err := m.read(ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			m.err = err
			if tools == nil {
				m.unread = true
				return
			}
			m.tools, r.stale = tools, true
		})
	}
	r.mu.Unlock()
	wg.Wait()
}

// read returns the tools of a toolset, nil if it cannot be read. An error with
// tools is about those that were left out.
func (m *member) read(ctx context.Context) (tools []namedTool, err error) {
	var listed []core.Tool
	err = guard(func() (err error) {
		listed, err = m.set.Tools(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("toolset %s: %w", m.name, err)
	}
	tools = make([]namedTool, 0, len(listed))
	seen := make(map[string]bool, len(listed))
	var errs []error
	for i, t := range listed {
		named, err := define(t)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("toolset %s: tool %d: %w", m.name, i+1, err))
		case seen[named.name]:
			errs = append(errs, fmt.Errorf("toolset %s: duplicate tool %q: the first is used", m.name, named.name))
		default:
			seen[named.name] = true
			tools = append(tools, named)
		}
	}
	return tools, errors.Join(errs...)
}

// define gets the name of a tool.
func define(t core.Tool) (named namedTool, err error) {
	if t == nil {
		return named, errors.New("is nil")
	}
	err = guard(func() error {
		named = namedTool{t.Definition().Name, t}
		return nil
	})
	return named, err
}

// rebuild builds a new table if the tools have changed. It must not be called
// concurrently.
func (r *Registry) rebuild() error {
	r.mu.Lock()
	if r.closed || !r.stale {
		r.mu.Unlock()
		return nil
	}
	r.stale = false
	version, entries := r.version+1, r.entries()
	r.mu.Unlock()

	table, err := newTable(version, entries)
	r.mu.Lock()
	defer r.mu.Unlock()
	if table == nil {
		r.stale = true
		return err
	}
	if !r.closed {
		r.table, r.version = table, version
	}
	return err
}

// newTable builds a table. Definitions were read before, but a tool whose
// definition panics now is left out.
func newTable(version uint64, entries []core.Entry) (table *core.Snapshot, err error) {
	build := func() error { table = core.NewSnapshot(version, entries); return nil }
	if err = guard(build); err == nil {
		return table, nil
	}
	var errs []error
	entries = slices.DeleteFunc(entries, func(e core.Entry) bool {
		_, err := define(e.Tool)
		if err != nil {
			errs = append(errs, fmt.Errorf("toolset %s: tool %s: %w", e.Source, e.ModelName, err))
		}
		return err != nil
	})
	if again := guard(build); again != nil {
		errs = append(errs, fmt.Errorf("registry: building the table: %w", again))
	}
	return table, errors.Join(errs...)
}

// present returns the current table, and the errors of the toolsets after err.
func (r *Registry) present(err error) (*core.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.table, ErrClosed
	}
	errs := []error{err}
	for _, m := range r.members {
		errs = append(errs, m.err)
	}
	return r.table, errors.Join(errs...)
}

// Close closes the toolsets, the last added first. It cancels a concurrent
// Snapshot.
func (r *Registry) Close() error {
	r.mu.Lock()
	members := r.members
	if !r.closed {
		r.closed, r.members = true, nil
		r.version++
		r.table = core.NewSnapshot(r.version, nil)
	}
	r.mu.Unlock()
	r.cancel()
	r.reading <- struct{}{} // wait for the end of reading
	defer func() { <-r.reading }()
	var errs []error
	for _, m := range slices.Backward(members) {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

func (m *member) close() error {
	if m.set == nil {
		return nil
	}
	if err := guard(m.set.Close); err != nil {
		return fmt.Errorf("closing toolset %s: %w", m.name, err)
	}
	return nil
}

// guard turns a panic of a tool or toolset into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
