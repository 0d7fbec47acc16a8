package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/mcp"
)

// cmdMCP shows the session's MCP servers.
func (c *chat) cmdMCP(ctx context.Context, args string) (string, error) {
	host := c.agent.MCP()
	if host == nil {
		return "No MCP servers. Add one with `agent mcp add`.", nil
	}
	list, name := host.Status(), strings.TrimSpace(args)
	if name != "" {
		i := slices.IndexFunc(list, func(st mcp.Status) bool { return st.Name == name })
		if i < 0 {
			return "", fmt.Errorf("no MCP server %q", name)
		}
		return serverPage(list[i]), nil
	}
	if c.asker.Listing() && len(list) > 0 {
		return c.chooseServer(ctx, list)
	}
	var b strings.Builder
	b.WriteString("| Server | Status | Tools | Target |\n| --- | --- | --- | --- |\n")
	for _, st := range list {
		i := setup.ServerInfoOf(st, c.set.Dialect())
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", st.Name, setup.ServerState(st), i.ToolCount(), display.OneLine(strings.ReplaceAll(i.Target, "`", "'"), 60))
	}
	for _, st := range list {
		for _, note := range setup.ServerNotes(st) {
			fmt.Fprintf(&b, "\n- **%s**: %s", st.Name, note)
		}
	}
	return b.String(), nil
}

// serverPage shows one server.
func serverPage(st mcp.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (%s, %s): %s\n", st.Name, st.Source, st.Server.Transport(), setup.ServerState(st))
	if st.Known {
		fmt.Fprintf(&b, "\n%s %s, protocol %s, started %d times.\n", st.Info.Name, st.Info.Version, st.Info.Protocol, st.Starts)
	}
	for _, note := range setup.ServerNotes(st) {
		fmt.Fprintf(&b, "\n- %s", note)
	}
	for _, t := range st.Tools {
		fmt.Fprintf(&b, "\n- `%s` %s", mcp.ToolName(st.Name, t.Name), display.OneLine(t.Description, 100))
	}
	for _, p := range st.Prompts {
		fmt.Fprintf(&b, "\n- `/%s:%s` %s", st.Name, display.OneLine(p.Name, 60), display.OneLine(p.Description, 100))
	}
	return b.String()
}

// promptCommands are the prompts of MCP servers, as /SERVER:PROMPT.
func (c *chat) promptCommands() []tui.Command {
	host := c.agent.MCP()
	if host == nil {
		return nil
	}
	all := host.Prompts()
	var commands []tui.Command
	for _, server := range cmdutil.SortedKeys(all) {
		for _, p := range all[server] {
			if strings.ContainsAny(p.Name, " \t\n/") || display.OneLine(p.Name, 100) != p.Name {
				continue // cannot be typed
			}
			commands = append(commands, tui.Command{
				Name: server + ":" + p.Name, Args: promptArgs(p), Summary: display.OneLine(p.Description, 80) + " (MCP server " + server + ")",
				Run: func(ctx context.Context, args string) (tui.Result, error) {
					return c.runPrompt(ctx, host, server, p, args)
				},
			})
		}
	}
	return commands
}

func promptArgs(p mcp.Prompt) string {
	var words []string
	for _, a := range p.Arguments {
		word := strings.ToUpper(display.OneLine(a.Name, 30))
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// runPrompt expands a prompt and submits it as the user's input.
func (c *chat) runPrompt(ctx context.Context, host *mcp.Host, server string, p mcp.Prompt, args string) (tui.Result, error) {
	values := fillPrompt(p, args)
	for _, a := range p.Arguments {
		if _, ok := values[a.Name]; ok || !a.Required {
			continue
		}
		hint := ""
		if choices, err := host.CompletePrompt(ctx, server, p.Name, a.Name, "", values); err == nil && len(choices) > 0 {
			hint = "; one of " + display.OneLine(strings.Join(choices, ", "), 300)
		}
		return tui.Result{}, fmt.Errorf("missing argument %s: /%s:%s %s%s", display.OneLine(a.Name, 60), server, p.Name, promptArgs(p), hint)
	}
	res, err := host.GetPrompt(ctx, server, p.Name, values, c.caller())
	if err != nil {
		return tui.Result{}, err
	}
	var text []string
	for _, part := range res.Content {
		if t, ok := part.(model.Text); ok {
			text = append(text, t.Text)
		}
	}
	return tui.Result{Prompt: strings.Join(text, "\n\n")}, nil
}

// fillPrompt assigns words to a prompt's arguments: NAME=VALUE by name, others in
// order; the last argument takes the rest.
func fillPrompt(p mcp.Prompt, args string) map[string]string {
	values := map[string]string{}
	var rest []string
	for _, word := range strings.Fields(args) {
		name, value, ok := strings.Cut(word, "=")
		if ok && slices.ContainsFunc(p.Arguments, func(a mcp.PromptArgument) bool { return a.Name == name }) {
			values[name] = value
			continue
		}
		rest = append(rest, word)
	}
	var open []string
	for _, a := range p.Arguments {
		if _, ok := values[a.Name]; !ok {
			open = append(open, a.Name)
		}
	}
	for i, name := range open {
		switch {
		case i >= len(rest):
		case i == len(open)-1:
			values[name] = strings.Join(rest[i:], " ")
		default:
			values[name] = rest[i]
		}
	}
	return values
}

// caller identifies the user at the terminal.
func (c *chat) caller() mcp.Caller {
	return mcp.Caller{Session: core.SessionInfo{ID: c.session.ID(), Dir: c.set.Dir}, Ask: c.asker.Ask}
}

// resource reads "@SERVER:URI"; the parts are nil if no server has that name.
func (c *chat) resource(ctx context.Context, name string) (model.Parts, string, error) {
	host := c.agent.MCP()
	if host == nil {
		return nil, "", nil
	}
	server, uri, ok := host.SplitResource(name)
	if !ok {
		return nil, "", nil
	}
	res, err := host.ReadResource(ctx, server, uri, c.caller())
	if err != nil {
		return nil, "", err
	}
	size := 0
	parts := model.Parts{model.Text{Text: fmt.Sprintf("<resource server=%q uri=%q>", server, uri)}}
	for _, p := range res.Content {
		if t, ok := p.(model.Text); ok {
			size += len(t.Text)
		}
		parts = append(parts, p)
	}
	if size > maxMention {
		return nil, "", fmt.Errorf("too large to attach (%d bytes): let the model read it with read_mcp_resource", size)
	}
	return append(parts, model.Text{Text: "</resource>"}), fmt.Sprintf("@%s: %d bytes of text", name, size), nil
}

// resources completes "@SERVER:URI".
func (c *chat) resources(prefix string) []string {
	if host := c.agent.MCP(); host != nil {
		return host.Resources(prefix)
	}
	return nil
}
