package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	cmd := cmdutil.Group("plugins", "Add, list and look after plugins: tools from programs of their own",
		newPluginsList(s), newPluginsAdd(s), newPluginsUpdate(s), newPluginsRemove(s), newPluginsEnable(s, true), newPluginsEnable(s, false),
		newPluginsVerify(s), newPluginsLogs(s), newPluginsNew(s), newPluginsSeal(s))
	cmd.Example = "  agent plugins new weather --lang go\n  agent plugins add ./weather\n  agent plugins list"
	return cmd
}

// withPlugins opens the plugins' host, the disabled plugins included.
func withPlugins(ctx context.Context, s *cmdutil.IO, f func(*setup.Setup, *plugins.Host) error) error {
	sh := &setup.Flags{}
	set, err := sh.Load(s)
	if err != nil {
		return err
	}
	if set.Home == "" {
		return errors.New("there is no home directory that plugins could be in: set AGENT_HOME")
	}
	o := agent.Options{Dir: set.Dir, Version: cmdutil.Version(), Plugins: set.PluginOptions(), NoBuiltins: true, Subreaper: true}
	o.Plugins.Disabled = nil
	a, err := agent.Open(ctx, o)
	if err != nil {
		return err
	}
	defer a.Close()
	return f(set, a.Plugins())
}

func newPluginsList(s *cmdutil.IO) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "list", Short: "List the plugins, what they may do and what is wrong with them", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPlugins(cmd.Context(), s, func(set *setup.Setup, h *plugins.Host) error {
				infos := []setup.PluginInfo{}
				for _, p := range h.Plugins() {
					infos = append(infos, setup.PluginInfoOf(set, p))
				}
				for _, b := range h.Broken() {
					infos = append(infos, setup.PluginInfo{Name: b.Plugin, State: "broken", Problem: b.Err.Error(), Tools: []string{}})
				}
				if asJSON {
					return cmdutil.WriteJSON(s.Out, infos)
				}
				return printPlugins(s, infos)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printPlugins(s *cmdutil.IO, infos []setup.PluginInfo) error {
	if len(infos) == 0 {
		fmt.Fprintln(s.Err, "There are no plugins; 'agent plugins add' adds one, 'agent plugins new' begins one.")
		return nil
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tSCOPE\tSTATE\tTOOLS\tMAY")
	for _, i := range infos {
		may := i.Problem
		if i.Manifest != nil {
			may = strings.Join(i.Manifest.Lines(), "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", display.VisibleLine(i.Name, 40), display.VisibleLine(i.Version, 20), i.Scope, i.State, display.VisibleLine(strings.Join(i.Tools, ","), 40), display.VisibleLine(may, 300))
	}
	return w.Flush()
}

// pluginAddOptions are those of add and update.
type pluginAddOptions struct {
	*cmdutil.IO
	yes, link bool
}

func newPluginsAdd(s *cmdutil.IO) *cobra.Command {
	o := &pluginAddOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "add SOURCE",
		Short: "Add a plugin from a folder, an archive or a Go package, after showing what it may do",
		Long: "add puts a plugin's files together, shows what its process may do, and asks. Until you agree nothing of it runs.\n" +
			"SOURCE is a folder with a plugin.json, an archive of one (zip, tar, tar.gz, tar.bz2), or the path of a Go package,\n" +
			"which is built here. A folder that is a Go module is built, too. What is installed is a copy, whose checksums are\n" +
			"kept and compared before each start; --link uses the folder itself, with whatever you build there.",
		Example: "  agent plugins add ./weather\n  agent plugins add weather-1.2.0.tar.gz\n  agent plugins add example.org/weather@v1.2.0\n  agent plugins add --link ./weather",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			source := args[0]
			if at := filepath.Join(s.Cwd, source); !filepath.IsAbs(source) {
				if _, err := os.Stat(at); err == nil {
					source = at
				}
			}
			return withPlugins(cmd.Context(), s, func(_ *setup.Setup, h *plugins.Host) error {
				if o.link {
					return o.addLink(cmd.Context(), h, source)
				}
				return o.add(cmd.Context(), h, source)
			})
		},
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "agree without being asked")
	cmd.Flags().BoolVar(&o.link, "link", false, "use the folder where it is: for a plugin that you work on")
	return cmd
}

func newPluginsUpdate(s *cmdutil.IO) *cobra.Command {
	o := &pluginAddOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Add a plugin again from where it came from, after showing what is different",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlugins(cmd.Context(), s, func(_ *setup.Setup, h *plugins.Host) error {
				source, err := h.Store().Source(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return o.add(cmd.Context(), h, source)
			})
		},
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "agree without being asked")
	return cmd
}

