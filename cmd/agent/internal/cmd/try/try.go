package try

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type options struct {
	*cmdutil.IO
	flags                   setup.Flags
	apply, drop, stat, json bool
}

// NewCmd returns agent try.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "try COMMAND",
		Short: "Run a command and see what it would change, before it does",
		Long: "Run a shell command on a layer over the workspace: it sees its changes, the workspace does not. Then show\n" +
			"what it would create, change and delete, and ask whether to apply it. Without a terminal nothing is applied,\n" +
			"unless --apply is given. A command that a rule denies is not run.\n\n" +
			"It runs in the sandbox, on level namespace, without network. Effects that are not files of the workspace,\n" +
			"such as processes, are not shown, and what may differ from a real run is named. The exit code is that of\n" +
			"the command.",
		Example: "  agent try 'rm -rf build && make'\n" +
			"  agent try --drop --stat 'git clean -fdx'",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.apply, "apply", false, "apply the changes without asking")
	f.BoolVar(&o.drop, "drop", false, "only show the changes")
	f.BoolVar(&o.stat, "stat", false, "list the files without their diffs")
	cmdutil.JSONFlag(cmd, &o.json)
	o.flags.Register(f, setup.DirFlag|setup.SettingsFlags|setup.PermissionFlags|setup.DebugFlag)
	return cmd
}

func (o *options) run(ctx context.Context, command string) error {
	if o.apply && o.drop {
		return cmdutil.Usagef("--apply and --drop cannot be combined")
	}
	if strings.TrimSpace(command) == "" {
		return cmdutil.Usagef("the command is empty")
	}
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	opts := set.AgentOptions(o.flags.Logger(o.IO))
	opts.Home, opts.Plugins, opts.MCP = "", nil, agent.MCPOptions{}
	opts.Permissions.AgentHome = set.Home
	a, err := agent.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer a.Close()
	watched, stop := cmdutil.Interrupts(ctx, io.Discard, func() {})
	watched, cancel := context.WithCancel(watched)
	defer cancel()
	var output bytes.Buffer
	stdout, stderr := o.Out, o.Err
	if o.json {
		stdout, stderr = &output, &output
	}
	t, err := a.Try(watched, command, stdout, stderr)
	if sig := stop(); sig != nil {
		if t != nil {
			err = t.Close()
		}
		return errors.Join(sig, err)
	}
	if err != nil {
		return err
	}
	return errors.Join(o.settle(ctx, t, output.String()), t.Close())
}

// result is what is printed as JSON.
type result struct {
	ExitCode int               `json:"exitCode"`
	Output   string            `json:"output"`
	Notes    []string          `json:"notes"`
	Files    []agent.TriedFile `json:"files"`
	Limits   []string          `json:"limits"`
	Applied  bool              `json:"applied"`
	Skipped  []env.Skipped     `json:"skipped"`
}

// settle shows the changes, and applies them if that is wanted.
func (o *options) settle(ctx context.Context, t *agent.Trial, output string) error {
	apply := o.apply
	if !o.json {
		o.show(t)
		if !o.apply && !o.drop && o.InTTY && o.ErrTTY && len(t.Files) > 0 {
			var err error
			if apply, err = o.Confirm(ctx, "Apply these changes?", false); err != nil {
				return err
			}
		}
	}
	var skipped []env.Skipped
	if apply {
		var err error
		if skipped, err = t.Apply(ctx); err != nil {
			return err
		}
	}
	if o.json {
		r := result{ExitCode: t.Exit.Code, Output: output, Applied: apply}
		r.Notes, r.Limits = append([]string{}, t.Notes...), append([]string{}, t.Limits...)
		r.Files, r.Skipped = append([]agent.TriedFile{}, t.Files...), append([]env.Skipped{}, skipped...)
		if err := cmdutil.WriteJSON(o.Out, r); err != nil {
			return err
		}
	} else {
		o.tell(t, apply, skipped)
	}
	if len(skipped) > 0 {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	switch {
	case t.Exit.Code < 0:
		return fmt.Errorf("the command was ended by %s", t.Exit.Signal)
	case t.Exit.Code > 0:
		return &cmdutil.StatusError{Code: t.Exit.Code}
	}
	return nil
}

// show prints the changes.
func (o *options) show(t *agent.Trial) {
	for _, n := range t.Notes {
		fmt.Fprintf(o.Err, "agent: note: %s\n", display.OneLine(n, 500))
	}
	for _, f := range t.Files {
		line := display.FileChange(f.FileChange)
		if f.Below > 0 {
			line += fmt.Sprintf(" and %s below", display.Plural(f.Below, "path"))
		}
		if f.Refused != "" {
			line += " (not applied: " + display.OneLine(f.Refused, 500) + ")"
		}
		fmt.Fprintln(o.Out, line)
		if !o.stat {
			fmt.Fprint(o.Out, display.Printable(f.Diff))
		}
	}
	for _, l := range t.Limits {
		fmt.Fprintf(o.Err, "agent: this may not be all: %s\n", display.OneLine(l, 500))
	}
	if len(t.Files) == 0 {
		fmt.Fprintln(o.Err, "agent: it changes no files of the workspace")
	}
}

// tell says what became of the changes.
func (o *options) tell(t *agent.Trial, applied bool, skipped []env.Skipped) {
	switch {
	case len(t.Files) == 0:
	case applied:
		for _, s := range skipped {
			fmt.Fprintf(o.Err, "agent: not applied: %s: %s\n", display.OneLine(s.Path, 500), display.OneLine(s.Reason, 500))
		}
		if len(skipped) == 0 {
			fmt.Fprintln(o.Err, "agent: applied")
		}
	default:
		fmt.Fprintln(o.Err, "agent: nothing was applied")
	}
}
