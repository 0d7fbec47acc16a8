package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func newPermissions(s *streams) *cobra.Command {
	return group("permissions", "Show the rules, ask what the permission policy says, test it, read what it said",
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
		return trial{}, noTool(tool, snapshot)
	}
	if err := e.Validate(json.RawMessage(args)); err != nil {
		return trial{}, &usageError{fmt.Errorf("--args: %w", err)}
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
	shared     shared
	tool, args string
	headless   bool
	asJSON     bool
}

func (c *callFlags) register(f *pflag.FlagSet) {
	c.shared.register(f)
	f.StringVar(&c.tool, "tool", "", "`NAME` of the tool that would be called")
	f.StringVar(&c.args, "args", "{}", "its arguments as `JSON`, or @FILE")
	f.BoolVar(&c.headless, "headless", false, "as exec would decide, with nobody to ask")
	f.BoolVar(&c.asJSON, "json", false, "print JSON")
	f.StringVar(&c.shared.dir, "cwd", "", "the same as --cd `DIR`")
	f.StringVar(&c.shared.mode, "mode", "", "the same as --permission-mode `MODE`")
}

// try judges the call that the flags name.
func (c *callFlags) try(ctx context.Context, s *streams, show func(*settings, trial) error) error {
	if c.tool == "" {
		return &usageError{fmt.Errorf("--tool is required: the name of the tool that would be called")}
	}
	text, err := argsText(c.args)
	if err != nil {
		return err
	}
	return withTools(ctx, s, &c.shared, func(set *settings, a *agent.Agent, snapshot *core.Snapshot) error {
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

func newPermissionsCheck(s *streams) *cobra.Command {
	c := &callFlags{}
	cmd := &cobra.Command{
		Use:   "check --tool NAME --args JSON",
		Short: "Say whether a call would be allowed, asked about or denied, and by which rule",
		Long: "check takes a call as far as the policy's verdict, by the code that decides in a session, and runs nothing.\n" +
			"With --headless it says what exec would do: what asks is denied.",
		Example: "  agent permissions check --tool shell --args '{\"command\": \"git push\"}'",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.try(cmd.Context(), s, func(_ *settings, t trial) error {
				v := t.verdict(c.headless)
				if c.asJSON {
					return printJSON(s.out, v)
				}
				return v.print(s)
			})
		},
	}
	c.register(cmd.Flags())
	return cmd
}

func (v verdict) print(s *streams) error {
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
	_, err := s.out.Write([]byte(b.String()))
	return err
}
