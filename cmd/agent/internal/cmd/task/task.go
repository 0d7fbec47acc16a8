package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// NewCmd returns agent task.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("task", "Work on tasks until commands prove that they are complete",
		newRunCmd(s), newPlanCmd(s), newResumeCmd(s), newStatusCmd(s), newListCmd(s), newViewCmd(s), newUndoCmd(s), newExportCmd(s))
}

// options are those of all commands that work on a task.
type options struct {
	*cmdutil.IO
	flags                      setup.Flags
	format                     string
	verbose                    bool
	criteria                   []string
	done, rollback             bool
	tokenBudget, beads, rounds int
	worktrees                  int
	onTestChange               string
	set                        *setup.Setup
}

const exitHelp = "\n\nExit codes: 0 complete, 1 error, 2 usage, 3 configuration, 4 provider, 8 blocked: it needs you,\n" +
	"9 the token budget is used up, 10 the beads are used up and the criteria are not met, 130 SIGINT, 143 SIGTERM."

func (o *options) register(f *pflag.FlagSet) {
	cmdutil.FlagSection(f, cmdutil.LimitSection, func(f *pflag.FlagSet) {
		f.IntVar(&o.tokenBudget, "token-budget", 0, "tokens that the task may use (0 = unlimited; default task.tokenBudget)")
		f.IntVar(&o.beads, "max-beads", 0, "beads, failed ones included (default task.maxBeads)")
		f.IntVar(&o.rounds, "rounds-per-bead", 0, "rounds of tool calls of each bead (default task.roundsPerBead)")
		f.IntVar(&o.worktrees, "worktrees", 0, "beads that may work at once, each in its own worktree (default task.worktrees)")
		f.StringVar(&o.onTestChange, "on-test-change", "", "`ACTION` when existing tests or criteria change: ask, fail or allow (default task.onTestChange)")
	})
	cmdutil.FlagSection(f, cmdutil.OutputSection, func(f *pflag.FlagSet) {
		f.StringVar(&o.format, "output-format", "text", "`FORMAT` of stdout: text, json (the status in the end) or stream-json (one event per line)")
		f.BoolVarP(&o.verbose, "verbose", "v", false, "show details of every tool result")
	})
	o.registerSession(f)
}

// registerSession adds the flags of the sessions in which the model works.
func (o *options) registerSession(f *pflag.FlagSet) {
	o.flags.Register(f, setup.DirFlag|setup.SettingsFlags|setup.BareFlag|setup.ProviderFlags|setup.ProfileFlag|setup.PromptFlags|setup.PermissionFlags|setup.ToolFlags|setup.DebugFlag)
}

func (o *options) check() error {
	switch {
	case o.format != "text" && o.format != "json" && o.format != "stream-json":
		return cmdutil.Usagef("--output-format %q: use text, json or stream-json", o.format)
	case o.onTestChange != "" && o.onTestChange != bead.AskTestChange && o.onTestChange != bead.FailTestChange && o.onTestChange != bead.AllowTestChange:
		return cmdutil.Usagef("--on-test-change %q: use ask, fail or allow", o.onTestChange)
	case o.tokenBudget < 0 || o.beads < 0 || o.rounds < 0 || o.worktrees < 0:
		return cmdutil.Usagef("--token-budget, --max-beads, --rounds-per-bead and --worktrees: use a number from 1")
	}
	return nil
}

func newRunCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "run [flags] [TASK|FILE|-]",
		Short: "Work on a task until its criteria are met",
		Long: "Work on a task in beads: small units of work, each in a new session, after which commands verify the workspace.\n" +
			"The task is complete when all criteria are met, never because the model says so. TASK is a sentence, FILE a\n" +
			"Markdown file, a plan of agent task plan, or a JSONL file of beads; - reads stdin, such as an issue's text.\n\n" +
			"Without --criteria, the tests and linters of Go, npm, Cargo, pytest and make are found in the directory, and\n" +
			"shown before the start. Nothing is asked: commands run in the sandbox, which is required, and calls that need\n" +
			"approval are denied. agent task undo takes back what the task changed." + exitHelp,
		Example: "  agent task run \"Fix the failing test in cache.go\"\n" +
			"  agent task run --criteria 'go test -race ./...' --token-budget 500000 task.md\n" +
			"  gh issue view 12 | agent task run -",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmdutil.FlagSection(cmd.Flags(), cmdutil.SessionSection, func(f *pflag.FlagSet) {
		o.registerCriteria(f)
		f.BoolVar(&o.rollback, "rollback", false, "take back what a failed bead changed")
	})
	o.register(cmd.Flags())
	return cmd
}

func (o *options) registerCriteria(f *pflag.FlagSet) {
	f.StringArrayVar(&o.criteria, "criteria", nil, "`COMMAND` that must succeed, instead of what is found; or KIND=VALUE with lint, file (PATH) or contains (PATH:TEXT)")
	f.BoolVar(&o.done, "require-done", false, "the answer must also end with the line "+bead.Marker)
}

