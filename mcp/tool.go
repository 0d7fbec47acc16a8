package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/timeout"
)

// maxDescription bounds what a server may say of a tool, in characters.
const maxDescription = 8000

// toolset is a server as the agent sees it. It implements [core.Toolset].
type toolset struct{ server *server }

var _ core.Toolset = (*toolset)(nil)

// Name returns the server's name.
func (t *toolset) Name() string { return t.server.Name }

// Tools returns the tools as they are known, without starting the server.
func (t *toolset) Tools(context.Context) ([]core.Tool, error) {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.face().tools
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

// Close ends the server.
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

// description is what the model is told of a tool: whose words they are, and
// the words.
func description(server string, t ToolInfo) string {
	words := strings.TrimSpace(clip(cleanText(t.Description), maxDescription))
	if words == "" {
		words = t.Name
	}
	return "(MCP server " + server + ") " + words
}

// Definition implements [core.Tool].
func (t *tool) Definition() core.ToolDefinition { return t.def }

// Access implements [core.Tool]. What the server claims of the tool makes no
// difference.
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
		// The connection may have brought news.
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

// info returns all that is known of a tool, of which a face holds only a part.
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

// callerOf is who a call is made for.
func callerOf(call *core.Call) Caller {
	return Caller{Session: call.Session, Ask: call.Ask, Progress: call.Progress}
}

// approve has the person look at a definition that has changed. It returns the
// result of a call that is refused.
func (t *tool) approve(ctx context.Context, call *core.Call) *core.Result {
	t.server.mu.Lock()
	old, now, blocked := t.server.record().change(t.info.Name)
	t.server.mu.Unlock()
	if !blocked {
		return nil
	}
	refuse := func(why string) *core.Result {
		res := core.Failf(core.CodePermission, "The MCP server %s has changed what it says of the tool %s since it was first seen, and %s. "+
			"The user can look at the difference and accept it: agent mcp test %s", t.server.Name, t.info.Name, why, t.server.Name)
		return &res
	}
	answer, err := call.Ask(ctx, core.Question{
		Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
		Title:  fmt.Sprintf("The MCP server %s has changed its tool %s. Use it as it is now?", t.server.Name, t.info.Name),
		Detail: Difference(old, now),
	})
	switch {
	case errors.Is(err, core.ErrNobody):
		return refuse("nobody is there to approve it")
	case err != nil || answer.Choice != core.ChoiceYes:
		return refuse("that was not approved")
	}
	if _, err := t.server.accept(ctx, t.info.Name); err != nil {
		return refuse("the approval could not be kept: " + err.Error())
	}
	return nil
}

// Difference shows how a definition has changed, as lines with - and +.
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

// visible shows hidden characters as escapes.
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

// failure is the result of a call that did not come back.
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
