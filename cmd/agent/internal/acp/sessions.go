package acp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/host"
)

// noSession is the error of a session that is not open, or not recorded.
func noSession(id, want string) error {
	return &jsonrpc.Error{Code: codeNotFound, Message: fmt.Sprintf("there is no %s session %q", want, id)}
}

// find returns an open session.
func (s *Server) find(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.sessions[id]; found != nil {
		return found, nil
	}
	return nil, noSession(id, "open")
}

func (s *Server) newSession(ctx context.Context, r protocol.NewSessionRequest) (any, error) {
	opened, err := s.open(ctx, "", r.Cwd, r.AdditionalDirectories, r.MCPServers, false)
	if err != nil {
		return nil, err
	}
	options, modes := opened.options()
	return jsonrpc.Then{Result: protocol.NewSessionResponse{SessionID: opened.ID(), ConfigOptions: options, Modes: modes}, Do: opened.begin}, nil
}

func (s *Server) loadSession(ctx context.Context, r protocol.LoadSessionRequest) (any, error) {
	opened, err := s.open(ctx, r.SessionID, r.Cwd, r.AdditionalDirectories, r.MCPServers, true)
	if err != nil {
		return nil, err
	}
	options, modes := opened.options()
	return jsonrpc.Then{Result: protocol.LoadSessionResponse{ConfigOptions: options, Modes: modes}, Do: opened.begin}, nil
}

func (s *Server) resumeSession(ctx context.Context, r protocol.ResumeSessionRequest) (any, error) {
	opened, err := s.open(ctx, r.SessionID, r.Cwd, r.AdditionalDirectories, r.MCPServers, false)
	if err != nil {
		return nil, err
	}
	options, modes := opened.options()
	return jsonrpc.Then{Result: protocol.ResumeSessionResponse{ConfigOptions: options, Modes: modes}, Do: opened.begin}, nil
}

// open is connect for the parameters of a request.
func (s *Server) open(ctx context.Context, id, dir string, addDirs []string, servers []protocol.MCPServer, replay bool) (*session, error) {
	for i, d := range append([]string{dir}, addDirs...) {
		name := "cwd"
		if i > 0 {
			name = "additionalDirectories"
		}
		if !filepath.IsAbs(d) {
			return nil, invalid("%s: the directory %q is not absolute", name, d)
		}
		if info, err := os.Stat(d); err != nil || !info.IsDir() {
			return nil, invalid("%s: %q is not a directory that can be read", name, d)
		}
	}
	mcpServers, err := clientServers(servers)
	if err != nil {
		return nil, err
	}
	return s.connect(ctx, host.Open{ID: id, Dir: dir, AddDirs: addDirs, MCP: mcpServers}, replay)
}

// connect opens a session, a recorded one if it has an ID, and replays it if asked.
// One that is open already is closed first: the client wants it anew.
func (s *Server) connect(ctx context.Context, o host.Open, replay bool) (*session, error) {
	if o.ID != "" {
		if err := s.reserve(o.ID); err != nil {
			return nil, err
		}
		defer s.release(o.ID)
	}
	opened := newSession(s)
	h := host.New(s.Home, func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		var err error
		if opened.opened, err = s.Open(ctx, o, asker, opened.do); err != nil {
			return host.Opened{}, err
		}
		return opened.opened.Opened, nil
	})
	opened.host = h
	o.ToolEnv = opened.wrap
	var err error
	opened.Session, err = h.Open(ctx, o)
	switch {
	case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid)) && o.ID != "": // no such file, or not a name of one
		return nil, noSession(o.ID, "recorded")
	case err != nil:
		return nil, failed(err)
	}
	if len(opened.Now().Queued) > 0 { // nobody waits for them any more
		_, _ = opened.Do(ctx, host.Command{Type: "cancel"})
	}
	opened.request = o
	opened.request.ID = opened.ID()
	s.mu.Lock()
	s.sessions[opened.ID()] = opened
	s.mu.Unlock()
	opened.start(replay)
	if ctx.Err() != nil { // the client has gone or does not want it any more
		return nil, errors.Join(ctx.Err(), opened.close())
	}
	return opened, nil
}

