package session

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("sessions", "List the sessions, show, export, fork, delete and repair them",
		newSessionsList(s), newSessionsShow(s), newSessionsExport(s), newSessionsFork(s), newSessionsDelete(s), newSessionsRepair(s))
}

// sessionInfo is a session as lists show it.
type sessionInfo struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	Bytes   int64     `json:"bytes"`
	Cwd     string    `json:"cwd"`
	Text    string    `json:"text"`
	Parent  string    `json:"parent,omitempty"`
	ForkOf  string    `json:"forkOf,omitempty"`
	Log     string    `json:"log"`

	short string
}

func newSessionsList(s *cmdutil.IO) *cobra.Command {
	var all, asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of this directory, the last changed first",
		Long: "list shows the sessions that were started in this directory. An id is shortened to what is enough\n" +
			"for --resume and for the other commands.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			home, err := s.AgentHome()
			if err != nil {
				return err
			}
			list, err := store.List(agent.SessionsDir(home))
			if err != nil {
				fmt.Fprintf(s.Err, "agent: sessions that cannot be read are left out: %v\n", err)
			}
			where := s.WorkDir(dir)
			infos := []sessionInfo{}
			for _, l := range list {
				if all || l.Cwd == where && l.Parent == "" {
					infos = append(infos, sessionInfo{l.ID, l.Created, l.Time, l.Size, l.Cwd, l.Text, l.Parent, l.Origin, l.Path, l.Short})
				}
			}
			switch {
			case asJSON:
				return cmdutil.WriteJSON(s.Out, infos)
			case len(infos) == 0 && all:
				fmt.Fprintf(s.Err, "There are no sessions in %s.\n", agent.SessionsDir(home))
				return nil
			case len(infos) == 0:
				fmt.Fprintf(s.Err, "There are no sessions of %s; --all lists those of all directories.\n", where)
				return nil
			}
			return printSessions(s.Out, infos, time.Now(), cmdutil.UserHome())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the sessions of all directories, and those of subagents")
	cmd.Flags().StringVarP(&dir, "cd", "C", "", "list those of `DIR`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printSessions(out io.Writer, infos []sessionInfo, now time.Time, home string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tAGE\tSIZE\tDIRECTORY\tFIRST INPUT")
	for _, i := range infos {
		text := display.OneLine(i.Text, 60)
		if i.ForkOf != "" {
			text = "(fork) " + text
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.short, cmdutil.Age(now.Sub(i.Changed)), cmdutil.Size(i.Bytes), display.PathTail(cmdutil.Tilde(i.Cwd, home), 60), text)
	}
	return w.Flush()
}

func newSessionsFork(s *cmdutil.IO) *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Copy a session, up to a record, to go on from there another way",
		Long: "fork makes a new session whose records up to there are the same, and prints its id.\n" +
			"The session itself stays as it is, and may be in use. 'agent sessions show' shows the records' numbers.\n" +
			"The outputs that the records refer to are kept for the fork, also when the session is deleted.",
		Example: "  agent sessions fork 0198a2c4 --at 57\n" +
			"  agent exec --resume \"$(agent sessions fork 0198a2c4)\" \"Try it another way\"",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at == 0 {
				return cmdutil.Usagef("--at 0: the records are numbered from 1")
			}
			home, id, err := setup.FindSession(s, args[0])
			if err != nil {
				return err
			}
			fork, err := agent.ForkSession(cmd.Context(), home, id, event.Seq(at))
			if err != nil {
				return setup.SessionAdvice(err, id)
			}
			_, err = fmt.Fprintln(s.Out, fork)
			return err
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "leave out the records after number `SEQ`")
	return cmd
}

func newSessionsDelete(s *cmdutil.IO) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete sessions, with the outputs that were kept for them",
		Args:  cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var home string
			var ids []string
			for _, arg := range args { // all are known before one is deleted
				h, id, err := setup.FindSession(s, arg)
				if err != nil {
					return err
				}
				home, ids = h, append(ids, id)
			}
			question := fmt.Sprintf("Permanently delete %s (%s)?", cmdutil.Plural(len(ids), "session"), strings.Join(ids, ", "))
			if ok, err := s.Confirm(cmd.Context(), question, yes); err != nil {
				return err
			} else if !ok {
				fmt.Fprintln(s.Err, "Nothing was deleted.")
				return nil
			}
			var failed []error
			for _, id := range ids {
				if err := agent.DeleteSession(home, id); err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintf(s.Out, "Deleted %s.\n", id)
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func newSessionsRepair(s *cmdutil.IO) *cobra.Command {
	var look bool
	cmd := &cobra.Command{
		Use:   "repair ID",
		Short: "Put the damaged end of a session's record aside",
		Long: "repair looks for the first record that cannot be read and cuts it off, with all after it: what follows\n" +
			"a hole makes no conversation. What is cut off is added to a file beside the record, ID.jsonl.torn.\n" +
			"A last record that a crash cut off is also put aside when the session is next gone on with.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, id, err := setup.FindSession(s, args[0])
			if err != nil {
				return err
			}
			mend := store.Mend
			if look {
				mend = store.Check
			}
			damage, err := mend(cmd.Context(), agent.SessionsDir(home), id)
			if err != nil {
				return err
			}
			return printDamage(s.Out, id, damage)
		},
	}
	cmd.Flags().BoolVar(&look, "dry-run", false, "say what is damaged, and change nothing")
	return cmd
}

func printDamage(out io.Writer, id string, d *store.Damage) error {
	if d == nil {
		_, err := fmt.Fprintf(out, "Session %s is whole.\n", id)
		return err
	}
	what := fmt.Sprintf("line %d cannot be read", d.Line)
	if d.Torn {
		what = "the last record is cut off in the middle"
	}
	fmt.Fprintf(out, "Session %s: %s (%v).\n", id, what, d.Err)
	lines, does := cmdutil.Plural(d.Lines, "line")+" ("+cmdutil.Size(d.Bytes)+") from there on", "would be put aside"
	if d.Saved != "" {
		does = "put aside, in " + d.Saved
	}
	_, err := fmt.Fprintf(out, "%s left, %s %s.\n", cmdutil.Plural(d.Line-1, "record"), lines, does)
	return err
}
