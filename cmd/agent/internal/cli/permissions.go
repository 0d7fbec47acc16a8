package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func newPermissions(s *streams) *cobra.Command {
	return group("permissions", "Ask what the permission policy says", newPermissionsCheck(s))
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
	sh := &shared{}
	var tool, args string
	var asJSON, headless bool
	cmd := &cobra.Command{
		Use:   "check --tool NAME --args JSON",
		Short: "Say whether a call would be allowed, asked about or denied, and by which rule",
		Long: "check takes a call as far as the policy's verdict, by the code that decides in a session, and runs nothing.\n" +
			"With --headless it says what exec would do: what asks is denied.",
		Example: "  agent permissions check --tool shell --args '{\"command\": \"git push\"}'",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tool == "" {
				return &usageError{fmt.Errorf("--tool is required: the name of the tool that would be called")}
			}
			text, err := argsText(args)
			if err != nil {
				return err
			}
			return withTools(cmd.Context(), s, sh, func(_ *settings, a *agent.Agent, snapshot *core.Snapshot) error {
				e, ok := snapshot.Lookup(tool)
				if !ok {
					return noTool(tool, snapshot)
				}
				if err := e.Validate(json.RawMessage(text)); err != nil {
					return &usageError{fmt.Errorf("--args: %w", err)}
				}
				call := &core.Call{ID: "check", Name: tool, Args: json.RawMessage(text), Env: a.Env(), Session: core.SessionInfo{Dir: a.Env().Info().Dir}}
				accesses, d, err := core.Judge(cmd.Context(), a.Policy(), e, call, nil)
				if err != nil {
					return err
				}
				v := verdict{d.Verdict.String(), d.Rule, d.Source, append([]core.Access{}, accesses...), d.Reason}
				if headless && d.Verdict == core.Ask {
					v.Decision, v.Reason = core.Deny.String(), d.Reason+"; nobody is there to be asked"
				}
				if asJSON {
					return printJSON(s.out, v)
				}
				return v.print(s)
			})
		},
	}
	sh.register(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&tool, "tool", "", "`NAME` of the tool that would be called")
	f.StringVar(&args, "args", "{}", "its arguments as `JSON`, or @FILE")
	f.BoolVar(&headless, "headless", false, "as exec would decide, with nobody to ask")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.StringVar(&sh.dir, "cwd", "", "the same as --cd `DIR`")
	f.StringVar(&sh.mode, "mode", "", "the same as --permission-mode `MODE`")
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