func (o *options) run(ctx context.Context, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	text, err := o.input(ctx, args)
	if err != nil {
		return err
	}
	if err := o.load(); err != nil {
		return err
	}
	t, err := parse(text)
	if err != nil {
		return err
	}
	if err := o.describe(&t); err != nil {
		return err
	}
	if err := bead.Check(t); err != nil {
		return &config.Error{Key: "task", Err: err}
	}
	return o.work(ctx, func(a *agent.Agent, opts agent.TaskOptions) (*agent.Task, error) { return a.StartTask(ctx, t, opts) })
}

func newResumeCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "resume [flags] [ID]",
		Short: "Continue a task",
		Long: "Continue a task where it is: one that was interrupted, also by the end of its process, or one that is blocked or\n" +
			"exhausted. Limits that are given replace those of the task. Without an ID, the last task of this directory that\n" +
			"is not complete continues." + exitHelp,
		Example: "  agent task resume\n  agent task resume --max-beads 30 k3v7",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.resume(cmd.Context(), args) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *options) resume(ctx context.Context, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.load(); err != nil {
		return err
	}
	s, err := find(ctx, o.set.Home, o.set.Dir, args)
	if err != nil {
		return err
	}
	if s.Task.Workspace != o.set.Dir {
		return cmdutil.Usagef("task %s is of %s: run the command there, or with --cd", s.Task.Task, s.Task.Workspace)
	}
	limits := bead.Limits{TokenBudget: o.tokenBudget, MaxBeads: o.beads, Rounds: o.rounds, TestChange: o.onTestChange, Worktrees: o.worktrees}
	return o.work(ctx, func(a *agent.Agent, opts agent.TaskOptions) (*agent.Task, error) {
		return a.ResumeTask(ctx, s.Task.Task, limits, opts)
	})
}

// find returns the status of the task that is named, or of the last one of a directory
// that is not complete.
func find(ctx context.Context, home, dir string, args []string) (bead.Status, error) {
	if len(args) > 0 {
		id, err := agent.FindTask(home, args[0])
		if err != nil {
			return bead.Status{}, err
		}
		return agent.TaskStatus(ctx, home, id)
	}
	all, err := agent.ListTasks(ctx, home)
	for _, s := range all {
		if s.Task.Workspace == dir && s.State != bead.Committed && s.Reason != bead.ReasonUndone {
			return s, nil
		}
	}
	return bead.Status{}, errors.Join(fmt.Errorf("no task of %s is left to continue; agent task list shows all", dir), err)
}

// load reads the settings, for a run without questions.
func (o *options) load() (err error) {
	if !o.flags.Changed("permission-mode") && !o.flags.Changed("dangerously-skip-permissions") {
		o.flags.Extra = append(o.flags.Extra, config.Flag{Name: "agent task", Key: "permissions.mode", Value: string(permissions.ModeWorkspace)})
	}
	o.set, err = o.flags.Load(o.IO)
	return err
}

// input returns the text of the task: an argument, a file or stdin.
func (o *options) input(ctx context.Context, args []string) (string, error) {
	text := strings.TrimSpace(strings.Join(args, " "))
	if text == "-" || text == "" && !o.InTTY {
		in, err := cmdutil.ReadAll(ctx, o.In)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(in)
	} else if len(args) == 1 && !strings.ContainsAny(text, " \n") {
		path := text
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Cwd, path)
		}
		data, err := os.ReadFile(path)
		switch ext := filepath.Ext(text); {
		case err == nil:
			text = strings.TrimSpace(string(data))
		case ext == ".md" || ext == ".json" || ext == ".jsonl" || ext == ".txt":
			return "", fmt.Errorf("read the task: %w", err)
		}
	}
	if text == "" {
		return "", cmdutil.Usagef("no task: pass a sentence or a file, or pipe one to stdin with -")
	}
	return text, nil
}

// describe fills in what flags and settings say of a task.
func (o *options) describe(t *event.TaskStart) error {
	set := o.set.Settings.Task
	own, err := criteriaOf(o.criteria)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		t.Criteria = own
	}
	if len(t.Criteria) == 0 {
		root, err := os.OpenRoot(o.set.Dir)
		if err != nil {
			return err
		}
		t.Criteria = bead.Detect(root.FS())
		if err := root.Close(); err != nil {
			return err
		}
	}
	if o.done {
		t.Criteria = append(t.Criteria, event.TaskCriterion{Name: "done", Kind: bead.DoneMarker})
	}
	t.Task, t.Workspace, t.Rollback = agent.NewTaskID(), o.set.Dir, o.rollback
	t.TokenBudget = cmp.Or(o.tokenBudget, set.TokenBudget)
	t.MaxBeads, t.Rounds = cmp.Or(o.beads, set.MaxBeads), cmp.Or(o.rounds, set.RoundsPerBead)
	t.TestChange, t.Worktrees = cmp.Or(o.onTestChange, set.OnTestChange), cmp.Or(o.worktrees, set.Worktrees)
	return nil
}
