package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/bundles"
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
		Long: "Assemble a plugin's files, show what it holds and may do, and ask for approval. Nothing of it runs before.\n" +
			"SOURCE is a folder, an archive (zip, tar, tar.gz, tar.bz2) or its URL, a repository (OWNER/REPO[/FOLDER][@REF] on\n" +
			"GitHub, or URL[@REF][#FOLDER]), npm:NAME[@VERSION], NAME@MARKETPLACE, or the path of a Go package. Plugins for Claude Code, Codex and\n" +
			"Cursor, Gemini CLI extensions and Agent Plugins work as they are, see docs/bundles.md.\n" +
			"Go packages, and folders that are Go modules, are built. The files are copied, and compared with their checksums\n" +
			"before they are used; with --link the folder itself is used, and not verified: you approve again what it runs, reads\n" +
			"and reaches when that grows.",
		Example: "  agent plugins add ./weather\n" +
			"  agent plugins add owner/plugin@v1.2.0\n" +
			"  agent plugins add npm:@owner/plugin\n" +
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
		fmt.Fprintf(o.Out, "%s is already installed and unchanged.\n", named(c.Spec))
		return nil
	}
	if len(setup.BundleInfo(c.Bundle)) == 0 && !c.Bundle.Program {
		showPieces(o.Err, c.Bundle, nil)
		return fmt.Errorf("nothing in the plugin %s can be used", c.Spec.Name)
	}
	o.show(c)
	if o.asks(c) {
		if ok, err := o.approve(ctx, "Add "+c.Spec.Name+"?"); err != nil || !ok {
			return err
		}
	}
	desc, diff, err := c.Install(ctx, h.Host)
	if err != nil {
		return err
	}
	with := setup.BundleInfo(c.Bundle)
	if c.Bundle.Program {
		with = append([]string{display.Plural(len(desc.GetTools()), "tool")}, with...)
	}
	fmt.Fprintf(o.Out, "Added %s, with %s.\n", named(c.Spec), strings.Join(with, ", "))
	for _, t := range desc.GetTools() {
		first, _, _ := strings.Cut(t.Description, "\n")
		fmt.Fprintf(o.Out, "  %s  %s\n", t.Name, display.VisibleLine(first, 80))
	}
	for _, d := range diff {
		fmt.Fprintf(o.Out, "  changed: %s\n", display.VisibleLine(d, 120))
	}
	if c.Before == nil {
		fmt.Fprintln(o.Out, available)
	}
	if slices.ContainsFunc(c.Bundle.Settings, func(s bundles.Setting) bool { return s.Required && s.Default == "" }) {
		fmt.Fprintf(o.Out, "It needs settings: run 'agent plugins config %s'.\n", c.Spec.Name)
	}
	return nil
}

// named returns the name and version of a plugin.
func named(s plugins.Spec) string {
	return strings.TrimSpace(s.Name + " " + display.VisibleLine(s.Version, 40))
}

// asks reports whether the user has to approve: a new plugin, or an update that has a
// program, or runs or reaches what the installed one does not.
func (o *approveOptions) asks(c *plugins.Candidate) bool {
	if c.Before == nil || c.Bundle.Program || c.Former == nil || newPieces(c.Bundle, c.Former) {
		return true
	}
	code := slices.ContainsFunc(c.Bundle.Servers, func(s bundles.Server) bool { return s.Server.Command != "" }) || len(c.Bundle.Hooks) > 0 ||
		slices.ContainsFunc(c.Bundle.Skills, func(s bundles.Skill) bool { return s.Scripts || len(s.Hooks) > 0 })
	if !code {
		fmt.Fprintln(o.Out, "Only texts changed; it runs and reaches nothing new.")
	}
	return code
}

// available says which sessions have a new plugin.
const available = "Available in new sessions; in an open one, run /clear or /resume."

func (o *approveOptions) addLink(ctx context.Context, h *host, dir string) error {
	p, err := h.Store().Look(ctx, dir)
	if err != nil {
		return err
	}
	if p.Bundle.Program {
		o.showSpec(p.Spec, dir, p.Spec.Visible(dir, cmdutil.UserHome()))
	} else {
		o.showHead(p.Spec, dir)
	}
	showPieces(o.Out, p.Bundle, nil)
	for _, more := range p.New {
		fmt.Fprintf(o.Out, "NEW since you linked it: %s\n", display.VisibleLine(more, 200))
	}
	fmt.Fprintln(o.Out, "A linked plugin is used directly from its folder, and its files are not verified.")
	if ok, err := o.approve(ctx, "Link "+p.Spec.Name+"?"); err != nil || !ok {
		return err
	}
	if err := h.Store().Link(ctx, p); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Linked %s.\n%s\n", p.Spec.Name, available)
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
	if c.Bundle.Program {
		o.showSpec(c.Spec, c.From(), c.Visible(cmdutil.UserHome()))
	} else {
		o.showHead(c.Spec, c.From())
	}
	showPieces(o.Out, c.Bundle, c.Former)
	if c.Source.Commit != "" {
		fmt.Fprintf(o.Out, "  commit    %s\n", c.Source.Commit)
	}
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

func (o *approveOptions) showHead(spec plugins.Spec, from string) {
	fmt.Fprintf(o.Out, "Plugin %s from %s\n", named(spec), display.VisibleLine(from, 300))
	if spec.Summary != "" {
		fmt.Fprintf(o.Out, "  %s\n", display.VisibleLine(spec.Summary, 300))
	}
}

func (o *approveOptions) showSpec(spec plugins.Spec, from string, visible []string) {
	o.showHead(spec, from)
	showProgram(o.Out, spec, visible)
}

// showProgram prints what the program of a plugin may do.
func showProgram(out io.Writer, spec plugins.Spec, visible []string) {
	fmt.Fprintln(out, "It is a program that runs on this machine. Permissions of its process:")
	for _, line := range spec.Manifest.Lines() {
		fmt.Fprintf(out, "  - %s\n", display.VisibleLine(line, 300))
	}
	if len(visible) > 0 {
		fmt.Fprintf(out, "  - read the installation of its program: %s\n", display.VisibleLine(strings.Join(visible, ", "), 300))
	}
	if spec.Context != nil {
		fmt.Fprintf(out, "  - read your prompts, and add up to %d tokens to each\n", spec.Context.MaxTokens)
	}
	if spec.Dynamic {
		fmt.Fprintln(out, "  - change its tools at any time")
	}
	for _, system := range cmdutil.SortedKeys(spec.Command) {
		fmt.Fprintf(out, "  command  %s: %s\n", display.VisibleLine(system, 30), display.VisibleLine(strings.Join(spec.Command[system], " "), 200))
	}
}
