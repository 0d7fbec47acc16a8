package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// foreignVar asks a process of this test binary to be the child. Its value is
// the version of the wire.
const foreignVar = "AGENT_CORETEST_FOREIGN"

const (
	helloTimeout = 15 * time.Second // for the child's first word
	cancelGrace  = time.Second      // for a cancelled call's own end
	closeGrace   = 2 * time.Second  // between the end of stdin and the kill
)

var (
	errForeignClosed = errors.New("the toolset was closed")
	toolName         = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// Foreign is a toolset whose tools live in a child process. It stands for what
// a plugin is to the agent. When the process dies, its running calls fail at
// once and the next call starts it again.
//
// All methods are safe for concurrent use. A caller that does not read the
// output of its call holds up the other calls of the same process.
type Foreign struct {
	exe     string
	args    []string
	changed chan struct{} // holds one; closed by Close
	done    chan struct{} // closed when Close begins
	closing sync.Once

	turn chan struct{} // holds one: who has put it in may use link
	link *foreignLink  // the newest process, dead or alive

	mu     sync.Mutex
	closed bool // nothing may be sent on changed any more
	name   string
	wire   []wireTool
	tools  []core.Tool
}

var (
	_ core.Toolset = (*Foreign)(nil)
	_ core.Tool    = (*foreignTool)(nil)
)

// StartForeign starts exe, a program that calls [RunForeignIfAsked] (a test
// binary: pass os.Args[0]), and waits for it to say which tools it has. Ctx
// bounds the start only; the process lives until Close.
//
// The child gets a session of its own where the system has them, and of the
// environment only what a program needs to run.
func StartForeign(ctx context.Context, exe string, args ...string) (*Foreign, error) {
	if os.Getenv(foreignVar) != "" {
		return nil, errors.New("foreign toolset: this process was itself started as one; call coretest.RunForeignIfAsked first thing in TestMain")
	}
	f := &Foreign{
		exe: exe, args: args,
		changed: make(chan struct{}, 1), done: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	if _, err := f.running(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Name implements [core.Toolset]. It is what the child calls itself.
func (f *Foreign) Name() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.name
}

// Tools implements [core.Toolset]. It answers from what the child said last
// and starts nothing.
func (f *Foreign) Tools(context.Context) ([]core.Tool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("toolset %q: %w", f.name, errForeignClosed)
	}
	return append([]core.Tool(nil), f.tools...), nil
}

// Changed implements [core.Toolset].
func (f *Foreign) Changed() <-chan struct{} { return f.changed }

// Close implements [core.Toolset]. It fails the calls that still run, ends the
// process, and waits for it.
func (f *Foreign) Close() error {
	f.closing.Do(func() {
		close(f.done)
		f.turn <- struct{}{} // a start that is under way sees done and gives up
		defer func() { <-f.turn }()
		if f.link != nil {
			f.link.close(errForeignClosed)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closed = true
		close(f.changed)
	})
	return nil
}

// running returns the link to a live process; it starts one if there is none.
func (f *Foreign) running(ctx context.Context) (*foreignLink, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-f.done:
		return nil, errForeignClosed
	default:
	}
	if f.link != nil {
		if f.link.alive() {
			return f.link, nil
		}
		f.link.close(nil) // waits for what is left of it
	}
	l, err := startLink(f.exe, f.args, f.setTools)
	if err != nil {
		return nil, err
	}
	if err := f.greet(ctx, l); err != nil {
		l.close(err)
		return nil, fmt.Errorf("foreign toolset %s: %w", f.exe, err)
	}
	f.link = l
	return l, nil
}

// greet waits for the child's hello.
func (f *Foreign) greet(ctx context.Context, l *foreignLink) error {
	timer := time.NewTimer(helloTimeout)
	defer timer.Stop()
	select {
	case <-l.greeted:
		return nil
	case <-l.dead:
		return l.death()
	case <-f.done:
		return errForeignClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("said nothing for %s; does its TestMain call coretest.RunForeignIfAsked?", helloTimeout)
	}
}

// setTools takes a new list of tools; the link calls it from its reader. An
// empty name keeps the name.
func (f *Foreign) setTools(name string, wire []wireTool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name != "" {
		f.name = name
	}
	if f.tools != nil && reflect.DeepEqual(f.wire, wire) {
		return nil
	}
	tools := make([]core.Tool, 0, len(wire))
	for _, w := range wire {
		if !toolName.MatchString(w.Name) {
			return fmt.Errorf("a tool is called %q, expected 1 to 64 letters, digits, _ or -", w.Name)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(w.Schema, &object); err != nil {
			return fmt.Errorf("the schema of tool %q is not a JSON object: %w", w.Name, err)
		}
		tools = append(tools, &foreignTool{set: f, source: f.name, def: core.ToolDefinition{
			Name: w.Name, Description: w.Description, Schema: w.Schema, ReadOnly: w.ReadOnly,
		}})
	}
	first := f.tools == nil
	f.wire, f.tools = wire, tools
	if !first && !f.closed {
		select {
		case f.changed <- struct{}{}:
		default: // the value that waits there says it already
		}
	}
	return nil
}

// foreignTool is one tool of a child. It outlives the list that it came in.
type foreignTool struct {
	set    *Foreign
	source string
	def    core.ToolDefinition
}

// Definition implements [core.Tool].
func (t *foreignTool) Definition() core.ToolDefinition { return t.def }

// Access implements [core.Tool]. What the child does behind the process border
// nobody can see: the call itself is what is asked for.
func (t *foreignTool) Access(context.Context, *core.Call) ([]core.Access, error) {
	return []core.Access{{Scope: core.ScopePlugin, Resource: t.source + "/" + t.def.Name}}, nil
}

// Run implements [core.Tool].
func (t *foreignTool) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	link, err := t.set.running(ctx)
	if err == nil {
		var res core.Result
		if res, err = link.call(ctx, t.def.Name, call); err == nil {
			return res, nil
		}
	}
	if ctx.Err() != nil {
		return core.Result{}, fmt.Errorf("tool %s of toolset %q: %w", t.def.Name, t.source, ctx.Err())
	}
	var died *foreignDeath
	if errors.As(err, &died) && !errors.Is(err, errForeignClosed) {
		return core.Failf(core.CodeIO, "Toolset %q failed during the call of %s: %v. The next call starts it again.", t.source, t.def.Name, err), nil
	}
	return core.Failf(core.CodeIO, "Toolset %q cannot run %s: %v.", t.source, t.def.Name, err), nil
}
