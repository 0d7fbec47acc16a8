package session

import (
	"bufio"
	"context"
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
	if o.input > 0 && !slices.ContainsFunc(h.Turns, func(t changes.Turn) bool { return t.Seq == event.Seq(o.input) }) {
		return fmt.Errorf("the session has no input %d; without --input, diff lists those that changed files", o.input)
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
