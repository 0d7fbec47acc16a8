package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/sdk/host"
)

// version is the version of the protocol.
const version = 1

// The codes of errors that the protocol adds.
const (
	codeSignIn   = -32000
	codeNotFound = -32002
)

// ErrSignIn is wrapped by errors of a provider that is not configured.
var ErrSignIn = errors.New("no provider is configured: run agent providers setup in a terminal")

// Options configure a [Server]. All functions are required.
type Options struct {
	Version string // of this program
	Home    string // of the sessions, see [host.New]
	// Open opens a session. Do carries out commands in it, once it is open.
	Open func(ctx context.Context, o host.Open, asker core.Asker, do Do) (*Opened, error)
	// Check reports whether a provider is configured, as an ErrSignIn.
	Check func(ctx context.Context) error
	// SignOut removes the key of the provider.
	SignOut func(ctx context.Context) error
	// SetupArgs make this command set up a provider in a terminal.
	SetupArgs []string
	// Tail is a command that calls [Tail] with its last argument and ends with the exit
	// code; without it, no terminals of the client are used.
	Tail []string
}

// Do carries out a command.
type Do func(ctx context.Context, c host.Command) error

// Opened is a session that was opened. Functions may be nil.
type Opened struct {
	host.Opened
	Dir      string    // working directory, absolute
	Commands []Command // in place of those of host.Opened
	Models   []string  // to choose from
	// Preview returns what a call would change in files.
	Preview func(ctx context.Context, call model.ToolCall) ([]preview.Change, error)
	// Reject denies what the rules match from now on.
	Reject func(ctx context.Context, rules []string) error
	// Cost returns the price of a model call in USD.
	Cost func(provider, model string, u model.Usage) (float64, bool)
	// Window returns the size of the current model's context window, in tokens.
	Window func() int
}

// Command is a slash command.
type Command struct {
	Name, Summary string
	Hint          string // for its arguments; empty if it has none
	// Run returns a text for the user, or a prompt for the model. Without it, the
	// prompt goes to the session as it is.
	Run func(ctx context.Context, args string) (text, prompt string, err error)
}

// Server serves one client.
type Server struct {
	Options
	conn *jsonrpc.Conn
	host *host.Host // of the sessions that are not open

	mu       sync.Mutex
	ready    bool  // initialize has succeeded
	left     bool  // the client is gone
	failed   error // of leave
	client   protocol.ClientCapabilities
	sessions map[string]*session // that are open
	opening  map[string]bool
}

// Serve serves the client at in and out until in ends, out breaks or ctx is done. It
// then closes the sessions. Those with unfinished work are detached: nothing is
// cancelled or denied, and they can be resumed where they were.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s := &Server{Options: o, conn: jsonrpc.NewConn(out), host: host.New(o.Home, nil), sessions: map[string]*session{}, opening: map[string]bool{}}
	s.conn.Handlers = map[string]jsonrpc.Handler{
		protocol.MethodInitialize:             jsonrpc.On(s.initialize),
		protocol.MethodAuthenticate:           on(s, s.authenticate),
		protocol.MethodLogout:                 on(s, s.logout),
		protocol.MethodSessionNew:             on(s, later(s.newSession)),
		protocol.MethodSessionLoad:            on(s, later(s.loadSession)),
		protocol.MethodSessionResume:          on(s, later(s.resumeSession)),
		protocol.MethodSessionList:            on(s, later(s.listSessions)),
		protocol.MethodSessionClose:           on(s, later(s.closeSession)),
		protocol.MethodSessionDelete:          on(s, later(s.deleteSession)),
		protocol.MethodSessionPrompt:          on(s, s.prompt),
		protocol.MethodSessionCancel:          on(s, s.cancel),
		protocol.MethodSessionSetMode:         on(s, s.setMode),
		protocol.MethodSessionSetConfigOption: on(s, s.setOption),
	}
	s.conn.Ended = s.leave
	err := s.conn.Serve(ctx, in)
	return errors.Join(err, s.failed, s.each(func(one *session) error { return errors.Join(one.leave(), one.close()) }))
}

