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

// ErrClosed is returned for everything that is asked of a closed plugin.
var ErrClosed = errors.New("the plugin is closed")

// Plugin is one plugin: what it says of itself, and at most one process, which
// all sessions share. It implements [core.Toolset] and is safe for concurrent
// use.
//
// The life of its process: the first call verifies the files and starts it;
// calls that come meanwhile wait for that. When no call has come for the
// host's idle time it is ended. When its files change, it gets no new calls,
// is ended after the last one, and the next call starts the new one. When it
// dies by itself, the next call starts it anew, after a pause from the third
// death in a row on.
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

	mu       sync.Mutex // guards what follows; never held while something waits
	now      loaded
	stamp    string // of now
	broken   error  // why the files cannot be used
	said     *toolproto.Description
	tools    []core.Tool
	inst     *instance
	starting chan struct{} // closed when the start that is under way has ended
	startErr error         // of the last one
	failures int           // in a row
	retryAt  time.Time
	idle     *time.Timer
	closed   bool
}

var _ core.Toolset = (*Plugin)(nil)

// Error is an error that names its plugin.
type Error struct {
	Plugin string
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("plugin %s: %v", e.Plugin, e.Err) }

// Unwrap returns the error without the name.
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

// Spec returns what its plugin.json says at present.
func (p *Plugin) Spec() Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.spec
}

// Dir returns the folder that the plugin is in.
func (p *Plugin) Dir() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.dir
}

// Known returns what is known of what the plugin offers, without starting it:
// nil if nothing is.
func (p *Plugin) Known() *toolproto.Description {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// Verify reports whether the plugin's files are what the person agreed to.
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

// Tools implements [core.Toolset]. It starts the plugin only if it is not known
// yet what its files offer.
func (p *Plugin) Tools(ctx context.Context) ([]core.Tool, error) {
	if _, err := p.Describe(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools, nil
}

// Describe returns what the plugin says of itself, which must not be changed.
func (p *Plugin) Describe(ctx context.Context) (*toolproto.Description, error) {
	p.mu.Lock()
	err := p.refresh(ctx)
	said := p.said
	p.mu.Unlock()
	switch {
	case err != nil:
		return nil, p.wrap(err)
	case said != nil:
		return said, nil
	}
	i, err := p.acquire(ctx)
	if err != nil {
		return nil, p.wrap(err)
	}
	p.release(i, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said, nil
}

// refresh looks whether the plugin's files are still those that are known, and
// takes over what they are now. The lock is held.
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
	said := now.said
	if said == nil {
		said = p.host.cache.load(&now.spec, now.hash)
	}
	p.take(said)
	if !first {
		p.host.logger.Debug("a plugin's files have changed", "plugin", p.name)
		p.notify()
	}
	return nil
}

// take makes the tools of a description. The lock is held.
func (p *Plugin) take(said *toolproto.Description) {
	p.said, p.tools = said, nil
	for _, t := range said.GetTools() {
		p.tools = append(p.tools, newTool(p, t))
	}
}

// notify says that the tools changed. The lock is held.
func (p *Plugin) notify() {
	if p.closed {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default: // one value waits already
	}
}

// acquire returns a running process, starting it if need be. It must be given
// back with release.
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
			p.giveUp(i, "it does not answer any more after a pause")
			continue
		}
		if p.starting == nil {
			if wait := p.retryAt.Sub(p.host.clock()); wait > 0 {
				err := fmt.Errorf("it failed %d times in a row and is not started again for %s; the last time %w",
					p.failures, wait.Round(100*time.Millisecond), p.startErr)
				p.mu.Unlock()
				return nil, err
			}
			p.starting = make(chan struct{})
			now := p.now // as it is under the lock
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

// checkAfter is the pause after which a process is asked whether it still
// answers before it gets a call.
const checkAfter = 10 * time.Second

var errUnresponsive = errors.New("it does not answer")

// release gives a process back. A call that went well ends a row of failures.
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

// expire ends a process that nobody has used for long.
func (p *Plugin) expire(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inst == i && i.refs == 0 && !p.closed {
		p.retire()
	}
}

// retire gives the process no more calls, and ends it after its last one. The
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
	err := p.origin.verify(ctx, &l)
	var i *instance
	if err == nil {
		p.log.forget()
		i, err = launch(ctx, p.host.launchSpec(p, &l))
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
	if p.closed || p.now.hash != l.hash { // changed meanwhile: the next round sees to it
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
	if i.said.Dynamic {
		p.wg.Go(func() { p.watch(i) })
	}
}

// identify checks what a fresh process says of itself against what is known of
// its files, and takes it over where nothing is.
func (p *Plugin) identify(l loaded, i *instance) error {
	if err := checkDescription(&l.spec, i.said); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.hash != l.hash {
		return nil
	}
	switch {
	case p.said == nil:
		p.take(i.said)
		p.notify()
	case proto.Equal(p.said, i.said):
		return nil
	case l.spec.Dynamic:
		p.take(i.said)
		p.notify()
		return nil
	default:
		return fmt.Errorf("it describes itself otherwise than when it was added, though its files are the same (%s): "+
			`add it again to agree to that; plugins that do so by design say "dynamic": true in %s`,
			cleanLine(strings.Join(differences(p.said, i.said), ", ")), SpecFile)
	}
	if err := p.host.cache.save(l.hash, i.said); err != nil {
		p.host.logger.Warn("what a plugin says of itself cannot be kept: it is started again next time", "plugin", p.name, "error", err)
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

// noteEnd takes note of the end of a process. The lock is held.
func (p *Plugin) noteEnd(i *instance) {
	if p.inst != i {
		return // it was meant to end
	}
	p.inst = nil
	if !p.closed {
		p.startErr = errors.New("it " + i.deathNote(p.log))
		p.failed()
	}
}

// giveUp kills a process that is of no use any more.
func (p *Plugin) giveUp(i *instance, why string) {
	p.log.printf("%s: it is killed", why)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inst == i {
		p.inst, i.retired = nil, true
		p.startErr = errors.New(why)
		p.failed()
	}
	i.kill(errUnresponsive)
}

// deathNote says how a process died.
func (i *instance) deathNote(log *logFile) string {
	return "crashed (" + describeExit(i.child.exit) + ")" + log.lastWords()
}

// watch hears of changes of a dynamic plugin's tools.
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

// relist asks a dynamic plugin for its tools again. What is wrong with the new
// ones is logged, and the old ones stay.
func (p *Plugin) relist(i *instance) {
	said, err := i.describe(i.alive, p.host.version)
	if err == nil {
		spec := p.Spec()
		err = checkDescription(&spec, said)
	}
	if err != nil {
		p.log.printf("its tools changed, but the new ones are not taken: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inst == i && p.now.spec.Dynamic && !proto.Equal(p.said, said) {
		p.take(said)
		p.notify()
	}
}

// Close ends the process and waits for it. Calls that run end with an error.
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
