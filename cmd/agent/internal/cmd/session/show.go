package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

type showOptions struct {
	*cmdutil.IO
	json, changes bool
	on            string
}

func newShowCmd(s *cmdutil.IO) *cobra.Command {
	o := &showOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a session's conversation",
		Long: "Print the conversation, with tool results shortened ('agent sessions export' writes them in full).\n" +
			"The number before each message is its record number, for 'agent sessions fork --at'.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.on != "" {
				return o.runOn(cmd.Context(), args[0])
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&o.on, remote.Flag, "", "show a session of the service at `URL`")
	cmd.Flags().BoolVar(&o.changes, "changes", false, "show the files that each input changed instead, as 'agent sessions diff --stat'")
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *showOptions) run(ctx context.Context, prefix string) error {
	if o.changes {
		return (&diffOptions{IO: o.IO, stat: true, json: o.json}).run(ctx, prefix)
	}
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(o.Out)
	var t transcript = &plainTranscript{out: out}
	if o.json {
		t = &jsonTranscript{out: out}
	}
	return errors.Join(transcribe(ctx, home, id, t), out.Flush())
}

// plainTranscript writes the conversation for a terminal.
type plainTranscript struct {
	out  io.Writer
	work *tui.Transcript // everything but messages
}

func (t *plainTranscript) begin(about store.Summary) {
	t.work = tui.NewTranscript(about.Cwd, false)
	fmt.Fprintf(t.out, "Session:   %s\n", about.ID)
	if about.Origin != "" {
		fmt.Fprintf(t.out, "Fork of:   %s\n", display.Printable(about.Origin))
	}
	fmt.Fprintf(t.out, "Directory: %s\nStarted:   %s\nChanged:   %s\n", display.OneLine(about.Cwd, 1000),
		about.Created.Local().Format(time.DateTime), about.Time.Local().Format(time.DateTime))
}

func (t *plainTranscript) show(e event.Event) {
	switch b := e.Body.(type) {
	case event.SessionStart:
		if b.Resumed {
			t.heading(e, "resumed with "+modelName(b.Provider, b.Model))
		}
	case event.User:
		t.message(e, "you", b.Content)
	case event.Steering:
		t.message(e, steeredBy(b), b.Content)
	case event.Message:
		who := "agent"
		if b.Partial {
			who = "agent (incomplete)"
		}
		t.message(e, who, b.Content)
	default:
		for _, l := range t.work.Lines(e) {
			fmt.Fprintln(t.out, l)
		}
	}
}

// steeredBy names the source of a message that was added while the agent worked.
func steeredBy(b event.Steering) string {
	if b.Source == "user" {
		return "you (steering)"
	}
	return b.Source + " (steering)"
}

func (t *plainTranscript) message(e event.Event, who string, content model.Parts) {
	t.heading(e, who)
	if text := strings.TrimSpace(display.Printable(partsText(content))); text != "" {
		fmt.Fprintln(t.out, text)
	}
}

func (t *plainTranscript) heading(e event.Event, text string) {
	fmt.Fprintf(t.out, "\n#%d %s, %s\n", e.Seq, display.Printable(text), e.Time.Local().Format(time.TimeOnly))
}

func (t *plainTranscript) end() {}
