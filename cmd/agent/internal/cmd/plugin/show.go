package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

type showOptions struct {
	options
	json bool
}

func newShowCmd(s *cmdutil.IO) *cobra.Command {
	o := &showOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a plugin offers, runs and may do, and what of it is not used",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// shown is the JSON form of a plugin with all that it holds.
type shown struct {
	plugins.Installed
	Process *setup.PluginInfo `json:"process,omitempty"` // of its program
}

func (o *showOptions) run(ctx context.Context, name string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	p := h.program(name)
	b, err := h.bundle(name)
	if p != nil && h.installed(name) == nil {
		b, err = programOnly(p), nil
	}
	if err != nil {
		return err
	}
	if o.json {
		j := shown{Installed: b}
		if p != nil {
			info := h.set.PluginInfo(p)
			j.Process = &info
		}
		return cmdutil.WriteJSON(o.Out, j)
	}
	o.print(h, p, b)
	return nil
}

// programOnly describes a plugin that is a program and nothing else, such as a
// bundled one.
func programOnly(p *plugins.Plugin) plugins.Installed {
	b := plugins.Installed{Bundle: &bundles.Bundle{Format: bundles.Own, Name: p.Name(), Version: p.Spec().Version, Program: true}}
	if p.Scope() != plugins.Bundled {
		b.Source = p.Dir()
	}
	return b
}

// print prints a plugin; p is nil if it has no program.
func (o *showOptions) print(h *host, p *plugins.Plugin, b plugins.Installed) {
	from := ", bundled"
	if b.Source != "" {
		from = " from " + display.VisibleLine(b.Source, 300)
	}
	fmt.Fprintf(o.Out, "%s (%s)%s\n", named(plugins.Spec{Name: b.Name, Version: b.Version}), b.Format, from)
	summary := b.Summary
	if p != nil {
		summary = cmp.Or(summary, h.set.PluginInfo(p).Summary)
	}
	if summary != "" {
		fmt.Fprintf(o.Out, "  %s\n", display.VisibleLine(summary, 300))
	}
	if b.Linked {
		fmt.Fprintln(o.Out, "It is linked: used directly from its folder, and its files are not verified.")
	}
	if !h.set.PluginOn(b.Name) {
		fmt.Fprintf(o.Out, "It is disabled: run 'agent plugins enable %s' to use it.\n", b.Name)
	}
	if p != nil {
		spec := p.Spec()
		showProgram(o.Out, spec, spec.Visible(p.Dir(), cmdutil.UserHome()))
		showDescription(o.Out, p.Known())
	}
	showPieces(o.Out, b.Bundle, nil)
	for _, g := range grants(b.Choices.Allow) {
		fmt.Fprintf(o.Out, "  allowed   %s\n", display.VisibleLine(g, 300))
	}
}

// showDescription prints what a plugin's program offers, which is known once it ran.
func showDescription(out io.Writer, d *toolproto.Description) {
	if d == nil {
		fmt.Fprintln(out, "Its tools are not known before it first runs: in a session, or with 'agent tools list'.")
		return
	}
	for _, t := range d.GetTools() {
		first, _, _ := strings.Cut(t.Description, "\n")
		showPiece(out, " ", "tool\t"+t.Name+": "+first)
	}
	for _, c := range d.GetCommands() {
		showPiece(out, " ", "command\t/"+strings.TrimSpace(c.Name+" "+c.Args)+": "+c.Description)
	}
	for _, c := range d.GetContexts() {
		showPiece(out, " ", "context\t"+c.Name+": "+c.Description)
	}
	for _, k := range d.GetHooks() {
		showPiece(out, " ", fmt.Sprintf("hook\t%s %s: %s", k.Event, cmp.Or(k.Matcher, "*"), k.Name))
	}
}

// grants lists what the user allowed a plugin's MCP servers.
func grants(m plugins.Manifest) (lines []string) {
	for _, g := range []struct {
		what string
		list []string
	}{{"read", m.Read}, {"write", m.Write}, {"connect to", m.Network}} {
		if len(g.list) > 0 {
			lines = append(lines, g.what+" "+strings.Join(g.list, ", "))
		}
	}
	return lines
}
