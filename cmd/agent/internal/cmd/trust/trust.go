package trust

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	var revoke, list, show, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a directory's own settings, or take that back",
		Long: "trust says that you have read what a directory wants to set (.agent/settings.json) and agree. Of a directory\n" +
			"that is not trusted only the ask and deny rules hold. In one that is, the agent may write files, and run commands\n" +
			"in a sandbox, where there is one, unless you set another permission mode. Trust is in the content: when it\n" +
			"changes, it is asked for again. --show says what would be trusted and changes nothing.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := s.AgentHome()
			if err != nil {
				return err
			}
			dir := ""
			if len(args) == 1 {
				dir = args[0]
			}
			switch dir = s.WorkDir(dir); {
			case list && (revoke || show || len(args) > 0):
				return cmdutil.Usagef("--list takes neither a DIR nor --revoke or --show")
			case revoke && show:
				return cmdutil.Usagef("--revoke and --show exclude each other")
			case asJSON && !list && !show:
				return cmdutil.Usagef("--json goes with --list and --show")
			case show:
				return showTrust(s, trust.Open(home), dir, asJSON)
			case list:
				return listTrusted(s.Out, trust.Open(home), asJSON)
			case revoke:
				return revokeTrust(cmd.Context(), s.Out, trust.Open(home), dir)
			}
			return trustDir(cmd.Context(), s, trust.Open(home), dir)
		},
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "do not trust the directory any more")
	cmd.Flags().BoolVar(&list, "list", false, "list the directories that were trusted")
	cmd.Flags().BoolVar(&show, "show", false, "show what would be trusted, and what has changed since it was")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list and --show: print JSON")
	return cmd
}

// trustDir shows what a directory's settings say and trusts them. Settings that
// are broken are not trusted: every command would fail.
func trustDir(ctx context.Context, s *cmdutil.IO, store *trust.Store, dir string) error {
	loaded, err := wishes(s, dir)
	if err != nil {
		return err
	}
	servers, err := trustServers(ctx, s, store, dir)
	if err != nil {
		return err
	}
	state, err := store.Trust(ctx, dir, time.Now())
	if err != nil {
		return err
	}
	if len(state.Files) == 0 && servers {
		return nil
	}
	if len(state.Files) == 0 {
		_, err := fmt.Fprintf(s.Out, "%s is trusted. It holds nothing yet that needs trust; what comes to it will be asked for.\n", dir)
		return err
	}
	fmt.Fprintf(s.Out, "%s is trusted, with what it holds now:\n", dir)
	return printWishes(s.Out, state, loaded)
}

// wishes reads what a directory's own settings say, as if it were trusted.
func wishes(s *cmdutil.IO, dir string) (*config.Loaded, error) {
	loaded, err := config.Load(config.LoadOptions{Env: s.Env, Managed: s.ManagedSettings, Home: cmdutil.UserHome(), Cwd: dir, Trusted: true})
	if err != nil {
		return nil, err
	}
	return loaded, setup.CheckRules(s, loaded, dir)
}

// printWishes lists what trust covers: the files, with the beginnings of their
// hashes, and what the settings among them say.
func printWishes(out io.Writer, state trust.State, loaded *config.Loaded) error {
	for _, name := range state.Files {
		fmt.Fprintf(out, "  %.12s  %s\n", state.Sums[name], name)
	}
	for _, v := range loaded.Values() {
		if v.Source.Layer == config.LayerProject && !setup.IsRuleList(v.Key) {
			fmt.Fprintf(out, "    %s = %s\n", v.Key, display.VisibleLine(cmdutil.ValueText(v.Value), 200))
		}
	}
	for _, r := range loaded.Rules {
		if r.Source.Layer == config.LayerProject {
			fmt.Fprintf(out, "    %s %s\n", r.Verdict, display.VisibleLine(r.Text, 200))
		}
	}
	return nil
}

// trustView is how things stand with a directory.
type trustView struct {
	trustInfo
	Files    map[string]string `json:"files"` // SHA-256, hex
	Settings map[string]any    `json:"settings"`
	Rules    []string          `json:"rules"`
}