// add shows a plugin and adds it if the person agrees.
func (o *pluginAddOptions) add(ctx context.Context, h *plugins.Host, source string) (err error) {
	c, err := h.Store().Prepare(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if c.Unchanged() {
		fmt.Fprintf(o.Out, "The plugin %s %s is installed already, and nothing is different.\n", c.Spec.Name, c.Spec.Version)
		return nil
	}
	o.show(c)
	if ok, err := o.confirm(ctx, "Add it?"); err != nil || !ok {
		return err
	}
	said, diff, err := c.Install(ctx, h)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Added %s %s, with %s.\n", said.Name, said.Version, cmdutil.Plural(len(said.Tools), "tool"))
	for _, t := range said.Tools {
		first, _, _ := strings.Cut(t.Description, "\n")
		fmt.Fprintf(o.Out, "  %s  %s\n", t.Name, display.VisibleLine(first, 80))
	}
	for _, d := range diff {
		fmt.Fprintf(o.Out, "  changed: %s\n", display.VisibleLine(d, 120))
	}
	if c.Before == nil {
		fmt.Fprintln(o.Out, nextSession)
	}
	return nil
}

// nextSession says from when on there is a plugin that there was not.
const nextSession = "Sessions that begin from now on have it; one that is open does after /clear or /resume."

// show is what a person agrees to.
func (o *pluginAddOptions) show(c *plugins.Candidate) {
	o.showSpec(c.Spec, c.From())
	fmt.Fprintf(o.Out, "  files    %d, %d bytes, SHA-256 %s\n", len(c.Tree.Files), c.Tree.Bytes(), c.Tree.Hash)
	if c.Before == nil {
		return
	}
	fmt.Fprintf(o.Out, "It replaces version %s. What is different:\n", display.VisibleLine(cmp.Or(c.Before.Version, "(unknown)"), 40))
	for _, more := range c.NewPermissions() {
		fmt.Fprintf(o.Out, "  NEW: it may %s\n", display.VisibleLine(more, 200))
	}
	for i, change := range c.Changes {
		if i == 20 {
			fmt.Fprintf(o.Out, "  … and %d more files\n", len(c.Changes)-i)
			break
		}
		fmt.Fprintf(o.Out, "  %s %s\n", change.Kind, display.VisibleLine(change.Path, 200))
	}
}

func (o *pluginAddOptions) showSpec(spec plugins.Spec, from string) {
	fmt.Fprintf(o.Out, "Plugin %s %s from %s\n", spec.Name, display.VisibleLine(spec.Version, 40), display.VisibleLine(from, 300))
	if spec.Summary != "" {
		fmt.Fprintf(o.Out, "  %s\n", display.VisibleLine(spec.Summary, 300))
	}
	fmt.Fprintln(o.Out, "It is a program that runs on this machine. Its process may:")
	for _, line := range spec.Manifest.Lines() {
		fmt.Fprintf(o.Out, "  - %s\n", display.VisibleLine(line, 300))
	}
	if spec.Context != nil {
		fmt.Fprintf(o.Out, "  - read what you say to the agent, and add up to %d tokens to it\n", spec.Context.MaxTokens)
	}
	if spec.Dynamic {
		fmt.Fprintln(o.Out, "  - change its tools at any time")
	}
	for system, argv := range spec.Command {
		fmt.Fprintf(o.Out, "  command  %s: %s\n", display.VisibleLine(system, 30), display.VisibleLine(strings.Join(argv, " "), 200))
	}
}

// confirm asks the user, unless --yes was given.
func (o *pluginAddOptions) confirm(ctx context.Context, question string) (bool, error) {
	yes, err := o.Confirm(ctx, question, o.yes)
	if err == nil && !yes {
		fmt.Fprintln(o.Err, "Nothing was added.")
	}
	return yes, err
}

func (o *pluginAddOptions) addLink(ctx context.Context, h *plugins.Host, dir string) error {
	spec, err := plugins.ReadSpec(dir)
	if err != nil {
		return err
	}
	o.showSpec(spec, dir)
	fmt.Fprintln(o.Out, "It is used where it lies: whatever its command is there runs, unverified.")
	if ok, err := o.confirm(ctx, "Link it?"); err != nil || !ok {
		return err
	}
	if spec, err = h.Store().Link(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Linked %s.\n%s\n", spec.Name, nextSession)
	return nil
}

func newPluginsRemove(s *cmdutil.IO) *cobra.Command {
	discard := false
	cmd := &cobra.Command{
		Use: "remove NAME…", Aliases: []string{"rm"}, Short: "Remove plugins that were added", Args: cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withPlugins(cmd.Context(), s, func(_ *setup.Setup, h *plugins.Host) error {
				var errs []error
				for _, name := range names {
					if err := h.Store().Remove(cmd.Context(), name, discard); err != nil {
						errs = append(errs, err)
						continue
					}
					fmt.Fprintf(s.Out, "Removed %s.\n", name)
				}
				return errors.Join(errs...)
			})
		},
	}
	cmd.Flags().BoolVar(&discard, "discard-edits", false, "also if the installed files were edited")
	return cmd
}

func newPluginsEnable(s *cmdutil.IO, on bool) *cobra.Command {
	use, short, done := "enable NAME…", "Use plugins again that were disabled", "enabled"
	if !on {
		use, short, done = "disable NAME…", "Do not use plugins, but keep them", "disabled"
	}
	return &cobra.Command{
		Use: use, Short: short, Args: cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withPlugins(cmd.Context(), s, func(set *setup.Setup, h *plugins.Host) error {
				list := slices.Clone(set.Settings.Plugins.Disabled)
				for _, name := range names {
					if !knowsPlugin(h, name) {
						return cmdutil.Usagef("there is no plugin %q; 'agent plugins list' shows them", name)
					}
					list = slices.DeleteFunc(list, func(n string) bool { return n == name })
					if !on {
						list = append(list, name)
					}
				}
				value, err := json.Marshal(list)
				if err != nil {
					return err
				}
				if err := config.UserFile(set.Home).Set(cmd.Context(), "plugins.disabled", string(value)); err != nil {
					return err
				}
				for _, name := range names {
					fmt.Fprintf(s.Out, "The plugin %s is %s.\n", name, done)
				}
				return nil
			})
		},
	}
}

