package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/snapshot"
	"github.com/seed-009c0928/agent/core/worktree"
)

// NewCmd returns agent worktrees.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("worktrees", "Manage copies of the workspace that sessions worked in",
		newListCmd(s), newDiffCmd(s), newApplyCmd(s), newBranchCmd(s), newRemoveCmd(s))
}

// find returns the worktree of that name: of the current directory, or the only
// one there is.
func find(s *cmdutil.IO, name string) (*worktree.Worktree, error) {
	home, err := s.AgentHome()
	if err != nil {
		return nil, err
	}
	all, err := worktree.List(home, "")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i worktree.Info) bool { return i.Name != name })
	cwd, err := filepath.EvalSymlinks(s.Cwd)
	if err != nil {
		return nil, err
	}
	root := cwd
	if here := slices.IndexFunc(all, func(i worktree.Info) bool { return i.Root == cwd }); here < 0 && len(all) == 1 {
		root = all[0].Root
	} else if here < 0 && len(all) > 1 {
		return nil, cmdutil.Usagef("there are several worktrees %q: run the command in the directory of one; agent worktrees list --all shows them", name)
	}
	return worktree.Open(worktree.Options{
		Root: root, Home: home, Name: name, Excludes: []string{filepath.Join(cmdutil.UserHome(), ".config", "git", "ignore")},
	})
}

// with opens a worktree for a command.
func with(s *cmdutil.IO, name string, do func(w *worktree.Worktree) error) error {
	w, err := find(s, name)
	if err != nil {
		return err
	}
	return errors.Join(do(w), w.Close())
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the worktrees of this directory",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			home, err := s.AgentHome()
			if err != nil {
				return err
			}
			root := ""
			if !all {
				if root, err = filepath.EvalSymlinks(s.Cwd); err != nil {
					return err
				}
			}
			found, err := worktree.List(home, root)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, found)
			}
			if len(found) == 0 {
				fmt.Fprintln(s.Err, "No worktrees.")
			}
			for _, i := range found {
				fmt.Fprintf(s.Out, "%-20s %s  %s\n", i.Name, i.Created.Local().Format(time.DateTime), display.Printable(i.Dir))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all directories")
	cmdutil.JSONFlag(cmd, &asJSON)
	return cmd
}

func newDiffCmd(s *cmdutil.IO) *cobra.Command {
	var stat, asJSON bool
	cmd := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show what changed in a worktree",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(s, args[0], func(w *worktree.Worktree) error {
				state, err := w.State(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return cmdutil.WriteJSON(s.Out, info(state))
				}
				return write(s, state, !stat)
			})
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "list the files without their diffs")
	cmdutil.JSONFlag(cmd, &asJSON)
	return cmd
}

// stateInfo is the JSON of what changed.
type stateInfo struct {
	Files []event.FileChange `json:"files"`
	Left  []snapshot.Left    `json:"left"` // may have changed, and is not part of it
}

func info(state worktree.State) stateInfo {
	return stateInfo{Files: append([]event.FileChange{}, state.Files...), Left: append([]snapshot.Left{}, state.Left...)}
}

// write prints what changed.
func write(s *cmdutil.IO, state worktree.State, diffs bool) error {
	if len(state.Files)+len(state.Left) == 0 {
		fmt.Fprintln(s.Err, "Nothing changed.")
		return nil
	}
	out := bufio.NewWriter(s.Out)
	for _, f := range state.Files {
		fmt.Fprintln(out, display.FileChange(f))
		if diffs {
			fmt.Fprint(out, display.Printable(f.Diff))
		}
	}
	for _, l := range state.Left {
		fmt.Fprintf(out, "left   %s: %s\n", display.OneLine(l.Path, 500), l.Reason)
	}
	return out.Flush()
}

type applyOptions struct {
	*cmdutil.IO
	overwrite, yes bool
}

func newApplyCmd(s *cmdutil.IO) *cobra.Command {
	o := &applyOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "apply NAME",
		Short: "Make the changes of a worktree in the workspace",
		Long: "Make the changes of a worktree in the directory that it is a copy of; the index of git stays as it is.\n" +
			"What changed there since is merged; where that is not possible, the file stays as it is and is named.\n" +
			"The worktree remains.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(s, args[0], func(w *worktree.Worktree) error { return o.apply(cmd.Context(), w) })
		},
	}
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "replace files even if later changes are lost")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (o *applyOptions) apply(ctx context.Context, w *worktree.Worktree) error {
	state, err := w.State(ctx)
	if err != nil {
		return err
	}
	if err := write(o.IO, state, false); err != nil || len(state.Files) == 0 {
		return err
	}
	question := fmt.Sprintf("Change %s in %s?", display.Plural(len(state.Files), "file"), display.Printable(w.Info().Root))
	if ok, err := o.Confirm(ctx, question, o.yes); err != nil {
		return err
	} else if !ok {
		fmt.Fprintln(o.Err, "Nothing was changed.")
		return nil
	}
	conflicts, err := w.Apply(ctx, state.ID, o.overwrite)
	if err != nil {
		return err
	}
	for _, c := range conflicts {
		fmt.Fprintf(o.Out, "keep   %s: %s\n", display.OneLine(c.Path, 500), c.Reason)
	}
	if len(conflicts) > 0 {
		return errors.New("not everything was applied; --overwrite replaces these files")
	}
	fmt.Fprintln(o.Out, "Applied.")
	return nil
}

func newBranchCmd(s *cmdutil.IO) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "branch NAME [BRANCH]",
		Short: "Keep a worktree as a git branch",
		Long: "Make a branch in your repository of what is in a worktree: its commits, and one more with the rest.\n" +
			"Your index, HEAD and working tree stay as they are. The default BRANCH is agent/NAME.",
		Args: cmdutil.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(s, args[0], func(w *worktree.Worktree) error {
				branch, commit, err := w.Branch(cmd.Context(), strings.Join(args[1:], ""), message)
				if err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "%s %s\n", branch, commit)
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "Changes of the agent", "`TEXT` of the commit")
	return cmd
}

func newRemoveCmd(s *cmdutil.IO) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a worktree",
		Long:  "Remove a worktree with everything in it. If something changed there that is not applied, it asks.",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(s, args[0], func(w *worktree.Worktree) error {
				state, err := w.State(cmd.Context())
				if err != nil && !yes {
					return fmt.Errorf("%w; --yes removes the worktree all the same", err)
				}
				if n := len(state.Files) + len(state.Left); n > 0 {
					ok, err := s.Confirm(cmd.Context(), fmt.Sprintf("%s changed in worktree %s. Remove it?", display.Plural(n, "file"), args[0]), yes)
					if err != nil || !ok {
						return err
					}
				}
				return w.Remove()
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}