// showTrust says what would be trusted.
func showTrust(s *cmdutil.IO, store *trust.Store, dir string, asJSON bool) error {
	state, err := store.Check(dir)
	if err != nil {
		return err
	}
	loaded, err := wishes(s, dir)
	if err != nil {
		return err
	}
	if asJSON {
		v := trustView{trustInfo: infoOfTrust(state), Files: state.Sums, Settings: map[string]any{}, Rules: []string{}}
		for _, value := range loaded.Values() {
			if value.Source.Layer == config.LayerProject && !setup.IsRuleList(value.Key) {
				v.Settings[value.Key] = value.Value
			}
		}
		for _, r := range loaded.Rules {
			if r.Source.Layer == config.LayerProject {
				v.Rules = append(v.Rules, r.Verdict+" "+r.Text)
			}
		}
		return cmdutil.WriteJSON(s.Out, v)
	}
	text := map[trust.Status]string{
		trust.Nothing:   "holds nothing that needs trust.",
		trust.Untrusted: "is not trusted. Trust would cover:",
		trust.Changed:   "was trusted, but has changed since: " + strings.Join(state.Changes, ", ") + ". Trust would cover:",
		trust.Trusted:   "is trusted, with:",
	}
	fmt.Fprintf(s.Out, "%s %s\n", dir, text[state.Status])
	if err := printWishes(s.Out, state, loaded); err != nil {
		return err
	}
	servers, _, err := config.ProjectServers(dir)
	for _, name := range cmdutil.SortedKeys(servers) {
		fmt.Fprintf(s.Out, "  MCP server %s: %s\n", name, display.VisibleLine(servers[name].Describe(), 500))
	}
	return err
}

// trustServers trusts the MCP servers that a directory names as they are now, and
// reports whether there are some. What is wrong in the file is said and not
// trusted.
func trustServers(ctx context.Context, s *cmdutil.IO, store *trust.Store, dir string) (found bool, err error) {
	servers, _, err := config.ProjectServers(dir)
	if err != nil {
		fmt.Fprintf(s.Err, "agent: %v\n", err)
	}
	for _, name := range cmdutil.SortedKeys(servers) {
		if err := store.TrustServer(ctx, dir, name, servers[name].Hash()); err != nil {
			return false, err
		}
		fmt.Fprintf(s.Out, "%s is trusted to use the MCP server %s: %s\n", dir, name, display.VisibleLine(servers[name].Describe(), 500))
	}
	return len(servers) > 0, nil
}

func revokeTrust(ctx context.Context, out io.Writer, store *trust.Store, dir string) error {
	found, err := store.Revoke(ctx, dir)
	if err != nil {
		return err
	}
	servers, err := store.RevokeServer(ctx, dir, "")
	if err != nil {
		return err
	}
	found = found || servers
	text := "%s is not trusted any more.\n"
	if !found {
		text = "%s was not trusted.\n"
	}
	_, err = fmt.Fprintf(out, text, dir)
	return err
}

// trustInfo is a directory as lists show it.
type trustInfo struct {
	Directory string    `json:"directory"`
	Status    string    `json:"status"`
	Since     time.Time `json:"since"`
	Changes   []string  `json:"changes"`
}

func infoOfTrust(d trust.State) trustInfo {
	return trustInfo{d.Dir, string(d.Status), d.Since, append([]string{}, d.Changes...)}
}

func listTrusted(out io.Writer, store *trust.Store, asJSON bool) error {
	list, err := store.List()
	if err != nil {
		return err
	}
	infos := []trustInfo{}
	for _, d := range list {
		infos = append(infos, infoOfTrust(d))
	}
	if asJSON {
		return cmdutil.WriteJSON(out, infos)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DIRECTORY\tSTATUS\tSINCE")
	for _, i := range infos {
		fmt.Fprintf(w, "%s\t%s\t%s\n", display.VisibleLine(i.Directory, 1000), i.Status, i.Since.Local().Format(time.DateTime))
	}
	return w.Flush()
}
