package mcp

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// resourceSource is the name of the resource toolset.
const resourceSource = "mcp"

//go:embed read_mcp_resource.md
var readDoc string

// resourceToolset has one tool, which reads the resources of any server. It is
// empty until a server is known to have some.
type resourceToolset struct{ host *Host }

var _ core.Toolset = (*resourceToolset)(nil)

// Name implements [core.Toolset].
func (*resourceToolset) Name() string { return resourceSource }

// Tools implements [core.Toolset].
func (t *resourceToolset) Tools(context.Context) ([]core.Tool, error) {
	for _, s := range t.host.servers {
		if s.usable() && s.hasResources() {
			return []core.Tool{t.host.readTool()}, nil
		}
	}
	return nil, nil
}

// Changed implements [core.Toolset].
func (t *resourceToolset) Changed() <-chan struct{} { return t.host.resourcesChanged }

// Close implements [core.Toolset].
func (t *resourceToolset) Close() error {
	t.host.closeResources()
	return nil
}

// touchResources signals that the resource toolset may have changed.
func (h *Host) touchResources() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.resourcesClosed {
		return
	}
	select {
	case h.resourcesChanged <- struct{}{}:
	default:
	}
}

func (h *Host) closeResources() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.resourcesClosed {
		h.resourcesClosed = true
		close(h.resourcesChanged)
	}
}

func (s *server) hasResources() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary().resources
}

type readArgs struct {
	Server string `json:"server" jsonschema:"the MCP server's name"`
	URI    string `json:"uri,omitempty" jsonschema:"the resource's URI; omit it to list the server's resources"`
}

// readTool returns the tool that reads resources.
func (h *Host) readTool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name: "read_mcp_resource", Description: strings.TrimSpace(readDoc), Scopes: []core.Scope{core.ScopeMCP},
	}, func(_ context.Context, _ *core.Call, in readArgs) ([]core.Access, error) {
		return []core.Access{{Scope: core.ScopeMCP, Resource: in.Server + "/resource:" + in.URI}}, nil
	}, func(ctx context.Context, call *core.Call, in readArgs) (core.Result, error) {
		if in.URI == "" {
			text, err := h.listResources(in.Server)
			if err != nil {
				return core.Fail(core.CodeNotFound, err.Error()), nil
			}
			return core.TextResult(text), nil
		}
		res, err := h.ReadResource(ctx, in.Server, in.URI, callerOf(call))
		if err != nil {
			return failure(ctx, err), nil
		}
		return res.coreResult(), nil
	})
}

// listResources lists the known resources of a server.
func (h *Host) listResources(name string) (string, error) {
	s, err := h.usable(name)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	rec := s.record()
	s.mu.Unlock()
	var b strings.Builder
	for _, r := range append(slices.Clone(rec.Resources), rec.Templates...) {
		fmt.Fprintf(&b, "%s", cleanLine(r.URI+r.Template))
		for _, more := range []string{cmp.Or(r.Title, r.Name), r.MIMEType, clip(r.Description, 200)} {
			if more = cleanLine(more); more != "" {
				fmt.Fprintf(&b, " · %s", more)
			}
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return fmt.Sprintf("Server %s has no resources.", name), nil
	}
	return fmt.Sprintf("Resources of server %s, as described by it; replace {…} with a value:\n%s", name, b.String()), nil
}

// ReadResource reads a resource of a server. If the server supports it, the
// session learns when the resource changes; see [Host.Context].
func (h *Host) ReadResource(ctx context.Context, name, uri string, caller Caller) (CallResult, error) {
	return withConn(ctx, h, name, func(c *Conn) (CallResult, error) {
		res, err := c.ReadResource(ctx, uri, caller)
		if err == nil && c.info.Subscribe && caller.Session.ID != "" {
			h.follow(name, uri, caller.Session.ID)
			c.spawn(func() { _ = c.Subscribe(c.ctx, uri) }) // best effort
		}
		return res, err
	})
}

// Resources returns up to 100 completions of prefix: known resources as
// "SERVER:URI" or, before the colon, servers that have some.
func (h *Host) Resources(prefix string) []string {
	var list []string
	for _, s := range h.servers {
		if !s.usable() || !s.hasResources() {
			continue
		}
		begin := s.Name + ":"
		if !strings.HasPrefix(prefix, begin) {
			if strings.HasPrefix(begin, prefix) {
				list = append(list, begin)
			}
			continue
		}
		s.mu.Lock()
		for _, r := range s.record().Resources {
			if full := begin + r.URI; strings.HasPrefix(full, prefix) && !strings.ContainsAny(full, " \t\n") && cleanLine(full) == full {
				list = append(list, full)
			}
		}
		s.mu.Unlock()
	}
	return list[:min(len(list), 100)]
}

// SplitResource splits "SERVER:URI"; ok is false if there is no such server.
func (h *Host) SplitResource(text string) (server, uri string, ok bool) {
	server, uri, ok = strings.Cut(text, ":")
	s := h.server(server)
	return server, uri, ok && uri != "" && s != nil && s.usable()
}

// maxFollowed limits the resources whose changes are followed.
const maxFollowed = 1000

// follow records that a session has read a resource.
func (h *Host) follow(server, uri, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := server + " " + uri
	if h.readers[key] == nil {
		if len(h.readers) >= maxFollowed {
			return
		}
		h.readers[key] = map[string]bool{}
	}
	h.readers[key][session] = true
}

// updated records that a resource has changed.
func (h *Host) updated(server, uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := server + " " + uri
	for session := range h.readers[key] {
		if !slices.Contains(h.changes[session], key) {
			h.changes[session] = append(h.changes[session], key)
		}
	}
}

// Context lists the resources that have changed since the session read them. It
// implements [core.ContextSource].
func (h *Host) Context(_ context.Context, req core.ContextRequest) ([]core.Block, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.changes[req.Session.ID]
	delete(h.changes, req.Session.ID)
	if len(news) == 0 {
		return nil, nil
	}
	var b strings.Builder
	b.WriteString("These MCP resources have changed since they were read:")
	for _, key := range news {
		server, uri, _ := strings.Cut(key, " ")
		fmt.Fprintf(&b, "\n- %s of server %s", cleanLine(uri), server)
	}
	return []core.Block{{Source: resourceSource, Text: b.String()}}, nil
}

// EndSession deletes the record of what a session has read.
func (h *Host) EndSession(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.changes, id)
	for key, sessions := range h.readers {
		if delete(sessions, id); len(sessions) == 0 {
			delete(h.readers, key)
		}
	}
}

var _ core.ContextSource = (*Host)(nil)
