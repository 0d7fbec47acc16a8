package mcp

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
)

type importOptions struct {
	serverOptions
	from []string
	yes  bool
}

func newImportCmd(s *cmdutil.IO) *cobra.Command {
	o := &importOptions{serverOptions: serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import MCP servers from other programs",
		Long: "Find the MCP servers that " + programTitles() + " configure, show what would be added to your settings, and add it\n" +
			"if you approve. Secrets are not copied: they become references to environment variables, which are listed. Servers\n" +
			"that you already have are left alone.",
		Example: "  agent mcp import\n  agent mcp import --from claude-code,cursor --yes",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	cmdutil.ListVar(f, &o.from, "from", "import only from these `PROGRAMS`: "+strings.Join(programNames(), ", "))
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(programNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	o.flags.Register(f, setup.DirFlag)
	return cmd
}

func programNames() (names []string) {
	for _, g := range programs() {
		names = append(names, g.name)
	}
	return names
}

func programTitles() string {
	var titles []string
	for _, g := range programs() {
		titles = append(titles, g.title)
	}
	return strings.Join(titles[:len(titles)-1], ", ") + " and " + titles[len(titles)-1]
}

func (o *importOptions) run(ctx context.Context) error {
	for _, name := range o.from {
		if !slices.Contains(programNames(), name) {
			return cmdutil.Usagef("--from %s: expected %s", display.OneLine(name, 40), strings.Join(programNames(), ", "))
		}
	}
	set, servers, err := o.load()
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	p := places{home, set.Dir, o.Env}
	var found []candidate
	for _, g := range programs() {
		if len(o.from) > 0 && !slices.Contains(o.from, g.name) {
			continue
		}
		list, errs := g.read(p)
		for _, err := range errs {
			fmt.Fprintf(o.Err, "agent: %v\n", err)
		}
		found = append(found, list...)
	}
	chosen := settle(found, servers)
	if err := o.preview(found); err != nil || len(chosen) == 0 {
		return err
	}
	yes, err := o.Confirm(ctx, "Add "+display.Plural(len(chosen), "server")+" to your settings?", o.yes)
	if err != nil || !yes {
		return err
	}
	for _, c := range chosen {
		if err := config.UserFile(set.Home).SetServer(ctx, c.name, c.server); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "Added %s. To connect to one and read its tools:  agent mcp test NAME\n", display.Plural(len(chosen), "server"))
	return nil
}

// settle returns the servers to import. Those that exist already or have the name
// of another one get a problem or another name.
func settle(found []candidate, have []mcp.Configured) (chosen []candidate) {
	for i := range found {
		c := &found[i]
		if err := mcp.CheckName(c.name); c.problem == nil && err != nil {
			c.note("renamed: " + err.Error())
			c.name = cleanServerName(c.name + "-" + c.from)
			c.problem = mcp.CheckName(c.name)
		}
		same := func(name string, s mcp.Server) bool { return name == c.name || s.Hash() == c.server.Hash() }
		for _, h := range have {
			if c.problem == nil && same(h.Name, h.Server) {
				c.problem = fmt.Errorf("already in your settings as %s", h.Name)
				if h.Server.Hash() != c.server.Hash() {
					c.problem = fmt.Errorf("your settings have another server %s", h.Name)
				}
			}
		}
		for _, other := range chosen {
			switch {
			case c.problem != nil:
			case other.server.Hash() == c.server.Hash():
				c.problem = fmt.Errorf("the same as %s of %s", other.name, other.from)
			case other.name == c.name:
				c.name = cleanServerName(c.name + "-" + c.from)
				c.note("renamed: " + other.from + " has another " + other.name)
			}
		}
		if c.problem == nil {
			chosen = append(chosen, *c)
		}
	}
	return chosen
}

// preview prints what was found and what becomes of it.
func (o *importOptions) preview(found []candidate) error {
	if len(found) == 0 {
		fmt.Fprintf(o.Out, "No MCP servers of other programs were found (%s).\n", strings.Join(programNames(), ", "))
		return nil
	}
	t := cmdutil.NewTable(o.Out, "NAME", "FROM", "ACTION", "TARGET")
	for _, c := range found {
		action := "add"
		if c.problem != nil {
			action = "skip"
		} else if c.server.Disabled {
			action = "add, disabled"
		}
		t.Row(display.VisibleLine(c.name, 40), c.from, action, display.VisibleLine(c.server.Describe(), 80))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range found {
		notes := c.notes
		if c.problem != nil {
			notes = []string{"skipped: " + c.problem.Error()}
		}
		for _, n := range notes {
			fmt.Fprintf(o.Out, "%s: %s\n", display.VisibleLine(c.name, 40), display.VisibleLine(n, 200))
		}
	}
	return nil
}
