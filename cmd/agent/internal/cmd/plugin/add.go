package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

// approveOptions are those of add and update.
type approveOptions struct {
	options
	yes bool
}

func (o *approveOptions) register(cmd *cobra.Command) {
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for approval")
}

type addOptions struct {
	approveOptions
	link bool
}

func newAddCmd(s *cmdutil.IO) *cobra.Command {
	o := &addOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:   "add SOURCE",
		Short: "Add a plugin after showing its permissions",
		Long: "Assemble a plugin's files, show what its process may do, and ask for approval. Nothing of it runs before.\n" +
			"SOURCE is a folder with a plugin.json, an archive of one (zip, tar, tar.gz, tar.bz2), or the path of a Go package.\n" +
			"Go packages, and folders that are Go modules, are built. The files are copied, and compared with their checksums\n" +
			"before each start; with --link the folder itself is used, and not verified.",
		Example: "  agent plugins add ./weather\n" +
			"  agent plugins add weather-1.2.0.tar.gz\n" +
			"  agent plugins add example.org/weather@v1.2.0\n" +
			"  agent plugins add --link ./weather",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&o.link, "link", false, "use the folder in place, while you develop the plugin")
	return cmd
}

func (o *addOptions) run(ctx context.Context, source string) error {
	if path := filepath.Join(o.Cwd, source); !filepath.IsAbs(source) {
		if _, err := os.Stat(path); err == nil {
			source = path
		}
	}
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	if o.link {
		return o.addLink(ctx, h, source)
	}
	return o.add(ctx, h, source)
}

type updateOptions struct{ approveOptions }

func newUpdateCmd(s *cmdutil.IO) *cobra.Command {
	o := &updateOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Update a plugin after showing the changes",
		Long:  "Add a plugin again from its source, after showing what changed.",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.register(cmd)
	return cmd
}

func (o *updateOptions) run(ctx context.Context, name string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	source, err := h.Store().Source(ctx, name)
	if err != nil {
		return err
	}
	return o.add(ctx, h, source)
}

// add shows a plugin and installs it if the user approves.
func (o *approveOptions) add(ctx context.Context, h *host, source string) (err error) {
	c, err := h.Store().Prepare(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if c.Unchanged() {
		fmt.Fprintf(o.Out, "%s %s is already installed and unchanged.\n", c.Spec.Name, c.Spec.Version)
		return nil
	}
	o.show(c)
	if ok, err := o.approve(ctx, "Add "+c.Spec.Name+"?"); err != nil || !ok {
		return err
	}
	desc, diff, err := c.Install(ctx, h.Host)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Added %s %s, with %s.\n", desc.Name, desc.Version, display.Plural(len(desc.Tools), "tool"))
	for _, t := range desc.Tools {
		first, _, _ := strings.Cut(t.Description, "\n")
		fmt.Fprintf(o.Out, "  %s  %s\n", t.Name, display.VisibleLine(first, 80))
	}
	for _, d := range diff {
		fmt.Fprintf(o.Out, "  changed: %s\n", display.VisibleLine(d, 120))
	}
	if c.Before == nil {
		fmt.Fprintln(o.Out, available)
	}
	return nil
}

// available says which sessions have a new plugin.
const available = "Available in new sessions; in an open one, run /clear or /resume."

func (o *addOptions) addLink(ctx context.Context, h *host, dir string) error {
	spec, err := plugins.ReadSpec(dir)
	if err != nil {
		return err
	}
	o.showSpec(spec, dir, spec.Visible(dir, cmdutil.UserHome()))
	fmt.Fprintln(o.Out, "A linked plugin runs directly from its folder and is not verified.")
	if ok, err := o.approve(ctx, "Link "+spec.Name+"?"); err != nil || !ok {
		return err
	}
	if spec, err = h.Store().Link(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Linked %s.\n%s\n", spec.Name, available)
	return nil
}

// approve asks the user, unless --yes was given.
func (o *approveOptions) approve(ctx context.Context, question string) (bool, error) {
	yes, err := o.Confirm(ctx, question, o.yes)
	if err == nil && !yes {
		fmt.Fprintln(o.Err, "Nothing was added.")
	}
	return yes, err
}

// maxShownChanges limits how many changed files are shown.
const maxShownChanges = 20

// show prints what the user has to approve.
func (o *approveOptions) show(c *plugins.Candidate) {
	o.showSpec(c.Spec, c.From(), c.Visible(cmdutil.UserHome()))
	fmt.Fprintf(o.Out, "  files    %d, %d bytes, SHA-256 %s\n", len(c.Tree.Files), c.Tree.Bytes(), c.Tree.Hash)
	if c.Before == nil {
		return
	}
	fmt.Fprintf(o.Out, "Replaces version %s. Changes:\n", display.VisibleLine(cmp.Or(c.Before.Version, "(unknown)"), 40))
	for _, p := range c.NewPermissions() {
		fmt.Fprintf(o.Out, "  NEW permission: %s\n", display.VisibleLine(p, 200))
	}
	for i, change := range c.Changes {
		if i == maxShownChanges {
			fmt.Fprintf(o.Out, "  … and %d more files\n", len(c.Changes)-i)
			break
		}
		fmt.Fprintf(o.Out, "  %s %s\n", change.Kind, display.VisibleLine(change.Path, 200))
	}
}

func (o *approveOptions) showSpec(spec plugins.Spec, from string, visible []string) {
	fmt.Fprintf(o.Out, "Plugin %s %s from %s\n", spec.Name, display.VisibleLine(spec.Version, 40), display.VisibleLine(from, 300))
	if spec.Summary != "" {
		fmt.Fprintf(o.Out, "  %s\n", display.VisibleLine(spec.Summary, 300))
	}
	fmt.Fprintln(o.Out, "It is a program that runs on this machine. Permissions of its process:")
	for _, line := range spec.Manifest.Lines() {
		fmt.Fprintf(o.Out, "  - %s\n", display.VisibleLine(line, 300))
	}
	if len(visible) > 0 {
		fmt.Fprintf(o.Out, "  - read the installation of its program: %s\n", display.VisibleLine(strings.Join(visible, ", "), 300))
	}
	if spec.Context != nil {
		fmt.Fprintf(o.Out, "  - read your prompts, and add up to %d tokens to each\n", spec.Context.MaxTokens)
	}
	if spec.Dynamic {
		fmt.Fprintln(o.Out, "  - change its tools at any time")
	}
	for _, system := range cmdutil.SortedKeys(spec.Command) {
		fmt.Fprintf(o.Out, "  command  %s: %s\n", display.VisibleLine(system, 30), display.VisibleLine(strings.Join(spec.Command[system], " "), 200))
	}
}
