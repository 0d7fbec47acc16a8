package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

func newTrust(s *streams) *cobra.Command {
	var revoke, list, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a directory's own settings, or take that back",
		Long: "trust says that you have read what a directory wants to set (.agent/settings.json) and agree. Of a directory\n" +
			"that is not trusted only the ask and deny rules hold. Trust is in the content: when it changes, it is asked for again.",
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := s.agentHome()
			if err != nil {
				return err
			}
			dir := ""
			if len(args) == 1 {
				dir = args[0]
			}
			switch dir = s.place(dir); {
			case list && (revoke || len(args) > 0):
				return &usageError{errors.New("--list takes neither a DIR nor --revoke")}
			case asJSON && !list:
				return &usageError{errors.New("--json goes with --list")}
			case list:
				return listTrusted(s.out, trust.Open(home), asJSON)
			case revoke:
				return revokeTrust(cmd.Context(), s.out, trust.Open(home), dir)
			}
			return trustDir(cmd.Context(), s, trust.Open(home), dir)
		},
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "do not trust the directory any more")
	cmd.Flags().BoolVar(&list, "list", false, "list the directories that were trusted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// trustDir shows what a directory's settings say and trusts them. Settings that
// are broken are not trusted: every command would fail.
func trustDir(ctx context.Context, s *streams, store *trust.Store, dir string) error {
	before, err := store.Check(dir)
	if err != nil {
		return err
	}
	if before.Status == trust.Nothing {
		_, err := fmt.Fprintf(s.out, "%s holds nothing that needs trust.\n", dir)
		return err
	}
	loaded, err := config.Load(config.LoadOptions{Env: s.env, Managed: s.managed, Home: userHome(), Cwd: dir, Trusted: true})
	if err != nil {
		return err
	}
	set := &settings{Loaded: loaded, userHome: userHome(), dir: dir}
	if _, err := set.policy(); err != nil {
		return err
	}
	state, err := store.Trust(ctx, dir, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s is trusted, with what it holds now:\n", dir)
	for _, name := range state.Files {
		fmt.Fprintf(s.out, "  %s\n", name)
	}
	for _, v := range loaded.Values() {
		if v.Source.Layer == config.LayerProject && !isRuleList(v.Key) {
			fmt.Fprintf(s.out, "    %s = %s\n", v.Key, oneLine(valueText(v.Value), 200))
		}
	}
	for _, r := range loaded.Rules {
		if r.Source.Layer == config.LayerProject {
			fmt.Fprintf(s.out, "    %s %s\n", r.Verdict, oneLine(r.Text, 200))
		}
	}
	return nil
}

func isRuleList(key string) bool {
	return key == "permissions.allow" || key == "permissions.ask" || key == "permissions.deny"
}

func revokeTrust(ctx context.Context, out io.Writer, store *trust.Store, dir string) error {
	found, err := store.Revoke(ctx, dir)
	if err != nil {
		return err
	}
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

func listTrusted(out io.Writer, store *trust.Store, asJSON bool) error {
	list, err := store.List()
	if err != nil {
		return err
	}
	infos := []trustInfo{}
	for _, d := range list {
		infos = append(infos, trustInfo{d.Dir, string(d.Status), d.Since, append([]string{}, d.Changes...)})
	}
	if asJSON {
		return printJSON(out, infos)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DIRECTORY\tSTATUS\tSINCE")
	for _, i := range infos {
		fmt.Fprintf(w, "%s\t%s\t%s\n", oneLine(i.Directory, 1000), i.Status, i.Since.Local().Format(time.DateTime))
	}
	return w.Flush()
}

// trusted says whether a directory's settings count and, if not, what to do
// about it. What cannot be found out is not trusted.
func trusted(home, dir string) (bool, string) {
	if home == "" {
		return false, ""
	}
	state, err := trust.Open(home).Check(dir)
	if err != nil {
		return false, err.Error()
	}
	return state.Status == trust.Trusted, state.Advice()
}
