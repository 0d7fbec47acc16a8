package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// transcript writes a session's events. Its methods are called one at a time,
// begin and end once.
type transcript interface {
	begin(about store.Summary)
	show(e event.Event)
	// end is called also when the record could not be read to its end.
	end()
}

// transcribe writes what a session's record holds. What can be read of a
// damaged one is written before the error is returned.
func transcribe(cmd *cobra.Command, home, id string, t transcript) error {
	dir := agent.SessionsDir(home)
	about, err := store.Stat(dir, id)
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	t.begin(about)
	for e, readErr := range store.Read(cmd.Context(), dir, id, 0) {
		if err = readErr; err != nil {
			break
		}
		t.show(e)
	}
	t.end()
	return setup.SessionAdvice(err, id)
}

func newSessionsShow(s *cmdutil.IO) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a session's conversation",
		Long: "show prints what was said and done in a session. The number before each speaker is that of the record,\n" +
			"for 'agent sessions fork --at'. 'agent sessions export' gives results in full.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, id, err := setup.FindSession(s, args[0])
			if err != nil {
				return err
			}
			out := bufio.NewWriter(s.Out)
			var t transcript = &plainTranscript{out: out}
			if asJSON {
				t = &jsonTranscript{out: out}
			}
			return errors.Join(transcribe(cmd, home, id, t), out.Flush())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events as JSON")
	return cmd
}

func newSessionsExport(s *cmdutil.IO) *cobra.Command {
	var form, file string
	cmd := &cobra.Command{
		Use:     "export ID",
		Short:   "Write a session as Markdown or JSON",
		Example: "  agent sessions export 0198a2c4 -o session.md\n  agent sessions export 0198a2c4 --format json | jq '.[] | select(.type == \"tool_result\")'",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if form != "markdown" && form != "json" {
				return cmdutil.Usagef("--format %q: use markdown or json", form)
			}
			home, id, err := setup.FindSession(s, args[0])
			if err != nil {
				return err
			}
			to := s.Out
			if file != "" {
				if !filepath.IsAbs(file) {
					file = filepath.Join(s.Cwd, file)
				}
				f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
				if err != nil {
					return fmt.Errorf("--output: %w", err)
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				to = f
			}
			out := bufio.NewWriter(to)
			var t transcript = &jsonTranscript{out: out}
			if form == "markdown" {
				t = newMarkdownTranscript(out)
			}
			return errors.Join(transcribe(cmd, home, id, t), out.Flush())
		},
	}
	cmd.Flags().StringVar(&form, "format", "markdown", "`FORMAT`: markdown, with the tool calls folded away, or json, the array of events")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`, readable by its owner only, and not to stdout")
	return cmd
}

// jsonTranscript writes the array of events.
type jsonTranscript struct {
	out   io.Writer
	count int
}

func (t *jsonTranscript) begin(store.Summary) { _, _ = io.WriteString(t.out, "[") }

func (t *jsonTranscript) show(e event.Event) {
	data, err := e.MarshalJSON()
	if err != nil { // it was just read from JSON
		return
	}
	if t.count++; t.count > 1 {
		_, _ = io.WriteString(t.out, ",")
	}
	_, _ = fmt.Fprintf(t.out, "\n%s", data)
}

func (t *jsonTranscript) end() { _, _ = io.WriteString(t.out, "\n]\n") }

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
			t.head(e, "resumed with "+modelName(b.Provider, b.Model))
		}
	case event.User:
		t.said(e, "you", b.Content)
	case event.Steering:
		t.said(e, steeredBy(b), b.Content)
	case event.Message:
		who := "agent"
		if b.Partial {
			who = "agent (incomplete)"
		}
		t.said(e, who, b.Content)
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

func (t *plainTranscript) said(e event.Event, who string, content model.Parts) {
	t.head(e, who)
	if text := strings.TrimSpace(display.Printable(partsText(content))); text != "" {
		fmt.Fprintln(t.out, text)
	}
}

func (t *plainTranscript) head(e event.Event, who string) {
	fmt.Fprintf(t.out, "\n#%d %s, %s\n", e.Seq, display.Printable(who), e.Time.Local().Format(time.TimeOnly))
}

func (t *plainTranscript) end() {}

// partsText is what a person can read of a message: its text, and a word on
// each image.
func partsText(content model.Parts) string {
	var b strings.Builder
	for _, p := range content {
		switch p := p.(type) {
		case model.Text:
			b.WriteString(p.Text)
		case model.Image:
			fmt.Fprintf(&b, "\n[image %s, %s]\n", p.MediaType, cmdutil.Size(int64(max(p.Bytes, len(p.Data)))))
		}
	}
	return b.String()
}

func modelName(provider, name string) string {
	if provider == "" {
		return name
	}
	return provider + "/" + name
}
