package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type diffOptions struct {
	*cmdutil.IO
	input uint64
	stat  bool
	json  bool
}

func newDiffCmd(s *cmdutil.IO) *cobra.Command {
	o := &diffOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "diff ID",
		Short: "Show what a session changed in files",
		Long: "Print what the tool calls of a session changed in files, input by input: edits, commands,\n" +
			"plugins and MCP servers alike. 'agent sessions undo' takes it back.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.input, "input", 0, "only the changes of the input with this `number`")
	f.BoolVar(&o.stat, "stat", false, "list the files without their diffs")
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *diffOptions) run(ctx context.Context, prefix string) error {
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	h, err := changes.Read(store.Read(ctx, agent.SessionsDir(home), id, 0))
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	turns := slices.DeleteFunc(h.Turns, func(t changes.Turn) bool {
		return len(t.Changes) == 0 || o.input > 0 && t.Seq != event.Seq(o.input)
	})
	if o.json {
		return cmdutil.WriteJSON(o.Out, jsonTurns(turns))
	}
	if len(turns) == 0 {
		fmt.Fprintln(o.Err, "No changes of files are recorded.")
		return nil
	}
	out := bufio.NewWriter(o.Out)
	for i, t := range turns {
		if i > 0 {
			fmt.Fprintln(out)
		}
		writeTurn(out, t, !o.stat)
	}
	return out.Flush()
}

// turnInfo is the JSON of a turn.
type turnInfo struct {
	Seq     event.Seq            `json:"seq"`
	Input   string               `json:"input"`
	Changes []event.FilesChanged `json:"changes"`
}

func jsonTurns(turns []changes.Turn) []turnInfo {
	list := []turnInfo{}
	for _, t := range turns {
		info := turnInfo{Seq: t.Seq, Input: t.Input}
		for _, c := range t.Changes {
			info.Changes = append(info.Changes, c.FilesChanged)
		}
		list = append(list, info)
	}
	return list
}

// writeTurn writes the files that a turn changed, with their diffs on request.
func writeTurn(out io.Writer, t changes.Turn, diffs bool) {
	fmt.Fprintf(out, "#%d %s\n", t.Seq, display.OneLine(t.Input, 100))
	for _, c := range t.Changes {
		undone := ""
		if c.Undone() {
			undone = " (undone)"
		}
		for _, f := range c.Files {
			fmt.Fprintf(out, "  %s%s\n", display.FileChange(f), undone)
			if diffs && f.Diff != "" {
				fmt.Fprint(out, display.Printable(f.Diff))
			}
		}
		for _, f := range c.Unrecorded {
			fmt.Fprintf(out, "  not recorded: %s: %s\n", display.OneLine(f.Path, 500), f.Reason)
		}
		if c.Left > 0 {
			fmt.Fprintf(out, "  … and %s more\n", display.Plural(c.Left, "file"))
		}
	}
}

type undoOptions struct {
	*cmdutil.IO
	to  uint64
	yes bool
	agent.UndoOptions
}

func newUndoCmd(s *cmdutil.IO) *cobra.Command {
	o := &undoOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "Take back what a session changed in files",
		Long: "Take back what the tool calls of a session changed in files since the last input that changed\n" +
			"some, or since an earlier one (--to). What was changed in a file since is merged; where that is not\n" +
			"possible, the file stays as it is and is named. --redo takes the last undo back.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.to, "to", 0, "go back to before the input with this `number`; 'agent sessions diff' lists them")
	f.BoolVar(&o.Redo, "redo", false, "take the last undo back")
	f.BoolVar(&o.Overwrite, "overwrite", false, "restore files even if later changes are lost")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "only show what would be restored")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
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
	opts := o.UndoOptions
	opts.DryRun = true
	planned, err := agent.UndoSession(ctx, home, id, opts)
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	fmt.Fprint(o.Out, display.Reverted(planned, true))
	if o.DryRun || len(planned.Steps) == 0 {
		return nil
	}
	if ok, err := o.Confirm(ctx, fmt.Sprintf("Restore %s?", display.Plural(len(planned.Steps), "file")), o.yes); err != nil {
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
