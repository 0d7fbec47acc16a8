package permission

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// policyInfo is the policy in force, as lists show it.
type policyInfo struct {
	Mode      string                 `json:"mode"`
	ModeFrom  string                 `json:"modeFrom"`
	Sandboxed bool                   `json:"sandboxed"`
	Workspace []string               `json:"workspace"`
	Trusted   bool                   `json:"trusted"`
	Rules     []permissions.RuleInfo `json:"rules"`
	Warnings  []string               `json:"warnings"`
}

func newPermissionsList(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the mode and the rules in force, in the order in which they are looked through",
		Long: "list shows what decides here: the mode, whether commands run in a sandbox, and all rules with the place where\n" +
			"they stand. Of several rules that fit, the worst counts: deny before ask before allow.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.WithTools(cmd.Context(), s, sh, func(set *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
				p, ok := a.Policy().(*permissions.Policy)
				if !ok {
					return fmt.Errorf("the policy is not one of rules")
				}
				info := policyInfo{
					Mode: string(p.Mode()), ModeFrom: p.ModeFrom(), Sandboxed: p.Sandboxed(), Trusted: set.Trusted,
					Workspace: a.Env().Info().Roots, Rules: append([]permissions.RuleInfo{}, p.Rules()...),
					Warnings: append(p.Warnings(), uselessRules(p.Rules(), snapshot)...),
				}
				if asJSON {
					return cmdutil.WriteJSON(s.Out, info)
				}
				return info.print(s.Out)
			})
		},
	}
	sh.Register(cmd.Flags(), setup.PolicyFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// uselessRules warns of rules that name neither a scope nor a tool that is
// there: their names may be misspelt.
func uselessRules(rules []permissions.RuleInfo, snapshot *core.Snapshot) []string {
	warnings := []string{}
	for _, r := range rules {
		name, isTool := r.Tool()
		if !isTool || snapshot == nil || slices.Contains(snapshot.Names(), name) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: the rule %s is for a tool %s that is not there now", r.Where, r.Rule, name))
	}
	return warnings
}

func (i policyInfo) print(out io.Writer) error {
	sandbox := "no sandbox for commands"
	if i.Sandboxed {
		sandbox = "commands that nothing else allows run in a sandbox"
		if i.Mode != string(permissions.ModeWorkspace) {
			sandbox = "commands can run in a sandbox, which mode workspace uses"
		}
	}
	fmt.Fprintf(out, "mode       %s (%s)\nworkspace  %s\nsandbox    %s\n", i.Mode, i.ModeFrom, strings.Join(i.Workspace, ", "), sandbox)
	if len(i.Rules) == 0 {
		fmt.Fprintln(out, "\nThere are no rules; --allow, --deny and the settings' permissions add some.")
	} else {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\nLIST\tRULE\tWHERE")
		for _, r := range i.Rules {
			list := string(r.List)
			if r.Ignored {
				list += " (ignored)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", list, display.VisibleLine(r.Rule, 100), r.Where)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, warning := range i.Warnings {
		fmt.Fprintf(out, "\nwarning: %s\n", warning)
	}
	return nil
}
