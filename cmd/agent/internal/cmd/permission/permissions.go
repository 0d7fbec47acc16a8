package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("permissions", "Show the rules, ask what the permission policy says, test it, read what it said",
		newPermissionsList(s), newPermissionsCheck(s), newPermissionsExplain(s), newPermissionsTest(s), newPermissionsLog(s))
}

// trial is a call that is judged and not run.
type trial struct {
	request  core.PermissionRequest
	decision core.Decision
	policy   *permissions.Policy
}

// try takes a call as far as the policy's verdict.
func try(ctx context.Context, a *agent.Agent, policy core.Policy, snapshot *core.Snapshot, tool, args string) (trial, error) {
	e, ok := snapshot.Lookup(tool)
	if !ok {
		return trial{}, setup.NoTool(tool, snapshot)
	}
	if err := e.Validate(json.RawMessage(args)); err != nil {
		return trial{}, cmdutil.Usagef("--args: %w", err)
	}
	session := core.SessionInfo{Dir: a.Env().Info().Dir}
	call := &core.Call{ID: "check", Name: tool, Args: json.RawMessage(args), Env: a.Env(), Session: session}
	accesses, d, err := core.Judge(ctx, policy, e, call, nil)
	if err != nil {
		return trial{}, err
	}
	req := core.PermissionRequest{Session: session, Tool: tool, Source: e.Source, Args: call.Args, Accesses: accesses}
	p, _ := policy.(*permissions.Policy)
	return trial{req, d, p}, nil
}

// verdict is what becomes of the call; headless, nobody is there to be asked.
func (t trial) verdict(headless bool) verdict {
	d := t.decision
	v := verdict{d.Verdict.String(), d.Rule, d.Source, append([]core.Access{}, t.request.Accesses...), d.Reason}
	if headless && d.Verdict == core.Ask {
		v.Decision, v.Reason = core.Deny.String(), d.Reason+"; nobody is there to be asked"
	}
	return v
}

// callFlags name a call that is judged.
type callFlags struct {
	shared     setup.Flags
	tool, args string
	headless   bool
	asJSON     bool
}

func (c *callFlags) register(f *pflag.FlagSet) {
	c.shared.Register(f, setup.PolicyFlags)
	f.StringVar(&c.tool, "tool", "", "`NAME` of the tool that would be called")
	f.StringVar(&c.args, "args", "{}", "its arguments as `JSON`, or @FILE")
	f.BoolVar(&c.headless, "headless", false, "as exec would decide, with nobody to ask")
	f.BoolVar(&c.asJSON, "json", false, "print JSON")
	f.StringVar(&c.shared.Dir, "cwd", "", "the same as --cd `DIR`")
	f.StringVar(&c.shared.Mode, "mode", "", "the same as --permission-mode `MODE`")
}

// try judges the call that the flags name.
func (c *callFlags) try(ctx context.Context, s *cmdutil.IO, show func(*setup.Setup, trial) error) error {
	if c.tool == "" {
		return cmdutil.Usagef("--tool is required: the name of the tool that would be called")
	}
	text, err := cmdutil.ToolArguments(c.args)
	if err != nil {
		return err
	}
	return setup.WithTools(ctx, s, &c.shared, func(set *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
		t, err := try(ctx, a, a.Policy(), snapshot, c.tool, text)
		if err != nil {
			return err
		}
		return show(set, t)
	})
}

// verdict is what a check prints.
type verdict struct {
	Decision string        `json:"decision"`
	Rule     string        `json:"rule"`
	Source   string        `json:"source"`
	Accesses []core.Access `json:"accesses"`
	Reason   string        `json:"reason"`
}

func newPermissionsCheck(s *cmdutil.IO) *cobra.Command {
	c := &callFlags{}
	cmd := &cobra.Command{
		Use:   "check --tool NAME --args JSON",
		Short: "Say whether a call would be allowed, asked about or denied, and by which rule",
		Long: "check takes a call as far as the policy's verdict, by the code that decides in a session, and runs nothing.\n" +
			"With --headless it says what exec would do: what asks is denied.",
		Example: "  agent permissions check --tool shell --args '{\"command\": \"git push\"}'",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.try(cmd.Context(), s, func(_ *setup.Setup, t trial) error {
				v := t.verdict(c.headless)
				if c.asJSON {
					return cmdutil.WriteJSON(s.Out, v)
				}
				return v.print(s)
			})
		},
	}
	c.register(cmd.Flags())
	return cmd
}

func (v verdict) print(s *cmdutil.IO) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", v.Decision)
	fmt.Fprintf(&b, "  rule:   %s", v.Rule)
	if v.Source != "" {
		fmt.Fprintf(&b, " (%s)", v.Source)
	}
	fmt.Fprintf(&b, "\n  reason: %s\n", v.Reason)
	for _, a := range v.Accesses {
		fmt.Fprintf(&b, "  access: %s %s", a.Scope, a.Resource)
		if a.Recursive {
			b.WriteString(" and all below")
		}
		b.WriteString("\n")
	}
	_, err := s.Out.Write([]byte(b.String()))
	return err
}
