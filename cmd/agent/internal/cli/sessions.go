package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func newSessions(s *streams) *cobra.Command {
	return group("sessions", "List the sessions, show, export, fork, delete and repair them",
		newSessionsList(s), newSessionsShow(s), newSessionsExport(s), newSessionsFork(s), newSessionsDelete(s), newSessionsRepair(s))
}

// agentHome returns the directory of the agent's own files. No settings are
// read for it, so that sessions can be had while these are broken.
func (s *streams) agentHome() (string, error) {
	home := config.Home(config.LoadOptions{Env: s.env, Home: userHome(), Cwd: s.cwd})
	if home == "" {
		return "", &config.Error{Err: errors.New("there is no home directory to keep sessions in: set HOME or AGENT_HOME")}
	}
	return home, nil
}

// userHome returns the person's home directory, or "".
func userHome() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// findSession returns the home and the id of the session that an argument
// means.
func (s *streams) findSession(prefix string) (home, id string, err error) {
	if home, err = s.agentHome(); err != nil {
		return "", "", err
	}
	id, err = store.Find(agent.SessionsDir(home), prefix)
	if errors.Is(err, store.ErrAmbiguous) {
		err = &usageError{err}
	}
	return home, id, err
}

// sessionAdvice adds to an error what can be done about a damaged session.
func sessionAdvice(err error, id string) error {
	if errors.Is(err, store.ErrCorrupt) {
		return advise(err, fmt.Sprintf("agent sessions repair %s puts the damaged end aside, so that the session can be gone on with.\n", id))
	}
	return err
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

func newSessionsList(s *streams) *cobra.Command {
	var all, asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of this directory, the last changed first",
		Long: "list shows the sessions that were started in this directory. An id is shortened to what is enough\n" +
			"for --resume and for the other commands.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			home, err := s.agentHome()
			if err != nil {
				return err
			}
			list, err := store.List(agent.SessionsDir(home))
			if err != nil {
				fmt.Fprintf(s.err, "agent: sessions that cannot be read are left out: %v\n", err)
			}
			where := s.place(dir)
			infos := []sessionInfo{}
			for _, l := range list {
				if all || l.Cwd == where && l.Parent == "" {
					infos = append(infos, sessionInfo{l.ID, l.Created, l.Time, l.Size, l.Cwd, l.Text, l.Parent, l.Origin, l.Path, l.Short})
				}
			}
			switch {
			case asJSON:
				return printJSON(s.out, infos)
			case len(infos) == 0 && all:
				fmt.Fprintf(s.err, "There are no sessions in %s.\n", agent.SessionsDir(home))
				return nil
			case len(infos) == 0:
				fmt.Fprintf(s.err, "There are no sessions of %s; --all lists those of all directories.\n", where)
				return nil
			}
			return printSessions(s.out, infos, time.Now(), userHome())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the sessions of all directories, and those of subagents")
	cmd.Flags().StringVarP(&dir, "cd", "C", "", "list those of `DIR`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// place returns the directory that a session has as its own when it is started
// in dir, "" for the present one. It may be gone.
func (s *streams) place(dir string) string {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.cwd, dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}

func printSessions(out io.Writer, infos []sessionInfo, now time.Time, home string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tAGE\tSIZE\tDIRECTORY\tFIRST INPUT")
	for _, i := range infos {
		text := display.OneLine(i.Text, 60)
		if i.ForkOf != "" {
			text = "(fork) " + text
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.short, age(now.Sub(i.Changed)), size(i.Bytes), display.OneLine(tilde(i.Cwd, home), 60), text)
	}
	return w.Flush()
}

// age is how long ago something was, in its largest unit.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// size is a number of bytes in its largest unit.
func size(n int64) string {
	units := []string{"B", "kB", "MB", "GB"}
	f, i := float64(n), 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1000
	}
	if i == 0 || f >= 10 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// tilde shortens a path below the home directory.
func tilde(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}

func newSessionsFork(s *streams) *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Copy a session, up to a record, to go on from there another way",
		Long: "fork makes a new session whose records up to there are the same, and prints its id.\n" +
			"The session itself stays as it is, and may be in use. 'agent sessions show' shows the records' numbers.\n" +
			"The outputs that the records refer to are kept for the fork, also when the session is deleted.",
		Example: "  agent sessions fork 0198a2c4 --at 57\n" +
			"  agent exec --resume \"$(agent sessions fork 0198a2c4)\" \"Try it another way\"",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at == 0 {
				return &usageError{errors.New("--at 0: the records are numbered from 1")}
			}
			home, id, err := s.findSession(args[0])
			if err != nil {
				return err
			}
			fork, err := agent.ForkSession(cmd.Context(), home, id, event.Seq(at))
			if err != nil {
				return sessionAdvice(err, id)
			}
			_, err = fmt.Fprintln(s.out, fork)
			return err
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "leave out the records after number `SEQ`")
	return cmd
}

func newSessionsDelete(s *streams) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete sessions, with the outputs that were kept for them",
		Args:  usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			var home string
			var ids []string
			for _, arg := range args { // all are known before one is deleted
				h, id, err := s.findSession(arg)
				if err != nil {
					return err
				}
				home, ids = h, append(ids, id)
			}
			if !yes {
				ok, err := s.confirm(fmt.Sprintf("Delete %s for good (%s)?", plural(len(ids), "session"), strings.Join(ids, ", ")))
				if err != nil {
					return err
				}
				if !ok {
					fmt.Fprintln(s.err, "Nothing was deleted.")
					return nil
				}
			}
			var failed []error
			for _, id := range ids {
				if err := agent.DeleteSession(home, id); err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintf(s.out, "Deleted %s.\n", id)
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirm asks the person before something is deleted; without one at a
// terminal it is a usage error.
func (s *streams) confirm(question string) (bool, error) {
	yes, err := s.agrees(question)
	if err == nil && !yes {
		fmt.Fprintln(s.err, "Nothing was deleted.")
	}
	return yes, err
}

// agrees asks the person; without one at a terminal it is a usage error.
func (s *streams) agrees(question string) (bool, error) {
	if !s.inTTY || !s.errTTY {
		return false, &usageError{errors.New("nobody is there to be asked: give --yes")}
	}
	fmt.Fprintf(s.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("stdin: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

func newSessionsRepair(s *streams) *cobra.Command {
	var look bool
	cmd := &cobra.Command{
		Use:   "repair ID",
		Short: "Put the damaged end of a session's record aside",
		Long: "repair looks for the first record that cannot be read and cuts it off, with all after it: what follows\n" +
			"a hole makes no conversation. What is cut off is added to a file beside the record, ID.jsonl.torn.\n" +
			"A last record that a crash cut off is also put aside when the session is next gone on with.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, id, err := s.findSession(args[0])
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
			return printDamage(s.out, id, damage)
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
	lines, does := plural(d.Lines, "line")+" ("+size(d.Bytes)+") from there on", "would be put aside"
	if d.Saved != "" {
		does = "put aside, in " + d.Saved
	}
	_, err := fmt.Fprintf(out, "%s left, %s %s.\n", plural(d.Line-1, "record"), lines, does)
	return err
}
