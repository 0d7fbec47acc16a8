package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// ErrClosed is returned by the methods of a closed plugin.
var ErrClosed = errors.New("the plugin is closed")

// Plugin is one plugin: its description, and at most one process, which all
// sessions share. It implements [core.Toolset] and is safe for concurrent use.
//
// The life cycle of its process: the first call verifies the files and starts
// it; concurrent calls wait for that. It is stopped after the host's idle time.
// When its files change, it gets no new calls and is stopped after the last one;
// the next call starts the new version. If it crashes, the next call restarts
// it, with a growing pause from the third failure in a row.
type Plugin struct {
	host   *Host
	name   string
	scope  Scope
	origin origin
	log    *logFile

	changed chan struct{}
	ctx     context.Context // done when it is closed
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu       sync.Mutex // guards the fields below; never held while waiting
	now      loaded
	stamp    string                 // of now
	broken   error                  // why the files cannot be used
	desc     *toolproto.Description // nil if not known yet
	tools    []core.Tool
	inst     *instance
	starting chan struct{} // closed when the current start is finished
	startErr error         // of the last start
	failures int           // in a row
	retryAt  time.Time
	idle     *time.Timer
	closed   bool
}

var _ core.Toolset = (*Plugin)(nil)

// Error is an error of a plugin.
type Error struct {
	Plugin string
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("plugin %s: %v", e.Plugin, e.Err) }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

func (p *Plugin) wrap(err error) error {
	var named *Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &Error{p.name, err}
}

// Name implements [core.Toolset].
func (p *Plugin) Name() string { return p.name }

// Scope returns where the plugin comes from.
func (p *Plugin) Scope() Scope { return p.scope }

// Changed implements [core.Toolset].
func (p *Plugin) Changed() <-chan struct{} { return p.changed }

// Spec returns the content of its current plugin.json.
func (p *Plugin) Spec() Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.spec
}

// Dir returns the plugin's folder.
func (p *Plugin) Dir() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.dir
}

// Known returns the plugin's description if it is known without starting the
// plugin, else nil.
func (p *Plugin) Known() *toolproto.Description {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desc
}

// Verify reports whether the plugin's files are what the user approved.
func (p *Plugin) Verify(ctx context.Context) error {
	p.mu.Lock()
	err := p.refresh(ctx)
	now := p.now
	p.mu.Unlock()
	if err == nil {
		err = p.origin.verify(ctx, &now)
	}
	return p.wrap(err)
}

