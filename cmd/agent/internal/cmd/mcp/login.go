package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/mcp/oauth"
)

// loginTimeout is how long login waits for the browser by default.
const loginTimeout = 5 * time.Minute

type loginOptions struct {
	serverOptions
	noBrowser bool
	timeout   time.Duration
}

func newLoginCmd(s *cmdutil.IO) *cobra.Command {
	o := &loginOptions{serverOptions: serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to an MCP server in the browser",
		Long: "Open the server's sign-in page in your browser and wait until you have signed in. If the browser runs on another\n" +
			"machine, paste the address at which it ended. Tokens are stored in the keyring of the operating system, or in a\n" +
			"file that only you can read.",
		Example:           "  agent mcp add tracker https://mcp.example.com/mcp\n  agent mcp login tracker",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "print the address of the sign-in page, open no browser")
	cmd.Flags().DurationVar(&o.timeout, "timeout", loginTimeout, "wait at most `LONG` for the sign-in")
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	return cmd
}

func (o *loginOptions) run(ctx context.Context, name string) error {
	set, c, err := o.remote(name)
	if err != nil {
		return err
	}
	t, err := transport(ctx, set, c, &browser{Prompter: cmdutil.NewPrompter(o.IO), disabled: o.noBrowser})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("no sign-in within %s", o.timeout))
	defer cancel()
	err = cmdutil.Interruptible(waiting, func(ctx context.Context) error {
		if err := t.SignIn(ctx); err != nil {
			return fmt.Errorf("MCP server %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	st, err := t.Status(ctx)
	if err != nil {
		return err
	}
	printSignIn(o.Out, name, st)
	return o.readTools(ctx, set, c)
}

// printSignIn prints what the user has signed in to.
func printSignIn(out io.Writer, name string, st oauth.Status) {
	fmt.Fprintf(out, "Signed in to MCP server %s at %s.\n", name, display.VisibleLine(st.Issuer, 200))
	if len(st.Scopes) > 0 {
		fmt.Fprintf(out, "Scopes: %s\n", display.VisibleLine(strings.Join(st.Scopes, ", "), 300))
	}
	if !st.Renewable && !st.Expires.IsZero() {
		fmt.Fprintf(out, "The sign-in expires at %s and cannot be renewed: you will have to sign in again.\n", st.Expires.Local().Format(time.DateTime))
	}
}

type logoutOptions struct{ serverOptions }

func newLogoutCmd(s *cmdutil.IO) *cobra.Command {
	o := &logoutOptions{serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Sign out of an MCP server",
		Long: "Delete the stored tokens and client registration of a server, and revoke the tokens if their issuer supports\n" +
			"that.",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	return cmd
}

func (o *logoutOptions) run(ctx context.Context, name string) error {
	set, c, err := o.remote(name)
	if err != nil {
		return err
	}
	t, err := transport(ctx, set, c, nil)
	if err != nil {
		return err
	}
	st, statusErr := t.Status(ctx)
	revoked, err := t.SignOut(ctx)
	if err != nil {
		return fmt.Errorf("MCP server %s: %w", name, err)
	}
	result := "Signed out of MCP server %s. Its tokens were deleted, but not revoked: the issuer could not be told, or does not support it.\n"
	switch {
	case revoked:
		result = "Signed out of MCP server %s. Its tokens were deleted and revoked.\n"
	case statusErr == nil && !st.SignedIn:
		result = "You were not signed in to MCP server %s.\n"
	}
	fmt.Fprintf(o.Out, result, name)
	return nil
}

// remote finds a server that is reached over HTTP.
func (o *serverOptions) remote(name string) (*setup.Setup, mcp.Configured, error) {
	set, c, err := o.server(name)
	switch {
	case err != nil:
		return nil, c, err
	case c.Problem != nil:
		return nil, c, fmt.Errorf("MCP server %s: %w", name, c.Problem)
	case c.Server.Transport() == mcp.TransportStdio:
		return nil, c, cmdutil.Usagef("MCP server %s is a local command with nothing to sign in to: pass credentials as environment variables (agent mcp add --env)", name)
	}
	return set, c, nil
}

// transport returns the HTTP transport that signs in to a server.
func transport(ctx context.Context, set *setup.Setup, c mcp.Configured, p oauth.Browser) (*oauth.Transport, error) {
	s, err := c.Server.Expand(ctx, mcp.Environ, config.Command)
	var t *oauth.Transport
	if err == nil {
		t, err = set.SignIn(p).Transport(s, nil)
	}
	if err != nil {
		return nil, &config.Error{Key: "mcp.servers." + c.Name, Err: err}
	}
	return t, nil
}

// browser takes the user to the sign-in page.
type browser struct {
	*cmdutil.Prompter
	disabled bool // print the address only
}

var _ oauth.Browser = (*browser)(nil)

// Visit implements [oauth.Browser].
func (b *browser) Visit(ctx context.Context, page string) (string, error) {
	b.Printf("Sign in on this page:\n\n  %s\n", page)
	if !b.disabled {
		if err := cmdutil.OpenBrowser(ctx, page); err != nil {
			b.Printf("No browser was opened: %v", err)
		} else {
			b.Printf("It was opened in your browser.")
		}
	}
	if !b.InTTY {
		return "", nil // piped input is no answer
	}
	for {
		text, err := b.Line(ctx, "Waiting for the browser. If it ends at a page that does not load, paste the address of that page", "")
		switch {
		case errors.Is(err, cmdutil.ErrInputEnded), ctx.Err() != nil:
			return "", nil // the browser may still connect
		case err != nil || text != "":
			return text, err
		}
	}
}