func knowsPlugin(h *plugins.Host, name string) bool {
	return slices.ContainsFunc(h.Plugins(), func(p *plugins.Plugin) bool { return p.Name() == name }) ||
		slices.ContainsFunc(h.Broken(), func(e *plugins.Error) bool { return e.Plugin == name })
}

func newPluginsVerify(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME…]",
		Short: "Compare plugins' files with what you agreed to",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			return withPlugins(cmd.Context(), s, func(_ *setup.Setup, h *plugins.Host) error {
				var failed []error
				for _, name := range names {
					if !knowsPlugin(h, name) {
						failed = append(failed, fmt.Errorf("there is no plugin %q", name))
					}
				}
				wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
				for _, p := range h.Plugins() {
					if !wanted(p.Name()) {
						continue
					}
					if err := p.Verify(cmd.Context()); err != nil {
						failed = append(failed, err)
						continue
					}
					note := "is as you agreed to it"
					if p.Scope() == plugins.Linked {
						note = "is linked, so that nothing is compared"
					}
					fmt.Fprintf(s.Out, "%s %s\n", p.Name(), note)
				}
				for _, b := range h.Broken() {
					if wanted(b.Plugin) {
						failed = append(failed, b)
					}
				}
				return errors.Join(failed...)
			})
		},
	}
}

func newPluginsLogs(s *cmdutil.IO) *cobra.Command {
	lines := 200
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Print the end of what a plugin printed and logged", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlugins(cmd.Context(), s, func(set *setup.Setup, h *plugins.Host) error {
				if !knowsPlugin(h, args[0]) {
					return cmdutil.Usagef("there is no plugin %q; 'agent plugins list' shows them", args[0])
				}
				var log strings.Builder
				if err := plugins.ReadLog(&log, plugins.LogDir(set.Home), args[0], 1<<20); err != nil {
					return err
				}
				all := strings.SplitAfter(log.String(), "\n")
				if n := len(all) - 1 - lines; n > 0 {
					all = all[n:]
				}
				_, err := io.WriteString(s.Out, strings.Join(all, ""))
				return err
			})
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", lines, "print the last `N` lines")
	return cmd
}

func newPluginsSeal(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "seal DIR",
		Short: "Write the checksums of a plugin's files into its plugin.json",
		Long: "seal is for plugins that come with a project, in .agent/plugins/NAME: who trusts the project's plugin.json then\n" +
			"trusts these files and no others. Seal it again after each change; each person is asked to trust it anew.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(s.Cwd, dir)
			}
			n, err := plugins.Seal(cmd.Context(), dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s names the checksums of %s.\n", filepath.Join(args[0], plugins.SpecFile), cmdutil.Plural(n, "file"))
			return nil
		},
	}
}
