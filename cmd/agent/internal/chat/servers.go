package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp"
)

// signInTime is how long a sign-in is waited for.
const signInTime = 5 * time.Minute

// chooseServer lets the user choose an MCP server, and what to do with it.
func (c *chat) chooseServer(ctx context.Context, servers []mcp.Status) (string, error) {
	list := tui.List{Title: "Which MCP server?"}
	for _, st := range servers {
		i := setup.ServerInfoOf(st, c.set.Dialect())
		list.Items = append(list.Items, tui.Item{Label: st.Name, Detail: fmt.Sprintf("%s · %s · %s", setup.ServerState(st), i.ToolCount(), display.OneLine(i.Target, 60))})
	}
	list.Preview = func(_ context.Context, at int) string { return serverPage(servers[at]) }
	at, err := c.asker.Choose(ctx, list)
	if err != nil || at < 0 {
		return "", err
	}
	st := servers[at]
	const show, signIn = "show", "sign in"
	toggle := "turn off"
	if st.Server.Disabled {
		toggle = "turn on"
	}
	actions := tui.List{Title: "MCP server " + st.Name, Items: []tui.Item{{Label: show, Detail: "its tools and prompts"}, {Label: toggle, Detail: "from the next session on: /clear starts one"}}}
	if st.Server.URL != "" {
		actions.Items = append(actions.Items, tui.Item{Label: signIn, Detail: "in the browser"})
	}
	if errors.Is(st.Err, mcp.ErrSignIn) {
		actions.At = len(actions.Items) - 1
	}
	if at, err = c.asker.Choose(ctx, actions); err != nil || at < 0 {
		return "", err
	}
	switch actions.Items[at].Label {
	case toggle:
		_, err := config.UserFile(c.set.Home).EnableServer(ctx, st.Name, toggle == "turn on")
		return fmt.Sprintf("MCP server **%s**: %s from the next session on; `/clear` starts one.", st.Name, toggle[len("turn "):]), err
	case signIn:
		return c.signIn(ctx, st.Configured)
	}
	return serverPage(st), nil
}

// signIn signs in to a server.
func (c *chat) signIn(ctx context.Context, server mcp.Configured) (string, error) {
	s, err := server.Server.Expand(ctx, mcp.Environ, config.Command)
	if err != nil {
		return "", fmt.Errorf("MCP server %s: %w", server.Name, err)
	}
	t, err := c.set.SignIn(browser{c.asker}).Transport(s, nil)
	if err != nil {
		return "", fmt.Errorf("MCP server %s: %w", server.Name, err)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, signInTime, fmt.Errorf("no sign-in within %s", signInTime))
	defer cancel()
	if err := t.SignIn(waiting); err != nil {
		return "", fmt.Errorf("MCP server %s: %w", server.Name, err)
	}
	text := "Signed in to MCP server **" + server.Name + "**."
	if server.Server.Disabled {
		return text, nil
	}
	st, err := c.agent.MCP().Refresh(ctx, server.Name)
	return text + " It has " + setup.ServerInfoOf(st, c.set.Dialect()).ToolCount() + ".", err
}

// browser takes the user to a sign-in page, and asks for the address at which it
// ended, should it end in another machine's browser.
type browser struct{ asker *tui.Asker }

// Visit implements [oauth.Browser].
func (b browser) Visit(ctx context.Context, page string) (string, error) {
	detail := "It was opened in your browser."
	if err := cmdutil.OpenBrowser(ctx, page); err != nil {
		detail = "No browser was opened: " + err.Error()
	}
	schema := json.RawMessage(`{"type":"object","properties":{"address":{"type":"string","title":"If it ends at a page that does not load, paste the address of that page"}}}`)
	for {
		answer, err := b.asker.Ask(ctx, core.Question{Kind: core.QuestionForm, Title: "Sign in on this page", Detail: detail, URL: page, Schema: schema})
		var values struct{ Address string }
		switch {
		case ctx.Err() != nil:
			return "", nil // the browser has come back
		case err != nil || answer.Choice != core.ChoiceYes:
			return "", fmt.Errorf("the sign-in was stopped: %w", context.Canceled)
		case json.Unmarshal(answer.Values, &values) == nil && values.Address != "":
			return values.Address, nil
		}
	}
}