// Tools implements [core.Toolset]. It starts the plugin only if its description
// is not known yet.
func (p *Plugin) Tools(ctx context.Context) ([]core.Tool, error) {
	if _, err := p.describe(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools, nil
}

// describe returns the plugin's description, which must not be modified. It
// starts the plugin if the description is not known yet.
func (p *Plugin) describe(ctx context.Context) (*toolproto.Description, error) {
	p.mu.Lock()
	err := p.refresh(ctx)
	desc := p.desc
	p.mu.Unlock()
	switch {
	case err != nil:
		return nil, p.wrap(err)
	case desc != nil:
		return desc, nil
	}
	i, err := p.acquire(ctx)
	if err != nil {
		return nil, p.wrap(err)
	}
	p.release(i, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desc, nil
}

// refresh reloads the plugin if its files changed. The lock is held.
func (p *Plugin) refresh(ctx context.Context) error {
	if p.closed {
		return ErrClosed
	}
	stamp := p.origin.stamp()
	if stamp == p.stamp && (p.now.argv != nil || p.broken != nil) {
		return p.broken
	}
	first := p.now.argv == nil
	now, err := p.origin.load(ctx)
	if err == nil {
		err = checkProgram(now.argv[0])
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.stamp, p.broken = stamp, err
	if err != nil {
		p.retire()
		return err
	}
	if !first && now.hash == p.now.hash {
		p.now = now
		return nil
	}
	p.retire()
	p.now, p.failures, p.retryAt = now, 0, time.Time{}
	desc := now.desc
	if desc == nil {
		desc = p.host.cache.load(&now.spec, now.hash)
	}
	p.take(desc)
	if !first {
		p.host.logger.Debug("plugin files changed", "plugin", p.name)
		p.notify()
	}
	return nil
}

// take uses a description and creates its tools. The lock is held.
func (p *Plugin) take(desc *toolproto.Description) {
	p.desc, p.tools = desc, nil
	for _, t := range desc.GetTools() {
		p.tools = append(p.tools, newTool(p, t))
	}
}

// notify signals that the tools changed. The lock is held.
func (p *Plugin) notify() {
	if p.closed {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default: // already signalled
	}
}

// acquire returns a running process, starting it if necessary. The caller
// returns it with release.
func (p *Plugin) acquire(ctx context.Context) (*instance, error) {
	for {
		p.mu.Lock()
		if err := p.refresh(ctx); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		if i := p.inst; i != nil && i.ended(0) {
			p.noteEnd(i)
		}
		if i := p.inst; i != nil {
			quiet := p.host.clock().Sub(i.lastUsed)
			i.refs++
			busy := i.refs > 1
			p.mu.Unlock()
			if quiet < checkAfter || busy || i.probe(p.host.version) {
				return i, nil
			}
			p.release(i, false)
			p.giveUp(i, "it stopped responding")
			continue
		}
		if p.starting == nil {
			if wait := p.retryAt.Sub(p.host.clock()); wait > 0 {
				err := fmt.Errorf("it failed %d times in a row and is not restarted for %s; last error: %w",
					p.failures, wait.Round(100*time.Millisecond), p.startErr)
				p.mu.Unlock()
				return nil, err
			}
			p.starting = make(chan struct{})
			now := p.now // copied under the lock
			p.wg.Go(func() { p.start(now) })
		}
		starting := p.starting
		p.mu.Unlock()
		select {
		case <-starting:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		p.mu.Lock()
		err := p.startErr
		p.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// checkAfter is the time without calls after which a process is probed before
// the next one.
const checkAfter = 10 * time.Second

var errUnresponsive = errors.New("it does not respond")

// release returns a process. A successful call resets the failure count.
func (p *Plugin) release(i *instance, well bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.refs--
	i.lastUsed = p.host.clock()
	if well && !i.ended(0) {
		p.failures = 0
	}
	switch {
	case i.refs > 0 || p.closed:
	case i.retired:
		p.wg.Go(func() { i.stop(endTime) })
	case p.host.idle > 0 && p.inst == i:
		if p.idle != nil {
			p.idle.Stop()
		}
		p.idle = time.AfterFunc(p.host.idle, func() { p.expire(i) })
	}
}

// expire stops an idle process.
func (p *Plugin) expire(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inst == i && i.refs == 0 && !p.closed {
		p.retire()
	}
}

// retire gives the process no more calls and stops it after the last one. The
// lock is held.
func (p *Plugin) retire() {
	i := p.inst
	if i == nil {
		return
	}
	p.inst, i.retired = nil, true
	if i.refs == 0 && !p.closed {
		p.wg.Go(func() { i.stop(endTime) })
	}
}

// start starts a process.
func (p *Plugin) start(l loaded) {
	ctx := p.ctx
	// What costs most is done side by side; none of it runs the plugin's files.
	var err error
	var all sync.WaitGroup
	all.Go(func() { err = p.origin.verify(ctx, &l) })
	all.Go(func() { p.host.supervisor.Prepare(ctx, p.host.sandbox) })
	spec := p.host.launchSpec(p, &l)
	all.Wait()
	var i *instance
	if err == nil {
		p.log.forget()
		start := time.Now()
		i, err = launch(ctx, spec)
		if started := p.host.started; started != nil {
			started(p.Name(), time.Since(start), err)
		}
	}
	if err == nil {
		if err = p.identify(l, i); err != nil {
			i.stop(endTime)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(p.starting)
	p.starting, p.startErr = nil, err
	if err != nil {
		p.failed()
		return
	}
	i.lastUsed = p.host.clock()
	if p.closed || p.now.hash != l.hash { // changed meanwhile: acquire tries again
		i.retired = true
		p.wg.Go(func() { i.stop(endTime) })
		return
	}
	p.inst = i
	p.wg.Go(func() {
		<-i.child.exited
		p.mu.Lock()
		p.noteEnd(i)
		p.mu.Unlock()
		i.stop(0)
	})
	if i.desc.Dynamic {
		p.wg.Go(func() { p.watch(i) })
	}
}

// identify checks the description of a new process against the known one, and
// uses it if none is known.
func (p *Plugin) identify(l loaded, i *instance) error {
	if err := checkDescription(&l.spec, i.desc); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.hash != l.hash {
		return nil
	}
	switch {
	case p.desc == nil:
		p.take(i.desc)
		p.notify()
	case proto.Equal(p.desc, i.desc):
		return nil
	case l.spec.Dynamic:
		p.take(i.desc)
		p.notify()
		return nil
	default:
		return fmt.Errorf("its description changed although its files did not (%s): "+
			`add it again to approve that; set "dynamic": true in %s if this is intended`,
			cleanLine(strings.Join(differences(p.desc, i.desc), ", ")), SpecFile)
	}
	if err := p.host.cache.save(l.hash, i.desc); err != nil {
		p.host.logger.Warn("cannot cache a plugin's description: it will be started again next time", "plugin", p.name, "error", err)
	}
	return nil
}

// failed counts a failure. The lock is held.
func (p *Plugin) failed() {
	p.failures++
	if p.failures < 3 {
		return
	}
	pause := min(time.Second<<min(p.failures-3, 10), time.Minute)
	p.retryAt = p.host.clock().Add(pause)
}

// noteEnd records the end of a process. The lock is held.
func (p *Plugin) noteEnd(i *instance) {
	if p.inst != i {
		return // it was stopped on purpose
	}
	p.inst = nil
	if !p.closed {
		p.startErr = errors.New("it " + i.crashText(p.log))
		p.failed()
	}
}

// giveUp kills an unresponsive process.
func (p *Plugin) giveUp(i *instance, why string) {
	p.log.printf("%s: killing it", why)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inst == i {
		p.inst, i.retired = nil, true
		p.startErr = errors.New(why)
		p.failed()
	}
	i.kill(errUnresponsive)
}

// crashText describes how a process crashed.
func (i *instance) crashText(log *logFile) string {
	last := log.lastOutput()
	return "crashed (" + describeExit(i.child.exit) + ")" + last + i.child.limit(last)
}

// watch receives the tool changes of a dynamic plugin.
func (p *Plugin) watch(i *instance) {
	stream, err := i.client.Session(i.alive)
	if err != nil || stream.Send(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Watch{Watch: &toolproto.Watch{}}}) != nil {
		return
	}
	for {
		f, err := stream.Recv()
		if err != nil {
			return
		}
		if f.GetToolsChanged() != nil {
			p.relist(i)
		}
	}
}

// relist reads the tools of a dynamic plugin again. Invalid ones are logged, and
// the previous ones kept.
func (p *Plugin) relist(i *instance) {
	desc, err := i.describe(i.alive, p.host.version)
	if err == nil {
		spec := p.Spec()
		err = checkDescription(&spec, desc)
	}
	if err != nil {
		p.log.printf("the changed tools are ignored: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inst == i && p.now.spec.Dynamic && !proto.Equal(p.desc, desc) {
		p.take(desc)
		p.notify()
	}
}

// Close stops the process and waits for it. Running calls end with an error.
func (p *Plugin) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.cancel()
		close(p.changed)
		if p.idle != nil {
			p.idle.Stop()
		}
	}
	i := p.inst
	p.mu.Unlock()
	if i != nil {
		i.stop(endTime)
	}
	p.wg.Wait()
	return p.log.close()
}
