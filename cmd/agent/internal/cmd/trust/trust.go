package trust

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
)

// trustOptions are the options of agent trust. At most one of revoke, list and
// show is set.
type trustOptions struct {
	*cmdutil.IO
	revoke, list, show, json bool
}

// NewCmd returns agent trust.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &trustOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a directory's settings, skills and MCP servers",
		Long: "Trust a directory after reviewing what it sets (agent trust --show). In untrusted directories only the ask and\n" +
			"deny rules of their settings apply. In trusted ones the agent may also write files, and run commands in a\n" +
			"sandbox if there is one, unless you set another permission mode. Trust is tied to file contents: when they\n" +
			"change, you must trust the directory again.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.revoke, "revoke", false, "stop trusting the directory")
	cmd.Flags().BoolVar(&o.list, "list", false, "list trusted directories")
	cmd.Flags().BoolVar(&o.show, "show", false, "show what would be trusted, and what has changed since it was")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON (with --list or --show)")
	return cmd
}

func (o *trustOptions) run(ctx context.Context, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	home, err := o.AgentHome()
	if err != nil {
		return err
	}
	dir := ""
	if len(args) > 0 {
		dir = args[0]
	}
	store := trust.Open(home)
	dir = o.WorkDir(dir)
	switch {
	case o.show:
		return o.showTrust(store, dir)
	case o.list:
		return o.listTrusted(store)
	case o.revoke:
		return o.revokeTrust(ctx, store, dir)
	}
	return o.trust(ctx, store, dir)
}

func (o *trustOptions) check(args []string) error {
	switch {
	case o.list && (o.revoke || o.show || len(args) > 0):
		return cmdutil.Usagef("--list takes neither DIR nor --revoke or --show")
	case o.revoke && o.show:
		return cmdutil.Usagef("--revoke and --show exclude each other")
	case o.json && !o.list && !o.show:
		return cmdutil.Usagef("--json needs --list or --show")
	}
	return nil
}

// trust trusts a directory and prints what that covers. Invalid settings are not
// trusted: every command would fail.
func (o *trustOptions) trust(ctx context.Context, store *trust.Store, dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("no directory %s", dir)
	}
	loaded, err := o.load(dir)
	if err != nil {
		return err
	}
	servers, err := o.trustServers(ctx, store, dir)
	if err != nil {
		return err
	}
	state, err := store.Trust(ctx, dir, time.Now())
	switch {
	case err != nil:
		return err
	case len(state.Files) > 0:
		fmt.Fprintf(o.Out, "%s is now trusted, with:\n", dir)
		printCovered(o.Out, state, loaded)
	case !servers:
		fmt.Fprintf(o.Out, "%s is now trusted. It has nothing to trust yet; you will be asked when it does.\n", dir)
	}
	return nil
}

// load reads the settings as if the directory were trusted.
func (o *trustOptions) load(dir string) (*config.Loaded, error) {
	loaded, err := config.Load(config.LoadOptions{Env: o.Env, Managed: o.ManagedSettings, Home: cmdutil.UserHome(), Cwd: dir, Trusted: true})
	if err != nil {
		return nil, err
	}
	return loaded, setup.CheckRules(o.IO, loaded, dir)
}

// trustServers trusts the directory's MCP servers as they are now, and reports
// whether there are any. Invalid ones are reported and not trusted.
func (o *trustOptions) trustServers(ctx context.Context, store *trust.Store, dir string) (found bool, err error) {
	servers, _, err := config.ProjectServers(dir)
	if err != nil {
		fmt.Fprintf(o.Err, "agent: %v\n", err)
	}
	for _, name := range cmdutil.SortedKeys(servers) {
		if err := store.TrustServer(ctx, dir, name, servers[name].Hash()); err != nil {
			return false, err
		}
		fmt.Fprintf(o.Out, "%s is now trusted to use MCP server %s: %s\n", dir, name, display.VisibleLine(servers[name].Describe(), 500))
		printCommands(o.Out, servers[name])
	}
	return len(servers) > 0, nil
}

// printCommands prints the commands that run for values of a server's settings.
func printCommands(out io.Writer, s mcp.Server) {
	for _, line := range s.Commands() {
		fmt.Fprintf(out, "    runs: %s\n", display.VisibleLine(line, 500))
	}
}

