package permission

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

type explainOptions struct{ callOptions }

func newExplainCmd(s *cmdutil.IO) *cobra.Command {
	o := &explainOptions{callOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "explain --tool NAME --args JSON",
		Short: "Explain step by step why a call is allowed or denied",
		Long: "Print what the policy decides on a call, as check does, and how: the decision on each access and on each\n" +
			"part of a command line, and what would change the result.",
		Example: "  agent permissions explain --tool shell --args '{\"command\": \"make && git push\"}'",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.register(cmd)
	return cmd
}

// explanation is a verdict with the steps that lead to it.
type explanation struct {
	verdict
	Steps   []permissions.Explanation `json:"steps"`
	Changes []change                  `json:"changes"`
}

// change is something that would lead to another decision.
type change struct {
	What     string `json:"what"`
	Decision string `json:"decision"`
}

func (o *explainOptions) run(ctx context.Context) error {
	return o.judge(ctx, func(j judgment) error {
		e := explanation{verdict: j.verdict(o.headless), Steps: j.policy.Explain(ctx, j.request), Changes: j.changes(ctx)}
		if o.json {
			return cmdutil.WriteJSON(o.Out, e)
		}
		return e.print(o.Out)
	})
}

// changes returns which modes, rules and answers would lead to another decision.
func (j judgment) changes(ctx context.Context) []change {
	changes := []change{}
	for _, mode := range permissions.Modes() {
		if mode == j.policy.Mode() {
			continue
		}
		if d := j.policy.WithMode(mode).Decide(ctx, j.request); d.Verdict != j.decision.Verdict {
			changes = append(changes, change{"--permission-mode " + string(mode), d.Verdict.String()})
		}
	}
	for _, o := range j.decision.Offers {
		what := "the rules " + strings.Join(o.Rules, ", ") + " in permissions.allow"
		if len(o.Rules) == 1 {
			what = "the rule " + o.Rules[0] + " in permissions.allow, or --allow '" + o.Rules[0] + "'"
		}
		changes = append(changes, change{what, "allow"})
	}
	if j.decision.Verdict == core.Ask {
		changes = append(changes, change{"approval by the user", "allow"})
	}
	if strings.Contains(j.decision.Source, ":") && j.decision.Verdict != core.Allow {
		changes = append(changes, change{"without the rule " + j.decision.Rule + " at " + j.decision.Source, "as the other rules and the mode decide"})
	}
	return changes
}

func (e explanation) print(out io.Writer) error {
	if err := e.verdict.print(out); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\nSteps:\n")
	printSteps(&b, e.Steps, "  ")
	if len(e.Changes) > 0 {
		b.WriteString("\nWhat would change the decision:\n")
		for _, c := range e.Changes {
			fmt.Fprintf(&b, "  %s: %s\n", display.VisibleLine(c.What, 1000), c.Decision)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func printSteps(b *strings.Builder, steps []permissions.Explanation, indent string) {
	for _, e := range steps {
		access := "no access"
		if e.Access.Scope != "" {
			access = fmt.Sprintf("%s %s%s", e.Access.Scope, display.VisibleLine(e.Access.Resource, 200), recursive(e.Access))
		}
		fmt.Fprintf(b, "%s%-5s  %s\n", indent, e.Verdict, access)
		fmt.Fprintf(b, "%s       by %s: %s (%s)\n", indent, e.Step, display.VisibleLine(e.Rule, 200), e.Source)
		if len(e.Parts) == 0 {
			fmt.Fprintf(b, "%s       %s\n", indent, display.VisibleLine(e.Reason, 1000))
		}
		printSteps(b, e.Parts, indent+"  ")
	}
}

// recursive marks an access to a directory and everything below it.
func recursive(a core.Access) string {
	if a.Recursive {
		return " (recursive)"
	}
	return ""
}
