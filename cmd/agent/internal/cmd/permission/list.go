package permission

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type listOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the permission mode and rules in evaluation order",
		Long: "List the permission mode, whether commands run in a sandbox, and all rules with their source.\n" +
			"If several rules match, deny wins over ask, and ask over allow.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), policyFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// policyInfo is the JSON of the effective policy.
type policyInfo struct {
	Mode      string                 `json:"mode"`
	ModeFrom  string                 `json:"modeFrom"`
	Sandboxed bool                   `json:"sandboxed"`
	Workspace []string               `json:"workspace"`
	Trusted   bool                   `json:"trusted"`
	Rules     []permissions.RuleInfo `json:"rules"`
	Warnings  []string               `json:"warnings"`
}

func (o *listOptions) run(ctx context.Context) error {
	return setup.WithTools(ctx, o.IO, &o.flags, func(set *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
		p, err := policyOf(a)
		if err != nil {
			return err
		}
		info := policyInfo{
			Mode: string(p.Mode()), ModeFrom: p.ModeFrom(), Sandboxed: p.Sandboxed(), Trusted: set.Trusted,
			Workspace: a.Env().Info().Roots, Rules: append([]permissions.RuleInfo{}, p.Rules()...),
			Warnings: append(p.Warnings(), uselessRules(p.Rules(), snapshot)...),
		}
		if o.json {
			return cmdutil.WriteJSON(o.Out, info)
		}
		return info.print(o.Out)
	})
}

// uselessRules returns a warning for each rule that names neither a scope nor
// an available tool: the name may be misspelt.
func uselessRules(rules []permissions.RuleInfo, snapshot *core.Snapshot) []string {
	warnings := []string{}
	for _, r := range rules {
		name, isTool := r.Tool()
		if !isTool || snapshot == nil || slices.Contains(snapshot.Names(), name) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: the rule %s matches nothing: no tool %q", r.Where, r.Rule, name))
	}
	return warnings
}

func (i policyInfo) print(out io.Writer) error {
	sandbox := "not available"
	switch {
	case i.Sandboxed && i.Mode == string(permissions.ModeWorkspace):
		sandbox = "used for commands that no rule allows"
	case i.Sandboxed:
		sandbox = "available, used in mode workspace"
	}
	head := cmdutil.NewTable(out)
	head.Row("mode", i.Mode+" ("+i.ModeFrom+")")
	head.Row("workspace", strings.Join(i.Workspace, ", "))
	head.Row("sandbox", sandbox)
	if err := head.Flush(); err != nil {
		return err
	}
	if err := i.printRules(out); err != nil {
		return err
	}
	for _, warning := range i.Warnings {
		fmt.Fprintf(out, "\nwarning: %s\n", warning)
	}
	return nil
}

func (i policyInfo) printRules(out io.Writer) error {
	if len(i.Rules) == 0 {
		_, err := fmt.Fprintln(out, "\nNo rules. Add some with --allow, --deny or in the settings under permissions.")
		return err
	}
	fmt.Fprintln(out)
	t := cmdutil.NewTable(out, "DECISION", "RULE", "SOURCE")
	for _, r := range i.Rules {
		decision := string(r.List)
		if r.Ignored {
			decision += " (ignored)"
		}
		t.Row(decision, display.VisibleLine(r.Rule, 100), r.Where)
	}
	return t.Flush()
}
