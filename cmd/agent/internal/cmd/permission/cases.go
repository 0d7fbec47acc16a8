package permission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// policyCase is a line of a table of calls and what is wanted of the policy.
type policyCase struct {
	Tool     string         `json:"tool" yaml:"tool"`       // shell, if Command is set
	Args     map[string]any `json:"args" yaml:"args"`       // of the tool
	Command  string         `json:"command" yaml:"command"` // instead of Args, for shell
	Mode     string         `json:"mode" yaml:"mode"`       // instead of the mode in force
	Headless bool           `json:"headless" yaml:"headless"`
	Want     string         `json:"want" yaml:"want"` // allow, ask or deny
	Rule     string         `json:"rule" yaml:"rule"` // that must decide; may be empty
	Why      string         `json:"why" yaml:"why"`   // for people

	line int
}

// caseResult is what came of a case.
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

func newPermissionsTest(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Compare the policy with a table of calls and the verdicts that you want",
		Long: "test judges each call of a table as a session would and says where the verdict is not the wanted one; then the\n" +
			"exit code is 1. The table is YAML, a list of objects, or JSON, one object on a line, with the members\n" +
			"  tool, args   the call; or command, a command line for the tool shell\n" +
			"  want         allow, ask or deny\n" +
			"  rule         the rule that must decide (optional)\n" +
			"  mode         another permission mode (optional)\n" +
			"  headless     true where nobody is there to be asked (optional)\n" +
			"  why          the reason, for people (optional)",
		Example: "  agent permissions test .agent/permissions.yaml",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cases, err := readCases(args[0])
			if err != nil {
				return err
			}
			return setup.WithTools(cmd.Context(), s, sh, func(_ *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
				results := make([]caseResult, len(cases))
				for i, c := range cases {
					if results[i], err = c.try(cmd.Context(), args[0], a, snapshot); err != nil {
						return err
					}
				}
				return printCases(s.Out, results, asJSON)
			})
		},
	}
	sh.Register(cmd.Flags(), setup.PolicyFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// maxCases bounds a table, in bytes.
const maxCases = 4 << 20

func readCases(name string) ([]policyCase, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &cmdutil.UsageError{Err: err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCases+1))
	if err == nil && len(data) > maxCases {
		err = fmt.Errorf("it is larger than %d bytes", maxCases)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var cases []policyCase
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		cases, err = jsonCases(name, data)
	} else {
		cases, err = yamlCases(name, data)
	}
	if err != nil {
		return nil, &cmdutil.UsageError{Err: err}
	}
	if len(cases) == 0 {
		return nil, cmdutil.Usagef("%s holds no cases", name)
	}
	for i := range cases {
		if err := cases[i].check(); err != nil {
			return nil, cmdutil.Usagef("%s:%d: %w", name, cases[i].line, err)
		}
	}
	return cases, nil
}

// jsonCases reads one object from each line.
func jsonCases(name string, data []byte) ([]policyCase, error) {
	var cases []policyCase
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		c := policyCase{line: i + 1}
		if err := jsonpos.Decode(name, line, &c); err != nil {
			if at := (*jsonpos.Error)(nil); errors.As(err, &at) {
				at.Line += i
			}
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func yamlCases(name string, data []byte) ([]policyCase, error) {
	var nodes []yaml.Node
	if err := yaml.Unmarshal(data, &nodes); err != nil {
		return nil, fmt.Errorf("%s: expected a list of cases, such as \"- {command: git push, want: ask}\": %w", name, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var cases []policyCase
	if err := decoder.Decode(&cases); err != nil && !errors.Is(err, io.EOF) {
		text := strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), " not found in type cli.policyCase", " is not known")
		return nil, fmt.Errorf("%s: %s", name, text)
	}
	for i := range cases {
		cases[i].line = nodes[i].Line
	}
	return cases, nil
}

func (c *policyCase) check() error {
	if c.Command != "" {
		if c.Tool != "" && c.Tool != "shell" || c.Args != nil {
			return errors.New("command stands for the tool shell and its arguments: leave tool and args out")
		}
		c.Tool, c.Args = "shell", map[string]any{"command": c.Command}
	}
	if c.Mode != "" {
		if _, err := permissions.ParseMode(c.Mode); err != nil {
			return err
		}
	}
	switch {
	case c.Tool == "":
		return errors.New("a case needs tool and args, or command")
	case c.Want != "allow" && c.Want != "ask" && c.Want != "deny":
		return fmt.Errorf("want is %q: write allow, ask or deny", c.Want)
	case c.Headless && c.Want == "ask":
		return errors.New("nobody is asked with headless: want is allow or deny")
	}
	return nil
}

func (c *policyCase) try(ctx context.Context, file string, a *agent.Agent, snapshot *core.Snapshot) (caseResult, error) {
	where := fmt.Sprintf("%s:%d", file, c.line)
	if c.Args == nil {
		c.Args = map[string]any{}
	}
	args, err := json.Marshal(c.Args)
	if err != nil {
		return caseResult{}, cmdutil.Usagef("%s: args: %w", where, err)
	}
	policy := a.Policy()
	if p, ok := policy.(*permissions.Policy); ok && c.Mode != "" {
		policy = p.WithMode(permissions.Mode(c.Mode))
	}
	t, err := try(ctx, a, policy, snapshot, c.Tool, string(args))
	if err != nil {
		return caseResult{}, fmt.Errorf("%s: %w", where, err)
	}
	v := t.verdict(c.Headless)
	return caseResult{
		Where: where, Tool: c.Tool, Args: string(args), Want: c.Want, Got: v.Decision, Rule: v.Rule, Source: v.Source, Reason: v.Reason, Why: c.Why,
		Passed: v.Decision == c.Want && (c.Rule == "" || c.Rule == v.Rule), wantRule: c.Rule,
	}, nil
}

func printCases(out io.Writer, results []caseResult, asJSON bool) error {
	failed := 0
	for _, r := range results {
		if !r.Passed {
			failed++
		}
	}
	if asJSON {
		if err := cmdutil.WriteJSON(out, results); err != nil {
			return err
		}
	} else {
		var b strings.Builder
		for _, r := range results {
			r.print(&b)
		}
		fmt.Fprintf(&b, "%s, %d failed\n", cmdutil.Plural(len(results), "case"), failed)
		if _, err := io.WriteString(out, b.String()); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	return nil
}

func (r caseResult) print(b *strings.Builder) {
	if r.Passed {
		return
	}
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
