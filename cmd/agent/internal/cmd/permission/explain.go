package permission

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

// explanation is a verdict with all that led to it.
type explanation struct {
	verdict
	Steps   []permissions.Explanation `json:"steps"`
	Changes []change                  `json:"changes"`
}

// change is what would change the verdict.
type change struct {
	What     string `json:"what"`
	Decision string `json:"decision"`
}

func newPermissionsExplain(s *cmdutil.IO) *cobra.Command {
	c := &callFlags{}
	cmd := &cobra.Command{
		Use:   "explain --tool NAME --args JSON",
		Short: "Say why a call would be allowed, asked about or denied, step by step",
		Long: "explain is check with all that led to the verdict: every access of the call, every part of a command line,\n" +
			"and what would change the answer.",
		Example: "  agent permissions explain --tool shell --args '{\"command\": \"make && git push\"}'",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.try(cmd.Context(), s, func(_ *setup.Setup, t trial) error {
				e := explanation{verdict: t.verdict(c.headless), Steps: t.policy.Explain(cmd.Context(), t.request), Changes: t.changes(cmd.Context())}
				if c.asJSON {
					return cmdutil.WriteJSON(s.Out, e)
				}
				return e.print(s)
			})
		},
	}
	c.register(cmd.Flags())
	return cmd
}

// changes looks for what would change the verdict: another mode, another rule.
func (t trial) changes(ctx context.Context) []change {
	changes := []change{}
	for _, mode := range permissions.Modes() {
		if mode == t.policy.Mode() {
			continue
		}
		if d := t.policy.WithMode(mode).Decide(ctx, t.request); d.Verdict != t.decision.Verdict {
			changes = append(changes, change{"--permission-mode " + string(mode), d.Verdict.String()})
		}
	}
	if t.decision.Always != "" {
		changes = append(changes, change{"the rule " + t.decision.Always + " in permissions.allow, or --allow '" + t.decision.Always + "'", "allow"})
	}
	if t.decision.Verdict == core.Ask {
		changes = append(changes, change{"a yes of the person", "allow"})
	}
	if strings.Contains(t.decision.Source, ":") && t.decision.Verdict != core.Allow {
		changes = append(changes, change{"without the rule " + t.decision.Rule + " at " + t.decision.Source, "what the other rules and the mode say"})
	}
	return changes
}

func (e explanation) print(s *cmdutil.IO) error {
	if err := e.verdict.print(s); err != nil {
		return err
	}
	fmt.Fprintln(s.Out, "\nstep by step:")
	printSteps(s.Out, e.Steps, "  ")
	if len(e.Changes) > 0 {
		fmt.Fprintln(s.Out, "\nwhat would change the answer:")
		for _, c := range e.Changes {
			fmt.Fprintf(s.Out, "  %s: %s\n", display.VisibleLine(c.What, 1000), c.Decision)
		}
	}
	return nil
}

func printSteps(out io.Writer, steps []permissions.Explanation, indent string) {
	for _, e := range steps {
		what := string(e.Access.Scope)
		if what == "" {
			what = "it touches nothing"
		}
		if e.Access.Recursive {
			what += ", with all below,"
		}
		fmt.Fprintf(out, "%s%-5s  %s %s\n", indent, e.Verdict, what, display.VisibleLine(e.Access.Resource, 200))
		fmt.Fprintf(out, "%s       by %s: %s (%s)\n", indent, e.Step, display.VisibleLine(e.Rule, 200), e.Source)
		if len(e.Parts) == 0 {
			fmt.Fprintf(out, "%s       %s\n", indent, display.VisibleLine(e.Reason, 1000))
		}
		printSteps(out, e.Parts, indent+"  ")
	}
}
