package permission

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// NewCmd returns agent permissions.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("permissions", "Inspect, test and audit permission rules",
		newListCmd(s), newCheckCmd(s), newExplainCmd(s), newTestCmd(s), newLogCmd(s), newReplayCmd(s))
}

// judgment is a call with the policy's decision on it. The call is not run.
type judgment struct {
	request  core.PermissionRequest
	decision core.Decision
	policy   *permissions.Policy
}

// judge asks a policy about a call.
func judge(ctx context.Context, a *agent.Agent, policy *permissions.Policy, snapshot *core.Snapshot, tool, args string) (judgment, error) {
	e, ok := snapshot.Lookup(tool)
	if !ok {
		return judgment{}, setup.NoTool(tool, snapshot)
	}
	corrected, _, err := e.Coerce(json.RawMessage(args))
	if err != nil {
		return judgment{}, cmdutil.Usagef("--args: %w", err)
	}
	session := core.SessionInfo{Dir: a.Env().Info().Dir}
	call := &core.Call{ID: "check", Name: tool, Args: corrected, Env: a.Env(), Session: session}
	accesses, decision, err := core.Judge(ctx, policy, e, call, nil)
	if err != nil {
		return judgment{}, err
	}
	request := core.PermissionRequest{Session: session, Tool: tool, Source: e.Source, Args: call.Args, Accesses: accesses}
	return judgment{request, decision, policy}, nil
}

// policyOf returns the agent's policy.
func policyOf(a *agent.Agent) (*permissions.Policy, error) {
	p, ok := a.Policy().(*permissions.Policy)
	if !ok {
		return nil, fmt.Errorf("a policy of type %T has no rules", a.Policy())
	}
	return p, nil
}

// verdict is the JSON of a judgment.
type verdict struct {
	Decision string        `json:"decision"`
	Rule     string        `json:"rule"`
	Source   string        `json:"source"`
	Accesses []core.Access `json:"accesses"`
	Reason   string        `json:"reason"`
}

// verdict returns the outcome of the call. In a headless session, a call that
// asks is denied.
func (j judgment) verdict(headless bool) verdict {
	d := j.decision
	v := verdict{d.Verdict.String(), d.Rule, d.Source, append([]core.Access{}, j.request.Accesses...), d.Reason}
	if headless && d.Verdict == core.Ask {
		v.Decision, v.Reason = core.Deny.String(), d.Reason+"; the session is non-interactive, so nobody can approve it"
	}
	return v
}

// callOptions are the options of commands that judge one call.
type callOptions struct {
	*cmdutil.IO
	flags          setup.Flags
	tool, args     string
	headless, json bool
}

func (o *callOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.tool, "tool", "", "`NAME` of the tool")
	f.StringVar(&o.args, "args", "{}", "arguments of the tool as `JSON`, or @FILE")
	f.BoolVar(&o.headless, "headless", false, "decide as in a non-interactive session: deny what would ask")
	f.StringVar(&o.flags.Dir, "cwd", "", "alias for --cd `DIR`")
	f.StringVar(&o.flags.Mode, "mode", "", "alias for --permission-mode `MODE`")
	o.flags.Register(f, policyFlags)
	cmdutil.JSONFlag(cmd, &o.json)
}

// policyFlags are the flags that decide what the rules are.
const policyFlags = setup.PolicyFlags | setup.DebugFlag

// judge calls use with the judgment of the call that the options name.
func (o *callOptions) judge(ctx context.Context, use func(judgment) error) error {
	if o.tool == "" {
		return cmdutil.Usagef("--tool is required: the name of the tool to call")
	}
	args, err := cmdutil.ToolArguments(o.args)
	if err != nil {
		return err
	}
	return setup.WithTools(ctx, o.IO, &o.flags, func(_ *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
		policy, err := policyOf(a)
		if err != nil {
			return err
		}
		j, err := judge(ctx, a, policy, snapshot, o.tool, args)
		if err != nil {
			return err
		}
		return use(j)
	})
}
