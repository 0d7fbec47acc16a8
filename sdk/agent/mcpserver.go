package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp/server"
)

// MCPServerOptions configure an agent as an MCP server.
type MCPServerOptions struct {
	// Calls are the options of the sessions for single tool calls. Provider and
	// Asker are ignored: the client takes their place.
	Calls SessionOptions
	// Task returns the options of a session for run_task; Asker is ignored. It is
	// called for each task, and the client gets its error. Nil disables run_task.
	Task func(ctx context.Context) (SessionOptions, error)
	// Instructions are for the client's model.
	Instructions string
}

// MCPServer returns an MCP server that offers the agent's tools, and whole tasks.
// Subagent tools are left out, as run_task does the same. So are tools of MCP
// servers: the client can connect to these itself, and two agents that serve each
// other would recurse without end. The caller must close the server before the
// agent.
func (a *Agent) MCPServer(o MCPServerOptions) (*server.Server, error) {
	tools := &view{base: &a.tables, profile: o.Calls.Profile.Name}
	own := &ownTools{base: tools}
	if a.mcp != nil {
		for _, set := range a.mcp.Toolsets() {
			own.foreign = append(own.foreign, set.Name())
		}
	}
	if a.subagents != nil {
		delegating, err := a.subagents.Tools(context.Background()) // does not block
		if err != nil {
			return nil, err
		}
		for _, t := range delegating {
			tools.without = append(tools.without, t.Definition().Name)
		}
	}
	return server.New(server.Options{
		Version: a.opts.Version, Instructions: o.Instructions, Tools: own, NoTasks: o.Task == nil, Logger: a.opts.Logger,
		Open: func(ctx context.Context, so server.SessionOptions) (server.Session, error) {
			return a.openFor(ctx, o, so)
		},
		Blob: func(ctx context.Context, s server.Session, hash string) (io.ReadCloser, error) {
			own, ok := s.(callSession)
			if !ok || own.node.cfg.Store == nil {
				return nil, errors.New("the session stores no images")
			}
			return own.node.cfg.Store.Open(ctx, hash)
		},
	})
}

// ownTools is a table without the tools of some sources.
type ownTools struct {
	base    core.ToolTable
	foreign []string

	mu      sync.Mutex
	of, now *core.Snapshot
}

// Snapshot implements [core.ToolTable].
func (o *ownTools) Snapshot(ctx context.Context) (*core.Snapshot, error) {
	all, err := o.base.Snapshot(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if all != nil && all != o.of {
		entries := slices.DeleteFunc(slices.Clone(all.Entries()), func(e core.Entry) bool { return slices.Contains(o.foreign, e.Source) })
		o.of, o.now = all, core.NewSnapshot(all.Version(), entries)
	}
	return o.now, err
}

// openFor opens a session for an MCP client.
func (a *Agent) openFor(ctx context.Context, o MCPServerOptions, so server.SessionOptions) (server.Session, error) {
	opts := o.Calls
	if so.Provider == nil {
		var err error
		if opts, err = o.Task(ctx); err != nil {
			return nil, err
		}
		opts.Resume = so.Resume
	} else {
		opts.Provider, opts.Model = so.Provider, ""
	}
	opts.Asker = so.Asker
	s, err := a.NewSession(ctx, opts)
	if err != nil {
		return nil, err // not a *Session that is nil
	}
	if so.Provider != nil {
		return callSession{s}, nil
	}
	return s, nil
}

// callSession is a session for single calls. Its log and store only serve later
// calls, for example to read the rest of an output. It cannot be resumed, and is
// deleted when the session ends.
type callSession struct{ *Session }

// Close implements [server.Session].
func (s callSession) Close() error {
	err := s.Session.Close()
	if s.journal == nil {
		return err
	}
	if gone := dirs(s.agent.opts.Home).Delete(s.ID()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
