package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"log"
	"log/slog"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Session is a session of the agent, such as a *core.Session.
type Session interface {
	ID() string
	Submit(ctx context.Context, in core.Input) (core.Outcome, error)
	Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
	Close() error
}

// SessionOptions configure a session.
type SessionOptions struct {
	// Provider is its model; nil is the agent's.
	Provider model.Provider
	Asker    core.Asker // answers its questions
	Resume   string     // ID of the session to resume; empty = a new one
}

// Options configure a server. Tools and Open are required.
type Options struct {
	Version      string         // of the program
	Instructions string         // for the client's model; may be empty
	Tools        core.ToolTable // the tools to offer
	Open         func(ctx context.Context, o SessionOptions) (Session, error)
	// Blob opens an image of a session's result; nil leaves out images that the
	// session has stored.
	Blob    func(ctx context.Context, s Session, hash string) (io.ReadCloser, error)
	NoTasks bool // leaves out run_task
	Logger  *slog.Logger
}

// Server offers the agent to MCP clients. It is safe for concurrent use. Tool
// calls share one session and run one after the other; each run_task has a
// separate session.
type Server struct {
	opts     Options
	protocol *protocol
	tools    *toolSession
	calls    *suspended

	mu      sync.Mutex
	offered *core.Snapshot

	ctx     context.Context // ends with the server
	end     context.CancelFunc
	running sync.WaitGroup
}

// New returns a server. It opens sessions only when needed.
func New(opts Options) (*Server, error) {
	if opts.Tools == nil || opts.Open == nil {
		return nil, errors.New("server.New: Tools and Open are required")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, calls: newSuspended()}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.tools = &toolSession{server: s, turn: make(chan struct{}, 1)}
	s.protocol = newProtocol(opts.Version, opts.Instructions, opts.Logger)
	s.protocol.refresh = s.refresh
	s.refresh(s.ctx)
	return s, nil
}

// refresh updates the offered tools from the table.
func (s *Server) refresh(ctx context.Context) {
	snapshot, err := s.opts.Tools.Snapshot(ctx)
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "some tools are missing", "cause", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if snapshot == nil || snapshot == s.offered {
		return
	}
	s.offered = snapshot
	var tools []tool
	for _, e := range snapshot.Entries() {
		tools = append(tools, s.offer(describe(e), s.tools.call))
	}
	if !s.opts.NoTasks {
		tools = append(tools, s.offer(taskTool(), s.runTask))
	}
	s.protocol.setTools(tools...)
}

// describe converts a tool definition to MCP.
func describe(e core.Entry) mcp.Tool {
	d := e.Tool.Definition()
	t := mcp.NewToolWithRawSchema(e.ModelName, d.Description, d.Schema)
	t.Annotations.ReadOnlyHint = &d.ReadOnly
	return t
}

func slogLines(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }

// Close aborts all calls, waits for them and closes the sessions.
func (s *Server) Close() error {
	s.end()
	s.calls.close()
	s.running.Wait()
	return s.tools.close()
}
