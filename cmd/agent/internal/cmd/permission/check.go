package permission

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

type checkOptions struct{ callOptions }

func newCheckCmd(s *cmdutil.IO) *cobra.Command {
	o := &checkOptions{callOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "check --tool NAME --args JSON",
		Short: "Check whether a call would be allowed, and by which rule",
		Long: "Print what the policy decides on a call: allow, ask or deny. The call is not run.\n" +
			"With --headless, ask becomes deny, as in agent exec.",
		Example: "  agent permissions check --tool shell --args '{\"command\": \"git push\"}'",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.register(cmd)
	return cmd
}

func (o *checkOptions) run(ctx context.Context) error {
	return o.judge(ctx, func(j judgment) error {
		v := j.verdict(o.headless)
		if o.json {
			return cmdutil.WriteJSON(o.Out, v)
		}
		return v.print(o.Out)
	})
}

func (v verdict) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", v.Decision)
	fmt.Fprintf(&b, "  rule:   %s", v.Rule)
	if v.Source != "" {
		fmt.Fprintf(&b, " (%s)", v.Source)
	}
	fmt.Fprintf(&b, "\n  reason: %s\n", v.Reason)
	for _, a := range v.Accesses {
		fmt.Fprintf(&b, "  access: %s %s%s\n", a.Scope, a.Resource, recursive(a))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
