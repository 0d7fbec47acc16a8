package insights

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type options struct {
	*cmdutil.IO
	days int
	json bool
}

// NewCmd returns agent insights.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "insights",
		Short: "Show where time, tokens and cost went",
		Long: "Add up the session logs: time, tokens and cost by model, project and skill, the slowest and most failing tools,\n" +
			"the permissions that were asked for most, and the rule that would answer each. Costs are estimates from list\n" +
			"prices; a model without a known price is reported as such.",
		Example: "  agent insights\n  agent insights --days 7 --json | jq '.models'",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.days < 0 {
				return cmdutil.Usagef("--days %d: use a number of days, or 0 for all sessions", o.days)
			}
			return cmdutil.Interruptible(cmd.Context(), o.run)
		},
	}
	cmd.Flags().IntVar(&o.days, "days", 30, "only what happened in the last `N` days; 0 is everything")
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *options) run(ctx context.Context) error {
	home, err := o.AgentHome()
	if err != nil {
		return err
	}
	report, err := insight.Read(ctx, agent.SessionsDir(home), o.days, time.Now(), insight.Facts(setup.KnownModels(o.IO)))
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, report)
	}
	if report.Total.Sessions == 0 {
		fmt.Fprintf(o.Err, "%s: none. Use --days 0 for all sessions.\n", report.Period())
		return nil
	}
	fmt.Fprintln(o.Out, report.Period())
	for _, t := range report.Tables() {
		if len(t.Rows) > 0 {
			if err := o.print(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// print prints a table below its title.
func (o *options) print(t insight.Table) error {
	fmt.Fprintf(o.Out, "\n%s\n", t.Title)
	table := cmdutil.NewTable(o.Out, t.Head...)
	for _, cells := range t.Rows {
		row := make([]any, len(cells))
		for i, cell := range cells {
			row[i] = display.OneLine(cell, 300)
			if i == 0 {
				row[i] = display.PathTail(cmdutil.Tilde(cell, cmdutil.UserHome()), 40)
			}
		}
		table.Row(row...)
	}
	return table.Flush()
}