// printCovered prints what trust covers: the files, with the first digits of
// their hashes, and the settings in them.
func printCovered(out io.Writer, state trust.State, loaded *config.Loaded) {
	for _, name := range state.Files {
		fmt.Fprintf(out, "  %.12s  %s\n", state.Sums[name], name)
	}
	values, rules := projectSettings(loaded)
	for _, v := range values {
		fmt.Fprintf(out, "    %s = %s\n", v.Key, display.VisibleLine(cmdutil.ValueText(v.Value), 200))
	}
	for _, r := range rules {
		fmt.Fprintf(out, "    %s %s\n", r.Verdict, display.VisibleLine(r.Text, 200))
	}
}

// projectSettings returns the settings and rules of the project's file.
func projectSettings(loaded *config.Loaded) (values []config.Value, rules []config.Rule) {
	for _, v := range loaded.Values() {
		if v.Source.Layer == config.LayerProject && !setup.IsRuleList(v.Key) {
			values = append(values, v)
		}
	}
	for _, r := range loaded.Rules {
		if r.Source.Layer == config.LayerProject {
			rules = append(rules, r)
		}
	}
	return values, rules
}

// info is the JSON of a directory.
type info struct {
	Directory string    `json:"directory"`
	Status    string    `json:"status"`
	Since     time.Time `json:"since"`
	Changes   []string  `json:"changes"`
}

func infoOf(d trust.State) info {
	return info{d.Dir, string(d.Status), d.Since, append([]string{}, d.Changes...)}
}

// details is info with what trust covers.
type details struct {
	info
	Files    map[string]string `json:"files"` // SHA-256, hex
	Settings map[string]any    `json:"settings"`
	Rules    []string          `json:"rules"`
}

func detailsOf(state trust.State, loaded *config.Loaded) details {
	d := details{info: infoOf(state), Files: state.Sums, Settings: map[string]any{}, Rules: []string{}}
	values, rules := projectSettings(loaded)
	for _, v := range values {
		d.Settings[v.Key] = v.Value
	}
	for _, r := range rules {
		d.Rules = append(d.Rules, r.Verdict+" "+r.Text)
	}
	return d
}

// showTrust prints what trust covers or would cover.
func (o *trustOptions) showTrust(store *trust.Store, dir string) error {
	state, err := store.Check(dir)
	if err != nil {
		return err
	}
	loaded, err := o.load(dir)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, detailsOf(state, loaded))
	}
	text := map[trust.Status]string{
		trust.Nothing:   "has nothing to trust.",
		trust.Untrusted: "is not trusted. Trust would cover:",
		trust.Changed:   "has changed since it was trusted: " + strings.Join(state.Changes, ", ") + ". Trust would cover:",
		trust.Trusted:   "is trusted, with:",
	}
	fmt.Fprintf(o.Out, "%s %s\n", dir, text[state.Status])
	printCovered(o.Out, state, loaded)
	servers, _, err := config.ProjectServers(dir)
	for _, name := range cmdutil.SortedKeys(servers) {
		fmt.Fprintf(o.Out, "  MCP server %s: %s\n", name, display.VisibleLine(servers[name].Describe(), 500))
		printCommands(o.Out, servers[name])
	}
	return err
}

// revokeTrust stops trusting a directory and its MCP servers.
func (o *trustOptions) revokeTrust(ctx context.Context, store *trust.Store, dir string) error {
	found, err := store.Revoke(ctx, dir)
	if err != nil {
		return err
	}
	servers, err := store.RevokeServer(ctx, dir, "")
	if err != nil {
		return err
	}
	text := "%s was not trusted.\n"
	if found || servers {
		text = "Revoked trust in %s.\n"
	}
	fmt.Fprintf(o.Out, text, dir)
	return nil
}

func (o *trustOptions) listTrusted(store *trust.Store) error {
	list, err := store.List()
	if err != nil {
		return err
	}
	infos := []info{}
	for _, d := range list {
		infos = append(infos, infoOf(d))
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, infos)
	}
	t := cmdutil.NewTable(o.Out, "DIRECTORY", "STATUS", "SINCE")
	for _, i := range infos {
		t.Row(display.VisibleLine(i.Directory, 1000), i.Status, i.Since.Local().Format(time.DateTime))
	}
	return t.Flush()
}
