package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// named returns the status of the task of a command's argument.
func named(ctx context.Context, s *cmdutil.IO, args []string) (home string, status bead.Status, err error) {
	if home, err = s.AgentHome(); err != nil {
		return "", status, err
	}
	dir, err := filepath.EvalSymlinks(s.Cwd)
	if err != nil {
		return "", status, err
	}
	if len(args) == 0 { // the last one of this directory
		all, err := agent.ListTasks(ctx, home)
		for _, t := range all {
			if t.Task.Workspace == dir {
				return home, t, nil
			}
		}
		return "", status, errors.Join(fmt.Errorf("there are no tasks of %s; agent task list --all shows those of other directories", dir), err)
	}
	status, err = find(ctx, home, dir, args)
	return home, status, err
}

func newStatusCmd(s *cmdutil.IO) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [ID]",
		Short: "Show the beads of a task, their states, criteria and cost",
		Args:  cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, status, err := named(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, status)
			}
			printStatus(s.Out, status)
			return nil
		},
	}
	cmdutil.JSONFlag(cmd, &asJSON)
	return cmd
}

func printStatus(out io.Writer, s bead.Status) {
	fmt.Fprintln(out, summary(s))
	if s.State == bead.Interrupted {
		fmt.Fprintf(out, "No process works on it; to continue: agent task resume %s\n", s.Task.Task)
	}
	fmt.Fprintf(out, "  %s\n  in %s\n", display.OneLine(s.Task.Description, 300), display.Printable(s.Task.Workspace))
	done := s.Done()
	for _, step := range s.Task.Steps {
		mark := " "
		if done[step.Name] {
			mark = "✓"
		}
		fmt.Fprintf(out, "  %s step %s: %s\n", mark, display.VisibleLine(step.Name, 80), display.OneLine(step.Title, 200))
	}
	for _, b := range s.Beads {
		place := ""
		if b.Worktree != "" {
			place = ", worktree " + b.Worktree
		}
		fmt.Fprintf(out, "bead %d %s, session %s%s\n", b.Bead, b.State, b.Child, place)
		if b.End != nil {
			n, _ := display.NoteOf(*b.End)
			fmt.Fprintf(out, "  %s\n", n.Text)
		}
		for _, g := range b.Guards {
			n, _ := display.NoteOf(g)
			fmt.Fprintf(out, "  %s\n", n)
		}
		for _, c := range b.Criteria {
			n, _ := display.NoteOf(c)
			fmt.Fprintf(out, "  %s\n", n)
		}
	}
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tasks of this directory",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := s.AgentHome()
			if err != nil {
				return err
			}
			dir, err := filepath.EvalSymlinks(s.Cwd)
			if err != nil {
				return err
			}
			found, err := agent.ListTasks(cmd.Context(), home)
			list := []bead.Status{}
			for _, t := range found {
				if all || t.Task.Workspace == dir {
					list = append(list, t)
				}
			}
			if asJSON {
				return errors.Join(err, cmdutil.WriteJSON(s.Out, list))
			}
			if len(list) == 0 {
				fmt.Fprintln(s.Err, "No tasks.")
			}
			interrupted := ""
			for _, t := range list {
				fmt.Fprintf(s.Out, "%s  %-11s %s  %s  %s\n", t.Task.Task, t.State, t.Changed.Local().Format(time.DateTime), beadCount(t), display.OneLine(t.Task.Description, 80))
				if t.State == bead.Interrupted {
					interrupted = cmp.Or(interrupted, t.Task.Task)
				}
			}
			if interrupted != "" {
				fmt.Fprintf(s.Err, "To continue an interrupted task: agent task resume %s\n", interrupted)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all directories")
	cmdutil.JSONFlag(cmd, &asJSON)
	return cmd
}

// beadCount tells how many beads a task has, and how many of them work side by side.
func beadCount(s bead.Status) string {
	text, beside := display.Plural(len(s.Beads), "bead"), 0
	for _, b := range s.Beads {
		if b.End == nil && b.Worktree != "" {
			beside++
		}
	}
	if beside > 1 {
		text += fmt.Sprintf(" (%d side by side)", beside)
	}
	return text
}

func newUndoCmd(s *cmdutil.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "Take back what a task changed in files",
		Long:  "Take back what all beads of a task changed. What was changed since, by you or others, is kept and listed.",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, status, err := named(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			left, err := agent.UndoTask(cmd.Context(), home, status.Task.Task)
			for _, path := range left {
				fmt.Fprintf(s.Err, "agent: kept %s: it was changed since\n", display.Printable(path))
			}
			if err == nil {
				fmt.Fprintf(s.Out, "task %s: its changes are taken back\n", status.Task.Task)
			}
			return err
		},
	}
	return cmd
}

func newExportCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "export [ID]",
		Short: "Print a task as JSONL for the tracker beads (bd import)",
		Long: "Print a task and the steps of its plan as issues in the JSONL format of the tracker beads, which bd import reads.\n" +
			"The other way, agent task run FILE.jsonl works on the issues of such a file that are open; they are printed as they\n" +
			"are then, closed as far as they are verified.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, status, err := named(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			enc := json.NewEncoder(s.Out)
			all, err := toIssues(status)
			if err != nil {
				return err
			}
			for _, i := range all {
				if err := enc.Encode(i); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newViewCmd(s *cmdutil.IO) *cobra.Command {
	flags := &setup.Flags{}
	cmd := &cobra.Command{
		Use:     "view [ID]",
		Short:   "Print a task as a web page: its board, and the sessions of its beads",
		Example: "  agent task view >task.html",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, status, err := named(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			set, err := flags.Load(s)
			if err != nil {
				return err
			}
			from := taskPages{page.Logs(home), home, status}
			return page.Export(cmd.Context(), s.Out, from, status.Task.Task, page.Price(set.Prices()), time.Local)
		},
	}
	flags.Register(cmd.Flags(), setup.DirFlag)
	return cmd
}

// taskPages is a [page.Source] of a task and the sessions of its beads.
type taskPages struct {
	page.Logs
	home   string
	status bead.Status
}

func (p taskPages) own(id string) bool { return id == p.status.Task.Task }

// Stat implements page.Source.
func (p taskPages) Stat(id string) (store.Summary, error) {
	if !p.own(id) {
		return p.Logs.Stat(id)
	}
	return store.Summary{ID: id, Cwd: p.status.Task.Workspace}, nil
}

// Read implements page.Source.
func (p taskPages) Read(ctx context.Context, id string, after event.Seq) iter.Seq2[event.Event, error] {
	if p.own(id) {
		return store.Read(ctx, filepath.Join(agent.TasksDir(p.home), id), "beads", after)
	}
	return p.Logs.Read(ctx, id, after)
}

// Running implements page.Source.
func (p taskPages) Running(id string) bool {
	if p.own(id) {
		return agent.TaskRunning(p.home, id)
	}
	return p.Logs.Running(id)
}

// writeFile writes a plan, but not over an existing file.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
