package session

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type listOptions struct {
	*cmdutil.IO
	flags     setup.Flags
	all, json bool
	on        string
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions",
		Long: "List the sessions of this directory, most recently changed first. IDs are shortened to a prefix that\n" +
			"--resume and the other commands accept.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.on != "" {
				return o.runOn(cmd.Context())
			}
			return o.run()
		},
	}
	cmd.Flags().StringVar(&o.on, remote.Flag, "", "list the sessions of the service at `URL`")
	cmd.Flags().BoolVar(&o.all, "all", false, "list sessions of all directories, and of subagents")
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// listed is a session as list shows it.
type listed struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	Bytes   int64     `json:"bytes"`
	Cwd     string    `json:"cwd"`
	Text    string    `json:"text"`
	Parent  string    `json:"parent,omitempty"`
	ForkOf  string    `json:"forkOf,omitempty"`
	Moved   bool      `json:"moved,omitempty"`
	Log     string    `json:"log"`

	short string
}

func (o *listOptions) run() error {
	home, err := o.AgentHome()
	if err != nil {
		return err
	}
	found, err := store.List(agent.SessionsDir(home))
	if err != nil {
		fmt.Fprintf(o.Err, "agent: skipped unreadable sessions: %v\n", err)
	}
	dir := o.WorkDir(o.flags.Dir)
	list := []listed{}
	for _, l := range found {
		if o.all || l.Cwd == dir && l.Parent == "" {
			list = append(list, listed{l.ID, l.Created, l.Time, l.Size, l.Cwd, l.Text, l.Parent, l.Origin, l.Moved, l.Path, l.Short})
		}
	}
	switch {
	case o.json:
		return cmdutil.WriteJSON(o.Out, list)
	case len(list) == 0 && o.all:
		fmt.Fprintf(o.Err, "No sessions in %s.\n", agent.SessionsDir(home))
		return nil
	case len(list) == 0:
		fmt.Fprintf(o.Err, "No sessions of %s. Use --all to list those of all directories.\n", dir)
		return nil
	}
	return printList(o.Out, list, time.Now(), cmdutil.UserHome())
}

func printList(out io.Writer, list []listed, now time.Time, home string) error {
	t := cmdutil.NewTable(out, "ID", "AGE", "SIZE", "DIRECTORY", "FIRST INPUT")
	for _, l := range list {
		text := display.OneLine(l.Text, 60)
		if l.ForkOf != "" {
			text = "(fork) " + text
		}
		if l.Moved {
			text = "(moved) " + text
		}
		t.Row(l.short, cmdutil.Age(now.Sub(l.Changed)), cmdutil.Size(l.Bytes), display.PathTail(cmdutil.Tilde(l.Cwd, home), 60), text)
	}
	return t.Flush()
}
