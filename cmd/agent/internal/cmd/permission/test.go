package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type testOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newTestCmd(s *cmdutil.IO) *cobra.Command {
	o := &testOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Test the policy against a table of calls",
		Long: "Compare the policy's decision on each call of a table with the wanted one. The calls are not run. The exit\n" +
			"code is 1 if one differs. The table is YAML, a list of objects, or JSON, one object per line, with these keys:\n" +
			"  tool, args   the call; or command, a command line for the tool shell\n" +
			"  want         allow, ask or deny\n" +
			"  rule         the rule that must decide (optional)\n" +
			"  mode         the permission mode (optional)\n" +
			"  headless     true for a non-interactive session (optional)\n" +
			"  why          a comment (optional)",
		Example: "  agent permissions test .agent/permissions.yaml",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), policyFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *testOptions) run(ctx context.Context, file string) error {
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Cwd, path)
	}
	cases, err := readCases(file, path)
	if err != nil {
		return err
	}
	return setup.WithTools(ctx, o.IO, &o.flags, func(_ *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
		results := make([]caseResult, len(cases))
		for i, c := range cases {
			if results[i], err = c.run(ctx, file, a, snapshot); err != nil {
				return err
			}
		}
		return o.print(results)
	})
}

// caseResult is the JSON of a case's result.
type caseResult struct {
	Where  string `json:"where"` // file:line
	Tool   string `json:"tool"`
	Args   string `json:"args"`
	Want   string `json:"want"`
	Got    string `json:"got"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Reason string `json:"reason"`
	Why    string `json:"why,omitempty"`
	Passed bool   `json:"passed"`

	wantRule string
}

func (c *policyCase) run(ctx context.Context, file string, a *agent.Agent, snapshot *core.Snapshot) (caseResult, error) {
	where := fmt.Sprintf("%s:%d", file, c.line)
	if c.Args == nil {
		c.Args = map[string]any{}
	}
	args, err := json.Marshal(c.Args)
	if err != nil {
		return caseResult{}, cmdutil.Usagef("%s: args: %w", where, err)
	}
	policy, err := policyOf(a)
	if err != nil {
		return caseResult{}, err
	}
	if c.Mode != "" {
		policy = policy.WithMode(permissions.Mode(c.Mode))
	}
	j, err := judge(ctx, a, policy, snapshot, c.Tool, string(args))
	if err != nil {
		return caseResult{}, fmt.Errorf("%s: %w", where, err)
	}
	v := j.verdict(c.Headless)
	return caseResult{
		Where: where, Tool: c.Tool, Args: string(args), Want: c.Want, Got: v.Decision, Rule: v.Rule, Source: v.Source, Reason: v.Reason, Why: c.Why,
		Passed: v.Decision == c.Want && (c.Rule == "" || c.Rule == v.Rule), wantRule: c.Rule,
	}, nil
}

// print prints the results. The error says whether a case failed.
func (o *testOptions) print(results []caseResult) error {
	failed := 0
	var b strings.Builder
	for _, r := range results {
		if !r.Passed {
			failed++
			r.print(&b)
		}
	}
	if o.json {
		if err := cmdutil.WriteJSON(o.Out, results); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(&b, "%s, %d failed\n", display.Plural(len(results), "case"), failed)
		if _, err := io.WriteString(o.Out, b.String()); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	return nil
}

// print prints a failed case.
func (r caseResult) print(b *strings.Builder) {
	fmt.Fprintf(b, "FAIL %s: %s %s\n", r.Where, r.Tool, display.VisibleLine(r.Args, 200))
	if r.Got != r.Want {
		fmt.Fprintf(b, "  - %s\n  + %s\n", r.Want, r.Got)
	}
	if r.wantRule != "" && r.wantRule != r.Rule {
		fmt.Fprintf(b, "  - rule %s\n  + rule %s\n", r.wantRule, r.Rule)
	}
	fmt.Fprintf(b, "  rule:   %s (%s)\n  reason: %s\n", r.Rule, r.Source, r.Reason)
	if r.Why != "" {
		fmt.Fprintf(b, "  why:    %s\n", display.VisibleLine(r.Why, 200))
	}
	b.WriteString("\n")
}
