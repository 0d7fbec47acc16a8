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

// signInPatience is how long a person may take for a sign-in.
const signInPatience = 5 * time.Minute

func newMCPLogin(s *cmdutil.IO) *cobra.Command {
	p, noBrowser, patience := &mcpPlace{IO: s}, false, signInPatience
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to an MCP server in the browser",
		Long: "login finds out from the server where it wants you to sign in, opens that page in your browser and waits for it to\n" +
			"come back. Where the browser runs on another machine, copy the address at which it ends and paste it here.\n" +
			"Tokens are kept in the keyring of the operating system, or in a file that only you may read.",
		Example: "  agent mcp add tracker https://mcp.example.com/mcp\n  agent mcp login tracker",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, c, err := p.remote(args[0])
			if err != nil {
				return err
			}
			person := &terminalPerson{Prompter: cmdutil.NewPrompter(s), noBrowser: noBrowser}
			signIn, err := set.SignIn(person).Transport(c.Server, nil)
			if err != nil {
				return &config.Error{Key: "mcp.servers." + c.Name, Err: err}
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), patience, fmt.Errorf("nobody signed in within %s", patience))
			defer cancel()
			watched, stop := cmdutil.Interrupts(ctx, io.Discard, cancel)
			err = signIn.SignIn(watched)
			if sig := stop(); sig != nil {
				return sig
			}
			if err != nil {
				return fmt.Errorf("MCP server %s: %w", c.Name, err)
			}
			if err := printSignedIn(watched, s, c.Name, signIn); err != nil {
				return err
			}
			return p.read(cmd.Context(), set, c, "")
		},
	}
	p.register(cmd)
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the page's address and open no browser")
	cmd.Flags().DurationVar(&patience, "timeout", signInPatience, "wait this `LONG` for the browser")
	return cmd
}

func printSignedIn(ctx context.Context, s *cmdutil.IO, name string, signIn *oauth.Transport) error {
	st, err := signIn.Status(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "You are signed in to the MCP server %s, at %s.\n", name, display.VisibleLine(st.Issuer, 200))
	if len(st.Scopes) > 0 {
		fmt.Fprintf(s.Out, "It may: %s\n", display.VisibleLine(strings.Join(st.Scopes, ", "), 300))
	}
	if !st.Renewable && !st.Expires.IsZero() {
		fmt.Fprintf(s.Out, "The sign-in ends at %s and cannot be renewed without you.\n", st.Expires.Local().Format(time.DateTime))
	}
	return nil
}

func newMCPLogout(s *cmdutil.IO) *cobra.Command {
	p := &mcpPlace{IO: s}
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the sign-in to an MCP server",
		Long:  "logout removes the tokens and the registration that are kept for a server, and tells the issuer that the tokens are\nnot used any more, where it wants to know.",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, c, err := p.remote(args[0])
			if err != nil {
				return err
			}
			signIn, err := set.SignIn(nil).Transport(c.Server, nil)
			if err != nil {
				return &config.Error{Key: "mcp.servers." + c.Name, Err: err}
			}
			st, err := signIn.Status(cmd.Context())
			if err == nil && !st.SignedIn {
				fmt.Fprintf(s.Out, "You were not signed in to the MCP server %s.\n", c.Name)
			}
			revoked, err := signIn.SignOut(cmd.Context())
			if err != nil {
				return fmt.Errorf("MCP server %s: %w", c.Name, err)
			}
			switch {
			case revoked:
				fmt.Fprintf(s.Out, "You are signed out of the MCP server %s; its tokens were revoked.\n", c.Name)
			case st.SignedIn:
				fmt.Fprintf(s.Out, "You are signed out of the MCP server %s. Its tokens were forgotten here; the issuer was not told, or does not revoke any.\n", c.Name)
			}
			return nil
		},
	}
	p.register(cmd)
	return cmd
}

// remote finds a server that is reached by HTTP, with its variables put in.
func (p *mcpPlace) remote(name string) (*setup.Setup, mcp.Configured, error) {
	set, c, err := p.server(name)
	switch {
	case err != nil:
		return nil, c, err
	case c.Problem != nil:
		return nil, c, fmt.Errorf("MCP server %s: %w", name, c.Problem)
	case c.Server.Transport() == mcp.TransportStdio:
		return nil, c, cmdutil.Usagef("the MCP server %s is a program on this machine: there is nothing to sign in to; what it needs goes into its variables (agent mcp add -e)", name)
	}
	if c.Server, err = c.Server.Expand(mcp.Environ); err != nil {
		return nil, c, &config.Error{Key: "mcp.servers." + name, Err: err}
	}
	return set, c, nil
}

// terminalPerson is the person at the terminal, with their browser.
type terminalPerson struct {
	*cmdutil.Prompter
	noBrowser bool
}

var _ oauth.Person = (*terminalPerson)(nil)

// Visit implements [oauth.Person].
func (t *terminalPerson) Visit(ctx context.Context, page string) (string, error) {
	t.Printf("Sign in on this page:\n\n  %s\n", page)
	if !t.noBrowser {
		if err := cmdutil.OpenBrowser(ctx, page); err != nil {
			t.Printf("No browser was opened: %v", err)
		} else {
			t.Printf("It was opened in your browser.")
		}
	}
	if !t.InTTY {
		return "", nil // what is piped in is no answer
	}
	for {
		text, err := t.Line(ctx, "When the browser has come back, this goes on by itself. If it cannot, paste the address at which it ended", "")
		switch {
		case errors.Is(err, cmdutil.ErrInputEnded), ctx.Err() != nil:
			return "", nil // the browser may still come
		case err != nil || text != "":
			return text, err
		}
	}
}