// leave lets go of the sessions: the client is gone.
func (s *Server) leave() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	if err := s.each((*session).leave); err != nil {
		s.failed = err
	}
}

// each calls f with all open sessions at once.
func (s *Server) each(f func(*session) error) error {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, one := range all {
		wg.Go(func() { errs[i] = f(one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// on is [jsonrpc.On] for what needs initialize first.
func on[P, R any](s *Server, f func(context.Context, P) (R, error)) jsonrpc.Handler {
	handler := jsonrpc.On(f)
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		s.mu.Lock()
		ready := s.ready
		s.mu.Unlock()
		if !ready {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeRequest, Message: "send initialize first"}
		}
		return handler(ctx, raw)
	}
}

// later runs f beside the following messages.
func later[P, R any](f func(context.Context, P) (R, error)) func(context.Context, P) (any, error) {
	return func(ctx context.Context, params P) (any, error) {
		return jsonrpc.Later(func() (any, error) { return f(ctx, params) }), nil
	}
}

// invalid is the error of wrong parameters.
func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeParams, Message: "invalid params: " + fmt.Sprintf(format, args...)}
}

// failed returns an error as one of the protocol.
func failed(err error) error {
	if errors.Is(err, ErrSignIn) {
		return &jsonrpc.Error{Code: codeSignIn, Message: err.Error()}
	}
	return err
}

func (s *Server) initialize(_ context.Context, r protocol.InitializeRequest) (any, error) {
	if r.ProtocolVersion < 1 {
		return nil, invalid("protocolVersion is %d: this agent speaks version %d", r.ProtocolVersion, version)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	s.client = protocol.ClientCapabilities{}
	if r.ClientCapabilities != nil {
		s.client = *r.ClientCapabilities
	}
	return protocol.InitializeResponse{
		ProtocolVersion: version, // the client ends the connection if it does not speak it
		AgentInfo:       &protocol.Implementation{Name: "agent", Title: "agent", Version: s.Version},
		AgentCapabilities: &protocol.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: &protocol.PromptCapabilities{Image: true, EmbeddedContext: true},
			MCPCapabilities:    &protocol.MCPCapabilities{HTTP: true, SSE: true},
			SessionCapabilities: &protocol.SessionCapabilities{
				List: &protocol.SessionListCapabilities{}, Delete: &protocol.SessionDeleteCapabilities{}, Resume: &protocol.SessionResumeCapabilities{},
				Close: &protocol.SessionCloseCapabilities{}, AdditionalDirectories: &protocol.SessionAdditionalDirectoriesCapabilities{},
			},
			Auth: &protocol.AgentAuthCapabilities{Logout: &protocol.LogoutCapabilities{}},
		},
		AuthMethods: s.authMethods(),
	}, nil
}

// setupMethod is the ID of the authentication method.
const setupMethod = "setup"

// authMethods returns the ways to configure a provider. The caller holds the lock.
func (s *Server) authMethods() []protocol.AuthMethod {
	const name, about = "Set up a provider", "Asks for a model provider and its key in a terminal"
	if s.client.Auth != nil && s.client.Auth.Terminal {
		return []protocol.AuthMethod{{Tag: "terminal", Value: &protocol.AuthMethodTerminal{ID: setupMethod, Name: name, Description: about, Args: s.SetupArgs}}}
	}
	return []protocol.AuthMethod{{Value: &protocol.AuthMethodAgent{ID: setupMethod, Name: name, Description: "Run agent providers setup in a terminal, then continue here"}}}
}

// authenticate checks that the user has configured a provider.
func (s *Server) authenticate(ctx context.Context, r protocol.AuthenticateRequest) (any, error) {
	if r.MethodID != setupMethod {
		return nil, invalid("methodId is %q: use %s", r.MethodID, setupMethod)
	}
	if err := s.Check(ctx); err != nil {
		return nil, failed(err)
	}
	return protocol.AuthenticateResponse{}, nil
}

func (s *Server) logout(ctx context.Context, _ protocol.LogoutRequest) (any, error) {
	return protocol.LogoutResponse{}, s.SignOut(ctx)
}

// capabilities returns what the client can do.
func (s *Server) capabilities() protocol.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}