// reserve makes sure that a recorded session is opened once at a time.
func (s *Server) reserve(id string) error {
	s.mu.Lock()
	busy, open := s.opening[id], s.sessions[id]
	s.opening[id] = true
	s.mu.Unlock()
	if busy {
		return &jsonrpc.Error{Code: jsonrpc.CodeRequest, Message: fmt.Sprintf("session %s is being opened", id)}
	}
	if open != nil {
		return open.close()
	}
	return nil
}

func (s *Server) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.opening, id)
}

func (s *Server) listSessions(_ context.Context, r protocol.ListSessionsRequest) (any, error) {
	dir := r.Cwd
	if real, err := filepath.EvalSymlinks(dir); err == nil && dir != "" {
		dir = real // as sessions record it
	}
	list, next, err := s.host.List(dir, r.Cursor)
	if err != nil {
		return nil, invalid("%v", err)
	}
	page := protocol.ListSessionsResponse{Sessions: []protocol.SessionInfo{}, NextCursor: next}
	for _, one := range list {
		page.Sessions = append(page.Sessions, protocol.SessionInfo{
			SessionID: one.ID, Cwd: one.Cwd, Title: one.Text, UpdatedAt: one.Time.UTC().Format(time.RFC3339),
		})
	}
	return page, nil
}

func (s *Server) closeSession(_ context.Context, r protocol.CloseSessionRequest) (any, error) {
	open, err := s.find(r.SessionID)
	if err != nil {
		return nil, err
	}
	return protocol.CloseSessionResponse{}, open.close()
}

// deleteSession deletes a session, which is closed if it is open. One that does not
// exist is deleted already.
func (s *Server) deleteSession(_ context.Context, r protocol.DeleteSessionRequest) (any, error) {
	if open, err := s.find(r.SessionID); err == nil {
		if err := open.close(); err != nil {
			return nil, err
		}
	}
	if err := s.host.Delete(r.SessionID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return protocol.DeleteSessionResponse{}, nil
}

// clientServers returns the MCP servers of the client. Their names become part of
// tool names.
func clientServers(list []protocol.MCPServer) (all []mcp.Configured, err error) {
	add := func(name string, server mcp.Server) {
		server.Verbatim, server.Required = true, true // its tools are waited for
		all = append(all, mcp.Configured{Name: serverName(name), Server: server, Source: "the editor"})
	}
	for _, one := range list {
		switch v := one.Value.(type) {
		case *protocol.MCPServerStdio:
			if v.Command == "" {
				return nil, invalid("the MCP server %q has no command", v.Name)
			}
			env := map[string]string{}
			for _, e := range v.Env {
				env[e.Name] = e.Value
			}
			add(v.Name, mcp.Server{Command: v.Command, Args: v.Args, Env: env})
		case *protocol.MCPServerHTTP:
			add(v.Name, mcp.Server{Type: "http", URL: v.URL, Headers: headers(v.Headers)})
		case *protocol.MCPServerSSE:
			add(v.Name, mcp.Server{Type: "sse", URL: v.URL, Headers: headers(v.Headers)})
		default:
			return nil, invalid("an MCP server has the type %q: use stdio, http or sse", one.Tag)
		}
	}
	return all, nil
}

func headers(list []protocol.HTTPHeader) map[string]string {
	all := map[string]string{}
	for _, h := range list {
		all[h.Name] = h.Value
	}
	return all
}

// serverName returns a name that servers may have.
func serverName(name string) string {
	if mcp.CheckName(name) == nil {
		return name
	}
	words := strings.FieldsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	clean := strings.Join(words, "-")
	if clean = clean[:min(len(clean), 30)]; mcp.CheckName(clean) != nil {
		clean = "editor-" + clean
	}
	return strings.TrimSuffix(clean, "-")
}
