package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
)

// mcpAddOptions are those of mcp add.
type mcpAddOptions struct {
	mcpPlace
	server     mcp.Server
	env        []string
	headers    []string
	scope      string
	force      bool
	unchecked  bool
	allow, not []string
}

func newMCPAdd(s *cmdutil.IO) *cobra.Command {
	o := &mcpAddOptions{mcpPlace: mcpPlace{IO: s}, scope: setup.ScopeUser}
	cmd := &cobra.Command{
		Use:   "add NAME URL | NAME -- COMMAND [ARGS…]",
		Short: "Add an MCP server and read its tools",
		Long: "add writes a server into your settings, or with --scope project into this directory's .mcp.json, and connects to it\n" +
			"once to read its tools. Texts may hold ${NAME} or ${NAME:-default}, for variables of the environment:\n" +
			"a secret is best given so, in single quotes.",
		Example: "  agent mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n" +
			"  agent mcp add github https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${GITHUB_TOKEN}'\n" +
			"  agent mcp add db -e 'DATABASE_URL=${DATABASE_URL}' --scope project -- ./tools/db-server",
		Args: cmdutil.Args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1:]) },
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.server.Type, "transport", "t", "", "`KIND` of transport: stdio, http or sse; by itself stdio for a command, http for a URL")
	f.StringArrayVarP(&o.env, "env", "e", nil, "give the command the variable `NAME=VALUE`")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "send the header `'NAME: VALUE'` with each request")
	f.StringVar(&o.server.Cwd, "cwd", "", "start the command in `DIR`")
	f.BoolVar(&o.server.Required, "required", false, "have exec wait for its tools when they are not known yet, and fail without them")
	f.StringSliceVar(&o.allow, "allow-tool", nil, "offer only the tools of these `NAMES`; * matches any characters")
	f.StringSliceVar(&o.not, "deny-tool", nil, "do not offer the tools of these `NAMES`")
	f.IntVar(&o.server.CallTimeout, "call-timeout-ms", 0, "milliseconds for a call `N`; 0 is 60000")
	f.BoolVar(&o.force, "force", false, "replace a server of that name")
	f.BoolVar(&o.unchecked, "no-connect", false, "do not connect to it now")
	scopeFlag(cmd, &o.scope, "write it to `SCOPE`: user, your settings, or project, this directory's .mcp.json")
	return cmd
}

func (o *mcpAddOptions) run(cmd *cobra.Command, name string, words []string) error {
	if err := o.fill(name, words); err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	set, servers, err := o.load()
	if err != nil {
		return err
	}
	same := func(c mcp.Configured) bool { return c.Name == name && c.Source == o.scope }
	if i := slices.IndexFunc(servers, same); i >= 0 && !o.force {
		return cmdutil.Usagef("there already is an MCP server %q (%s): remove it first, or use --force", name, servers[i].Server.Describe())
	}
	ctx := cmd.Context()
	if o.scope == setup.ScopeProject {
		if err := config.SetProjectServer(ctx, set.Home, set.Dir, name, o.server); err != nil {
			return err
		}
		if err := trust.Open(set.Home).TrustServer(ctx, set.Dir, name, o.server.Hash()); err != nil {
			return err
		}
	} else if err := config.UserFile(set.Home).SetServer(ctx, name, o.server); err != nil {
		return err
	}
	where := filepath.Join(set.Home, "settings.json")
	if o.scope == setup.ScopeProject {
		where = filepath.Join(set.Dir, mcp.ProjectFile)
	}
	done := "The MCP server %s was written to " + strings.ReplaceAll(where, "%", "%%") + ".\n"
	if o.unchecked {
		fmt.Fprintf(o.Out, done, name)
		return nil
	}
	return o.read(ctx, set, mcp.Configured{Name: name, Server: o.server, Source: o.scope}, done)
}

// fill makes the server of the words and flags.
func (o *mcpAddOptions) fill(name string, words []string) error {
	if err := mcp.CheckName(name); err != nil {
		return err
	}
	u, err := url.Parse(words[0])
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && len(words) == 1
	if isURL && o.server.Type != mcp.TransportStdio {
		o.server.URL = words[0]
	} else {
		if o.server.Type == mcp.TransportHTTP || o.server.Type == mcp.TransportSSE {
			return fmt.Errorf("--transport %s needs one URL, such as https://example.com/mcp; found %q", o.server.Type, strings.Join(words, " "))
		}
		o.server.Command, o.server.Args = words[0], words[1:]
	}
	o.server.AllowTools, o.server.DenyTools = o.allow, o.not
	o.server.Env, o.server.Headers = map[string]string{}, map[string]string{}
	for _, e := range o.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return fmt.Errorf("--env %s: expected NAME=VALUE", display.OneLine(e, 20))
		}
		o.server.Env[name] = value
	}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return errors.New("--header: expected 'NAME: VALUE'")
		}
		o.server.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return o.server.Check()
}
