package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type undoOptions struct {
	*cmdutil.IO
	to        uint64
	yes       bool
	overwrite bool
	agent.UndoOptions
}

func newUndoCmd(s *cmdutil.IO) *cobra.Command {
	o := &undoOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "Take back what a session changed in files",
		Long: "Take back what the tool calls of a session changed in files since the last input that changed\n" +
			"some, or since an earlier one (--to). " + laterChanges + " --redo takes the last undo back.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.Redo, "redo", false, "take the last undo back")
	return cmd
}

const laterChanges = "What was changed in a file since is merged; where\n" +
	"that is not possible, the file stays as it is unless you choose otherwise, and is named."

func newRestoreCmd(s *cmdutil.IO) *cobra.Command {
	o := &undoOptions{IO: s}
	o.Restore = true
	cmd := &cobra.Command{
		Use:   "restore ID",
		Short: "Bring files to what they were in a session",
		Long: "Bring the files that a session changed to what they were at its end or before one of its inputs\n" +
			"(--to), whether its changes were taken back since or not. " + laterChanges + "\n" +
			"'agent sessions undo --redo' takes it back.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func (o *undoOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Uint64Var(&o.to, "to", 0, "go back to before the input with this `number`; 'agent sessions diff' lists them")
	f.BoolVar(&o.overwrite, "overwrite", false, "restore files even if later changes are lost")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "only show what would be restored")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
}

func (o *undoOptions) run(ctx context.Context, prefix string) error {
	if o.Redo && o.to > 0 {
		return cmdutil.Usagef("--redo takes the last undo back: it cannot be combined with --to")
	}
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	o.Since = event.Seq(o.to)
	lost := map[string]bool{}
	o.Overwrite = func(path string) bool { return o.overwrite || lost[path] }
	opts := o.UndoOptions
	opts.DryRun = true
	planned, err := agent.UndoSession(ctx, home, id, opts)
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	fmt.Fprint(o.Out, display.Reverted(planned, true))
	if o.DryRun {
		return nil
	}
	n := len(planned.Steps)
	for _, c := range planned.Conflicts {
		if !c.Changed || o.yes || !o.InTTY || !o.ErrTTY {
			continue
		}
		if lost[c.Path], err = o.Confirm(ctx, fmt.Sprintf("Restore %s, and lose what was changed in it since?", display.OneLine(c.Path, 500)), false); err != nil {
			return err
		} else if lost[c.Path] {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	if ok, err := o.Confirm(ctx, fmt.Sprintf("Restore %s?", display.Plural(n, "file")), o.yes); err != nil {
		return err
	} else if !ok {
		fmt.Fprintln(o.Err, "Nothing was changed.")
		return nil
	}
	done, err := agent.UndoSession(ctx, home, id, o.UndoOptions)
	if err != nil {
		return err
	}
	if n := len(done.Conflicts); n > len(planned.Conflicts) {
		fmt.Fprint(o.Out, display.Reverted(changes.Reverted{Conflicts: done.Conflicts}, false))
		return errors.New("not everything was restored")
	}
	fmt.Fprintf(o.Out, "Restored %s.\n", display.Plural(len(done.Steps), "file"))
	return nil
}
