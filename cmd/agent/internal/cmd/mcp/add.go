package mcp

import (
	"context"
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

type addOptions struct {
	serverOptions
	settings  mcp.Server // what flags set directly
	env       []string
	headers   []string
	scope     string
	force     bool
	noConnect bool
}

func newAddCmd(s *cmdutil.IO) *cobra.Command {
	o := &addOptions{serverOptions: serverOptions{IO: s}, scope: setup.ScopeUser}
	cmd := &cobra.Command{
		Use:   "add NAME URL | NAME -- COMMAND [ARGS…]",
		Short: "Add an MCP server and read its tools",
		Long: "Write a server to your settings, or with --scope project to this directory's .mcp.json, and connect to it once\n" +
			"to read its tools. Values may contain ${NAME} or ${NAME:-default}, which refer to environment variables, and\n" +
			"those of --env and --header also $(command): use them for secrets, in single quotes.",
		Example: "  agent mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n" +
			"  agent mcp add github https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${GITHUB_TOKEN}'\n" +
			"  agent mcp add db -e 'DATABASE_URL=${DATABASE_URL}' --scope project -- ./tools/db-server",
		Args: cmdutil.Args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1:]) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.settings.Type, "transport", "t", "", "transport `KIND`: stdio, http or sse (default stdio for a command, http for a URL)")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set the environment variable `NAME=VALUE` for the command")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "send the header `'NAME: VALUE'` with each request")
	f.StringVar(&o.settings.Cwd, "cwd", "", "start the command in `DIR`")
	f.BoolVar(&o.settings.Required, "required", false, "make exec wait for its tools if they are not known yet, and fail without them")
	cmdutil.ListVar(f, &o.settings.AllowTools, "allow-tool", "offer only tools with these `NAMES`; * matches any characters")
	cmdutil.ListVar(f, &o.settings.DenyTools, "deny-tool", "do not offer tools with these `NAMES`")
	f.IntVar(&o.settings.CallTimeout, "call-timeout-ms", 0, "time limit of a call, `N` milliseconds (0 = 60000)")
	f.BoolVar(&o.force, "force", false, "replace an existing server")
	f.BoolVar(&o.noConnect, "no-connect", false, "do not connect to the server now")
	scopeFlag(cmd, &o.scope, "write to `SCOPE`: user (your settings) or project (this directory's .mcp.json)")
	o.flags.Register(f, setup.DirFlag)
	return cmd
}

func (o *addOptions) run(ctx context.Context, name string, target []string) error {
	if err := checkScope(o.scope); err != nil {
		return err
	}
	server, err := o.parse(name, target)
	if err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	set, servers, err := o.load()
	if err != nil {
		return err
	}
	same := func(c mcp.Configured) bool { return c.Name == name && c.Source == o.scope }
	if i := slices.IndexFunc(servers, same); i >= 0 && !o.force {
		return cmdutil.Usagef("MCP server %q already exists (%s): remove it first, or use --force", name, servers[i].Server.Describe())
	}
	file, err := o.save(ctx, set, name, server)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Added MCP server %s to %s.\n", name, file)
	if o.noConnect {
		return nil
	}
	return o.readTools(ctx, set, mcp.Configured{Name: name, Server: server, Source: o.scope})
}

// save writes a server to the file of the scope, whose path it returns. A server
// of the project is trusted: the user has just defined it.
func (o *addOptions) save(ctx context.Context, set *setup.Setup, name string, server mcp.Server) (file string, err error) {
	if o.scope == setup.ScopeUser {
		return filepath.Join(set.Home, "settings.json"), config.UserFile(set.Home).SetServer(ctx, name, server)
	}
	if err := config.SetProjectServer(ctx, set.Home, set.Dir, name, server); err != nil {
		return "", err
	}
	return filepath.Join(set.Dir, mcp.ProjectFile), trust.Open(set.Home).TrustServer(ctx, set.Dir, name, server.Hash())
}

// parse returns the settings of the server that arguments and flags define.
func (o *addOptions) parse(name string, target []string) (mcp.Server, error) {
	server := o.settings
	if err := mcp.CheckName(name); err != nil {
		return server, err
	}
	u, err := url.Parse(target[0])
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && len(target) == 1
	switch {
	case isURL && server.Type != mcp.TransportStdio:
		server.URL = target[0]
	case server.Type == mcp.TransportHTTP || server.Type == mcp.TransportSSE:
		return server, fmt.Errorf("--transport %s needs one URL, such as https://example.com/mcp; found %q", server.Type, strings.Join(target, " "))
	default:
		server.Command, server.Args = target[0], target[1:]
	}
	server.Env, server.Headers = map[string]string{}, map[string]string{}
	for _, e := range o.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return server, fmt.Errorf("--env %s: expected NAME=VALUE", display.OneLine(e, 20))
		}
		server.Env[name] = value
	}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return server, errors.New("--header: expected 'NAME: VALUE'") // it may be a secret
		}
		server.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return server, server.Check()
}
