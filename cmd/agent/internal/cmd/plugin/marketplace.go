package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

func newMarketplaceCmd(s *cmdutil.IO) *cobra.Command {
	cmd := cmdutil.Group("marketplace", "Manage lists of plugins",
		newMarketplaceListCmd(s),
		newMarketplaceChangeCmd(s, "add SOURCE", "Add the list of plugins in a folder or repository", 1, (*host).addMarketplace),
		newMarketplaceChangeCmd(s, "update [NAME…]", "Read marketplaces from their source again", 0, (*host).updateMarketplaces),
		newMarketplaceChangeCmd(s, "remove NAME…", "Remove marketplaces; plugins that were added from them stay", 1, (*host).removeMarketplaces))
	cmd.Example = "  agent plugins marketplace add owner/repo\n  agent plugins search deploy\n  agent plugins add deploy@market"
	return cmd
}

// marketplaceOptions are those of the commands that change marketplaces.
type marketplaceOptions struct {
	options
	change func(h *host, ctx context.Context, o *options, args []string) error
}

func newMarketplaceChangeCmd(s *cmdutil.IO, use, short string, least int, change func(*host, context.Context, *options, []string) error) *cobra.Command {
	o := &marketplaceOptions{options{IO: s}, change}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cmdutil.Args(cobra.MinimumNArgs(least)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	return cmd
}

func (o *marketplaceOptions) run(ctx context.Context, args []string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	return o.change(h, ctx, &o.options, args)
}

func (h *host) addMarketplace(ctx context.Context, o *options, args []string) error {
	for _, source := range args {
		if path := filepath.Join(o.Cwd, source); !filepath.IsAbs(source) {
			if _, err := os.Stat(path); err == nil {
				source = path
			}
		}
		m, err := h.Store().AddMarketplace(ctx, source, "")
		if err != nil {
			return err
		}
		printMarketplace(o, "Added", m)
	}
	return nil
}

func (h *host) updateMarketplaces(ctx context.Context, o *options, names []string) error {
	if len(names) == 0 {
		list, err := h.Store().Marketplaces(ctx)
		if err != nil {
			return err
		}
		for _, m := range list {
			names = append(names, m.Name)
		}
	}
	var errs []error
	for _, name := range names {
		m, err := h.Store().UpdateMarketplace(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		printMarketplace(o, "Updated", m)
	}
	return errors.Join(errs...)
}

func (h *host) removeMarketplaces(ctx context.Context, o *options, names []string) error {
	var errs []error
	for _, name := range names {
		if err := h.Store().RemoveMarketplace(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(o.Out, "Removed %s.\n", name)
	}
	return errors.Join(errs...)
}

func printMarketplace(o *options, did string, m *plugins.Marketplace) {
	fmt.Fprintf(o.Out, "%s %s, with %s.\n", did, m.Name, display.Plural(len(m.Plugins), "plugin"))
	for _, u := range m.Unusable {
		fmt.Fprintf(o.Out, "  not used  %s\n", display.VisibleLine(u.String(), 300))
	}
}

type marketplaceListOptions struct {
	options
	json bool
}

func newMarketplaceListCmd(s *cmdutil.IO) *cobra.Command {
	o := &marketplaceListOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use: "list", Short: "List marketplaces", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *marketplaceListOptions) run(ctx context.Context) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	list, failed := h.Store().Marketplaces(ctx)
	switch {
	case o.json:
		return errors.Join(cmdutil.WriteJSON(o.Out, append([]plugins.Marketplace{}, list...)), failed)
	case len(list) == 0 && failed == nil:
		fmt.Fprintln(o.Err, "No marketplaces. Add one with 'agent plugins marketplace add OWNER/REPO'.")
		return nil
	}
	t := cmdutil.NewTable(o.Out, "NAME", "PLUGINS", "READ", "SOURCE")
	for _, m := range list {
		t.Row(m.Name, fmt.Sprint(len(m.Plugins)), m.Read.Format("2006-01-02"), display.VisibleLine(m.Source, 200))
	}
	return errors.Join(t.Flush(), failed)
}

type searchOptions struct {
	options
	json bool
}

func newSearchCmd(s *cmdutil.IO) *cobra.Command {
	o := &searchOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use: "search [TEXT…]", Short: "Search the plugins of the added marketplaces", Args: cmdutil.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// match is a plugin that a search found.
type match struct {
	Source  string `json:"source"` // as 'agent plugins add' takes it
	Version string `json:"version,omitempty"`
	Summary string `json:"summary,omitempty"`
}

func (o *searchOptions) run(ctx context.Context, words []string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	list, failed := h.Store().Marketplaces(ctx)
	found := []match{}
	for _, m := range list {
		for _, l := range m.Plugins {
			if l.Matches(words) {
				found = append(found, match{l.Name + "@" + m.Name, l.Version, l.Summary})
			}
		}
	}
	switch {
	case o.json:
		return errors.Join(cmdutil.WriteJSON(o.Out, found), failed)
	case len(list) == 0 && failed == nil:
		return errors.New("no marketplaces: add one with 'agent plugins marketplace add OWNER/REPO'")
	case len(found) == 0:
		fmt.Fprintln(o.Err, "No plugin found.")
		return failed
	}
	t := cmdutil.NewTable(o.Out, "PLUGIN", "VERSION", "DESCRIPTION")
	for _, f := range found {
		t.Row(f.Source, f.Version, display.VisibleLine(f.Summary, 120))
	}
	return errors.Join(t.Flush(), failed)
}
