package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

const planPrompt = `Plan the task below; do not work on it. Read what you need of the workspace first. Split the task into small steps that can be verified one by one, in as few steps as make sense.

Answer with one JSON object and nothing else:
{"steps": [{"name": "short-name", "title": "what to do", "needs": ["names of the steps that must be done before"], "files": ["paths that the step will change"], "criteria": [{"name": "name", "kind": "command", "command": "a command that succeeds when the step is done"}]}]}

The criteria of a step are optional. These commands decide about the whole task in the end: %s

Task:
%s`

func newPlanCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	var output string
	cmd := &cobra.Command{
		Use:   "plan [flags] [TASK|FILE|-]",
		Short: "Write a plan of a task, to review and to run",
		Long: "Let the model read the workspace and split a task into steps that depend on each other, and print them as JSON.\n" +
			"Nothing is changed. Edit the plan as you like; agent task run takes it.",
		Example: "  agent task plan -o plan.json \"Add a cache to the loader\"\n  agent task run plan.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.flags.Extra = append(o.flags.Extra, config.Flag{Name: "agent task plan", Key: "permissions.mode", Value: string(permissions.ModeReadOnly)})
			return o.plan(cmd.Context(), args, output)
		},
	}
	cmdutil.FlagSection(cmd.Flags(), cmdutil.SessionSection, o.registerCriteria)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the plan to this new `FILE`")
	o.registerSession(cmd.Flags())
	return cmd
}

func (o *options) plan(ctx context.Context, args []string, output string) error {
	if output != "" && !filepath.IsAbs(output) {
		output = filepath.Join(o.Cwd, output)
	}
	if _, err := os.Lstat(output); output != "" && err == nil {
		return fmt.Errorf("%s exists; choose another name, or remove it", output)
	}
	text, err := o.input(ctx, args)
	if err != nil {
		return err
	}
	if o.set, err = o.flags.Load(o.IO); err != nil {
		return err
	}
	t, err := parse(text)
	if err != nil {
		return err
	}
	if err := o.describe(&t); err != nil {
		return err
	}
	t.Steps = nil
	if err := bead.Check(t); err != nil {
		return &config.Error{Key: "task", Err: err}
	}
	opts := agent.SessionOptions{}
	if opts.Provider, err = o.set.Providers(ctx); err != nil {
		return err
	}
	if err := o.set.SessionOptions(&opts); err != nil {
		return err
	}
	a, err := agent.Open(ctx, o.set.AgentOptions(o.flags.Logger(o.IO)))
	if err != nil {
		return err
	}
	defer a.Close()
	watched, stop := cmdutil.Interrupts(ctx, o.Err, func() {})
	err = steps(watched, a, opts, &t)
	if sig := stop(); sig != nil {
		err = sig
	}
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(planFile{Description: t.Description, Criteria: t.Criteria, Steps: t.Steps}, "", "  ")
	if err != nil {
		return err
	}
	if data = append(data, '\n'); output == "" {
		_, err = o.Out.Write(data)
		return err
	}
	return writeFile(output, data)
}

// steps asks for the steps of a task; a plan that is invalid is asked for once more.
func steps(ctx context.Context, a *agent.Agent, opts agent.SessionOptions, t *event.TaskStart) error {
	s, err := a.NewSession(ctx, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	var commands []string
	for _, c := range t.Criteria {
		if c.Command != "" {
			commands = append(commands, c.Command)
		}
	}
	input := fmt.Sprintf(planPrompt, strings.Join(commands, "; "), t.Description)
	for range 2 {
		out, submitErr := s.Submit(ctx, core.TextInput(input))
		if submitErr != nil {
			return submitErr
		}
		if err = readSteps(out.Text, t); err == nil {
			return nil
		}
		input = fmt.Sprintf("This is not a plan: %v. Answer again with nothing but the JSON object.", err)
	}
	return fmt.Errorf("the model gave no plan: %w", err)
}

// readSteps reads the steps in an answer.
func readSteps(text string, t *event.TaskStart) error {
	begin, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if begin < 0 || end < begin {
		return errors.New("there is no JSON object")
	}
	var p planFile
	if err := json.Unmarshal([]byte(text[begin:end+1]), &p); err != nil {
		return err
	}
	if len(p.Steps) == 0 {
		return errors.New("there are no steps")
	}
	t.Steps = p.Steps
	return bead.Check(*t)
}
