package run

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/host"
)

// Open says which session a host wants, in a line before all others but hello and now.
type Open struct {
	Session     string      `json:"session,omitempty" jsonschema:"of an open: the session to resume, or to attach to if another connection has it open; empty for a new one"`
	After       event.Seq   `json:"after,omitempty" jsonschema:"of an open that attaches: seq of the last event that the host has; default the last one before the session was opened"`
	Dir         string      `json:"dir,omitempty" jsonschema:"of an open: the working directory, absolute"`
	Directories []string    `json:"additionalDirectories,omitempty" jsonschema:"of an open: more directories of the workspace, absolute"`
	Servers     []MCPServer `json:"mcpServers,omitempty" jsonschema:"of an open: MCP servers for this session, besides those of the settings"`
}

// MCPServer is an MCP server of a host: a program or a URL.
type MCPServer struct {
	Name    string            `json:"name"`
	Type    string            `json:"type,omitempty" jsonschema:"stdio, http or sse; default stdio with a command, http with a url"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// configured returns the servers for a session.
func (o Open) configured() (all []mcp.Configured, err error) {
	for _, s := range o.Servers {
		if err := mcp.CheckName(s.Name); err != nil {
			return nil, invalidf("mcpServers: %v", err)
		}
		if (s.Command == "") == (s.URL == "") {
			return nil, invalidf("mcpServers: %s: send either a command or a url", s.Name)
		}
		all = append(all, mcp.Configured{Name: s.Name, Source: "the host", Server: mcp.Server{
			Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers, Verbatim: true, Required: true,
		}})
	}
	return all, nil
}

// check finds paths that are not absolute: those of host and agent may differ.
func (o Open) check() error {
	for _, dir := range append([]string{o.Dir}, o.Directories...) {
		if dir != "" && !filepath.IsAbs(dir) {
			return invalidf("the directory %q is not absolute", dir)
		}
	}
	return nil
}

// driven is an open session, and the lines that drive it.
type driven struct {
	host    *host.Host
	session *host.Session
	init    event.Event
	drivers map[*lines]bool
}

// sharing has the open sessions of a program that serves several hosts.
type sharing struct {
	socket      string     // on which others can attach; empty on stdin
	configuring sync.Mutex // held while settings are read
	mu          sync.Mutex
	sessions    map[string]*driven
}

// join adds a driver to a session, and the session if it is new.
func (s *sharing) join(d *driven, l *lines) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.drivers[l] = true
	s.sessions[d.session.ID()] = d
}

// leave removes a driver, and reports whether it was the last one.
func (s *sharing) leave(d *driven, l *lines) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(d.drivers, l)
	return len(d.drivers) == 0
}

// abandoned reports whether nobody drives a session; then it cannot be found any more.
func (s *sharing) abandoned(d *driven) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(d.drivers) > 0 {
		return false
	}
	delete(s.sessions, d.session.ID())
	return true
}

// find returns an open session and makes the lines drive it, or nil.
func (s *sharing) find(id string, l *lines) *driven {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.sessions[id]
	if d == nil || d.session.Now().State == core.StateClosed {
		return nil
	}
	d.drivers[l] = true
	return d
}

// close ends a session.
func (s *sharing) close(d *driven) error {
	err := d.host.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, d.session.ID())
	return err
}

// reopen replaces the session that the connection began by the one that the host wants.
// If that fails, the first one stays.
func (l *lines) reopen(ctx context.Context, o Open) error {
	if l.used {
		return invalidf("open: send it before all other commands but hello and now")
	}
	if l.options.Recording.On() {
		return invalidf("open: not with --record or --replay")
	}
	if err := o.check(); err != nil {
		return err
	}
	servers, err := o.configured()
	if err != nil {
		return err
	}
	old, _ := l.current()
	d := l.shared.find(o.Session, l)
	if d == old {
		return nil
	}
	after := o.After
	if d == nil {
		flags := *l.options.Flags
		options := &Options{
			IO: l.options.IO, Flags: &flags, Verbose: l.options.Verbose, outputSchema: l.options.outputSchema,
			ephemeral: l.options.ephemeral, onAsk: l.options.onAsk, resumption: resumption{Resume: o.Session},
		}
		if o.Dir != "" {
			flags.Dir = o.Dir
		}
		flags.AddDirs(o.Directories...)
		next, err := options.newLines(ctx, l.IO, l.shared)
		if err != nil {
			return err
		}
		next.Agent.MCP.Servers = append(servers, next.Agent.MCP.Servers...)
		before, set := l.Task, l.set
		l.Task, l.set = next.Task, next.set
		if d, err = l.openSession(ctx); err != nil {
			l.Task, l.set = before, set
			return err
		}
	}
	if after == 0 {
		after = d.session.Past()
	}
	l.used = true
	l.drive(ctx, d, after)
	if !l.shared.leave(old, l) {
		return nil
	}
	if old.session.Past() > 0 || old.session.Log() == "" {
		return l.shared.close(old)
	}
	err = old.host.Delete(old.session.ID()) // nothing happened in it
	_ = l.shared.close(old)
	return err
}
