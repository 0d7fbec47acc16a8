package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/schema/adapt"
	"github.com/seed-009c0928/agent/core/timeout"
)

// maxDescription limits the description of a tool, in characters.
const maxDescription = 8000

// toolset is the tools of a server. It implements [core.Toolset].
type toolset struct{ server *server }

var _ core.Toolset = (*toolset)(nil)

// Name returns the server's name.
func (t *toolset) Name() string { return t.server.Name }

// Tools returns the known tools, without starting the server.
func (t *toolset) Tools(context.Context) ([]core.Tool, error) {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.summary().tools
	tools := make([]core.Tool, 0, len(known))
	for _, p := range known {
		if s.Server.offers(p.Name) {
			tools = append(tools, newTool(s, p))
		}
	}
	return tools, nil
}

// Changed implements [core.Toolset].
func (t *toolset) Changed() <-chan struct{} { return t.server.changed }

// Close stops the server.
func (t *toolset) Close() error {
	t.server.close()
	return nil
}

// tool is a tool of a server. It implements [core.Tool].
type tool struct {
	server *server
	info   ToolInfo
	def    core.ToolDefinition
}

func newTool(s *server, p pinnedTool) *tool {
	info := p.tool()
	schema := info.Schema
	if !p.Plain {
		schema = objectSchema(schema)
	}
	return &tool{server: s, info: info, def: core.ToolDefinition{
		Name: ToolName(s.Name, info.Name), Description: description(s.Name, info), Schema: schema, Scopes: []core.Scope{core.ScopeMCP},
	}}
}

// Adapted returns why the tool's schema is sent to a service in another form, one
// text per reason; nothing if it is sent as it is.
func (t ToolInfo) Adapted(d adapt.Dialect) []string {
	_, changes := adapt.Adapt(d, objectSchema(t.Schema))
	return changes
}

// description returns the description of a tool for the model, with its source.
func description(server string, t ToolInfo) string {
	text := strings.TrimSpace(clip(cleanText(t.Description), maxDescription))
	if text == "" {
		text = t.Name
	}
	return "(MCP server " + server + ") " + text
}

// Definition implements [core.Tool].
func (t *tool) Definition() core.ToolDefinition { return t.def }

// Access implements [core.Tool]. The server's annotations of the tool are ignored.
func (t *tool) Access(context.Context, *core.Call) ([]core.Access, error) {
	return []core.Access{{Scope: core.ScopeMCP, Resource: t.server.Name + "/" + t.info.Name}}, nil
}

// Run implements [core.Tool].
func (t *tool) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	if refused := t.approve(ctx, call); refused != nil {
		return *refused, nil
	}
	var refused *core.Result
	res, err := withServer(ctx, t.server, func(c *Conn) (CallResult, error) {
		// Connecting may have revealed a change.
		if refused = t.approve(ctx, call); refused != nil {
			return CallResult{}, nil
		}
		return c.Call(ctx, t.server.info(t.info), call.Args, callerOf(call))
	})
	switch {
	case refused != nil:
		return *refused, nil
	case err != nil:
		return failure(ctx, err), nil
	}
	return res.coreResult(), nil
}

// info returns the full definition of a tool; a summary has only a part.
func (s *server) info(t ToolInfo) ToolInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.record().Tools {
		if p.Name == t.Name {
			return p.tool()
		}
	}
	return t
}

// callerOf returns the [Caller] of a call.
func callerOf(call *core.Call) Caller {
	return Caller{Session: call.Session, Ask: call.Ask, Progress: call.Progress}
}

// approve asks the user to approve a changed definition. If it is not approved, it
// returns the result of the call.
func (t *tool) approve(ctx context.Context, call *core.Call) *core.Result {
	t.server.mu.Lock()
	old, now, blocked := t.server.record().change(t.info.Name)
	t.server.mu.Unlock()
	if !blocked {
		return nil
	}
	refuse := func(why string) *core.Result {
		res := core.Failf(core.CodePermission, "MCP server %s has changed the definition of tool %s since it was approved, and %s. "+
			"The user can review and accept it: agent mcp test %s", t.server.Name, t.info.Name, why, t.server.Name)
		return &res
	}
	answer, err := call.Ask(ctx, core.Question{
		Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
		Title:  fmt.Sprintf("MCP server %s has changed its tool %s. Use the changed tool?", t.server.Name, t.info.Name),
		Detail: Difference(old, now),
	})
	switch {
	case errors.Is(err, core.ErrNonInteractive):
		return refuse("it cannot be approved non-interactively")
	case err != nil || answer.Choice != core.ChoiceYes:
		return refuse("the change was denied")
	}
	if _, err := t.server.accept(ctx, t.info.Name); err != nil {
		return refuse("the approval could not be saved: " + err.Error())
	}
	return nil
}

// Difference describes how a definition has changed, in lines with - and +.
func Difference(old, now ToolInfo) string {
	var b strings.Builder
	show := func(what, was, is string) {
		if was == is {
			return
		}
		fmt.Fprintf(&b, "%s:\n", what)
		for _, side := range []struct{ mark, text string }{{"-", was}, {"+", is}} {
			for line := range strings.SplitSeq(strings.TrimSpace(side.text), "\n") {
				fmt.Fprintf(&b, "%s %s\n", side.mark, line)
			}
		}
	}
	show("description", visible(old.Description), visible(now.Description))
	show("arguments", visible(string(old.Schema)), visible(string(now.Schema)))
	return strings.TrimSpace(b.String())
}

// visible replaces hidden characters by escapes.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && r != '\t' && hidden(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// failure returns the result of a call that failed with an error.

func failure(ctx context.Context, err error) core.Result {
	code := core.CodeIO
	rpc := (*RPCError)(nil)
	switch {
	case ctx.Err() != nil:
		code = core.CodeCancelled
	case errors.Is(err, timeout.ErrExpired):
		code = core.CodeTimeout
	case errors.Is(err, ErrSignIn):
		code = core.CodeConfig
	case errors.As(err, &rpc) && rpc.Code == mcp.INVALID_PARAMS:
		code = core.CodeValidation
	case errors.As(err, &rpc) && (rpc.Code == mcp.METHOD_NOT_FOUND || rpc.Code == mcp.RESOURCE_NOT_FOUND):
		code = core.CodeNotFound
	case errors.As(err, &rpc):
		code = core.CodeUnknown
	}
	return core.Fail(code, err.Error())
}
