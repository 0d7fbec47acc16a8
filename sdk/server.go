package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Server is a plugin as a gRPC service, for tests and for programs that serve it
// themselves; a plugin's main function only needs [Serve]:
//
//	s, err := sdk.NewServer(plugin)
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	g := grpc.NewServer()
//	toolproto.RegisterPluginServer(g, s)
//	return g.Serve(listener)
//
// Close it when it is no longer served.
type Server struct {
	toolproto.UnimplementedPluginServer
	plugin Plugin
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	offer   *offer
	changed chan struct{} // closed when the offer changes
	host    []string      // features of the host
}

var _ toolproto.PluginServer = (*Server)(nil)

// NewServer validates a plugin and returns a server for it. The error lists
// everything that is wrong.
func NewServer(p Plugin, extensions ...Extension) (*Server, error) {
	p.Extensions = slices.Concat(p.Extensions, extensions)
	var errs []error
	if !isPluginName(p.Name) {
		errs = append(errs, fmt.Errorf("plugin name %q: use at most 40 lower-case letters, digits and -, starting with a letter", p.Name))
	}
	if p.Version == "" {
		errs = append(errs, errors.New("the plugin has no version"))
	}
	o, err := newOffer(p.Extensions)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{plugin: p, offer: o, changed: make(chan struct{}), cancel: cancel}
	if p.Dynamic != nil {
		s.wg.Go(func() { p.Dynamic(ctx, s.change) })
	}
	return s, nil
}

// Close cancels Dynamic and waits for it.
func (s *Server) Close() {
	s.cancel()
	s.wg.Wait()
}

// change replaces what Dynamic offers.
func (s *Server) change(more ...Extension) error {
	o, err := newOffer(slices.Concat(s.plugin.Extensions, more))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer = o
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *Server) current() (*offer, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer, s.changed
}

// Describe implements [toolproto.PluginServer]. Hooks that the host would not run are an
// error: they may be guards.
func (s *Server) Describe(_ context.Context, req *toolproto.DescribeRequest) (*toolproto.Description, error) {
	s.mu.Lock()
	s.host = req.Features
	s.mu.Unlock()
	o, _ := s.current()
	if len(o.hooks) > 0 && !slices.Contains(req.Features, toolproto.FeatureHooks) {
		return nil, status.Errorf(codes.FailedPrecondition, "the plugin %s has hooks, which this version of agent does not run: update agent", s.plugin.Name)
	}
	return o.describe(&s.plugin), nil
}

// Session implements [toolproto.PluginServer].
func (s *Server) Session(stream toolproto.Plugin_SessionServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	c := &conversation{stream: stream, answers: map[string]chan *toolproto.HostFrame{}}
	s.mu.Lock()
	c.host = s.host
	s.mu.Unlock()
	o, changed := s.current()
	work := &Context{Context: ctx, conversation: c}
	go c.receive(cancel) // ends with the stream, and that with this function
	switch f := first.Frame.(type) {
	case *toolproto.HostFrame_Call:
		work.session = f.Call.Session
		t, ok := find(o.tools, f.Call.Tool)
		if !ok {
			return c.send(frame(failure(Errorf(NotFound, "the plugin %s has no tool %q", s.plugin.Name, f.Call.Tool))))
		}
		return c.answer(func() (any, error) { return t.call(work, f.Call.Args) })
	case *toolproto.HostFrame_Context:
		work.session = f.Context.Session
		src, ok := find(o.sources, f.Context.Source)
		if !ok {
			return c.send(frame(failure(Errorf(NotFound, "the plugin %s has no context source %q", s.plugin.Name, f.Context.Source))))
		}
		return c.answer(func() (any, error) {
			return src.fill(work, contextRequest(f.Context))
		})
	case *toolproto.HostFrame_Command:
		work.session = f.Command.Session
		return s.command(c, o, work, f.Command)
	case *toolproto.HostFrame_Hook:
		work.session = f.Hook.Session
		h, ok := find(o.hooks, f.Hook.Name)
		if !ok {
			return c.send(frame(failure(Errorf(NotFound, "the plugin %s has no hook %q", s.plugin.Name, f.Hook.Name))))
		}
		return h.serve(c, work, f.Hook)
	case *toolproto.HostFrame_Watch:
		return c.watch(ctx, s, changed)
	}
	return status.Error(codes.InvalidArgument, "the first frame of a session must be a call, a context request, a command, a hook or a watch")
}

func contextRequest(r *toolproto.ContextRequest) ContextRequest {
	req := ContextRequest{Input: r.Input, MaxTokens: int(r.MaxTokens), Files: r.Files, Errors: r.Errors}
	for name, tokens := range r.Sections {
		if req.Sections == nil {
			req.Sections = map[string]int{}
		}
		req.Sections[name] = int(tokens)
	}
	return req
}

func (s *Server) command(c *conversation, o *offer, work *Context, req *toolproto.CommandRequest) error {
	cmd, ok := find(o.commands, req.Name)
	if !ok {
		return c.send(frame(failure(Errorf(NotFound, "the plugin %s has no command %q", s.plugin.Name, req.Name))))
	}
	reply, err := guarded(func() (Reply, error) { return cmd.run(work, req.Args) })
	switch {
	case err != nil:
		return c.send(frame(failure(err)))
	case reply.Prompt != "":
		return c.send(frame(&toolproto.Result{Text: valid(reply.Prompt), Prompt: true}))
	}
	return c.send(frame(&toolproto.Result{Text: valid(reply.Text)}))
}

// answer runs a function of the plugin and sends its result.
func (c *conversation) answer(run func() (any, error)) error {
	out, err := guarded(run)
	if err != nil {
		return c.send(frame(failure(err)))
	}
	return c.sendResult(out)
}

// watch notifies the host of each change until the session ends, and once at the
// start for changes that it may have missed.
func (c *conversation) watch(ctx context.Context, s *Server, changed <-chan struct{}) error {
	for {
		if err := c.send(&toolproto.PluginFrame{Frame: &toolproto.PluginFrame_ToolsChanged{ToolsChanged: &toolproto.ToolsChanged{}}}); err != nil {
			return err
		}
		select {
		case <-changed:
			_, changed = s.current()
		case <-ctx.Done():
			return nil
		}
	}
}

// guarded turns a panic into an error and prints the stack to stderr.
func guarded[T any](run func() (T, error)) (out T, err error) {
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(os.Stderr, "panic: %v\n%s", v, debug.Stack())
			err = Errorf(Unknown, "the plugin panicked: %v", v)
		}
	}()
	return run()
}
