package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/core/telemetry/otlp"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type traceOptions struct {
	*cmdutil.IO
	flags      setup.Flags
	json, otlp bool
}

func newTraceCmd(s *cmdutil.IO) *cobra.Command {
	o := &traceOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "trace ID",
		Short: "Show where a session's time went",
		Long: "Print the spans of a session and its subagents, made from the session log: inputs, model calls, tool calls,\n" +
			"questions. They are those that telemetry sends while a session is running; --otlp sends them now.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.otlp, "otlp", false, "send the spans to the collector of the settings telemetry.*")
	cmdutil.JSONFlag(cmd, &o.json)
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	return cmd
}

func (o *traceOptions) run(ctx context.Context, prefix string) error {
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	if o.otlp {
		return o.send(ctx, home, id)
	}
	spans, err := spansOf(ctx, home, id, false)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, spans)
	}
	out := bufio.NewWriter(o.Out)
	writeTree(out, spans)
	return out.Flush()
}

// send sends the spans to the collector.
func (o *traceOptions) send(ctx context.Context, home, id string) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	opts, err := set.TelemetryOptions(ctx)
	if err != nil {
		return err
	}
	opts.SampleRatio = nil // all
	var refused []error
	opts.Warn = func(message string) { refused = append(refused, errors.New(message)) }
	spans, err := spansOf(ctx, home, id, opts.Content)
	if err != nil {
		return err
	}
	e, err := otlp.Open(ctx, opts)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = e.Export(bounded, spans)
	if closed := e.Close(); err == nil {
		err = closed
	}
	if err == nil {
		fmt.Fprintf(o.Err, "%s sent to %s\n", display.Plural(len(spans), "span"), e.Stats().Endpoint)
		return nil
	}
	if len(refused) > 0 {
		return refused[0]
	}
	return err
}

// spansOf returns the spans of a session and its subagents. A subagent whose log is
// gone has none.
func spansOf(ctx context.Context, home, id string, content bool) ([]*telemetry.Span, error) {
	spans := []*telemetry.Span{}
	b := telemetry.NewBuilder(func(s *telemetry.Span) { spans = append(spans, s) })
	b.Content = content
	todo := []string{id}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for e, err := range store.Read(ctx, agent.SessionsDir(home), at, 0) {
			if at != id && errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return nil, setup.SessionAdvice(err, at)
			}
			if start, ok := e.Body.(event.SubagentStart); ok && !slices.Contains(todo, start.Child) {
				todo = append(todo, start.Child)
			}
			b.Add(e)
		}
	}
	b.Close()
	telemetry.Sort(spans)
	return spans, nil
}

// writeTree writes spans below their parents, a trace after the other.
func writeTree(out io.Writer, spans []*telemetry.Span) {
	below, known := map[string][]*telemetry.Span{}, map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	var roots []*telemetry.Span
	for _, s := range spans {
		if known[s.Parent] {
			below[s.Parent] = append(below[s.Parent], s)
		} else {
			roots = append(roots, s)
		}
	}
	var write func(s *telemetry.Span, first, rest string)
	write = func(s *telemetry.Span, first, rest string) {
		fmt.Fprintf(out, "%-48s %9s  %s\n", display.OneLine(first+s.Name, 48), s.Took().Round(time.Millisecond), display.OneLine(details(s), 300))
		for i, c := range below[s.ID] {
			if i == len(below[s.ID])-1 {
				write(c, rest+"└─ ", rest+"   ")
			} else {
				write(c, rest+"├─ ", rest+"│  ")
			}
		}
	}
	trace := ""
	for _, s := range roots {
		if s.Trace != trace {
			if trace != "" {
				fmt.Fprintln(out)
			}
			trace = s.Trace
			fmt.Fprintf(out, "Trace %s, %s\n", trace, s.Start.Local().Format(time.DateTime))
		}
		write(s, "", "")
	}
}

// details says in a few words what else is known of a span.
func details(s *telemetry.Span) string {
	var list []string
	if u := s.Usage; u.Total() > 0 {
		text := fmt.Sprintf("%s in", display.Count(u.Input))
		if u.CachedInput > 0 {
			text += fmt.Sprintf(" (%s cached)", display.Count(u.CachedInput))
		}
		list = append(list, text+fmt.Sprintf(", %s out", display.Count(u.Output)))
	}
	if s.First > 0 {
		list = append(list, "first token after "+s.First.String())
	}
	if s.Kind == telemetry.KindTool && s.Waited > 0 {
		list = append(list, "waited "+s.Waited.String()+" for you")
	}
	for _, m := range s.Moments {
		if m.Name == "gen_ai.retry" {
			list = append(list, "retried")
		}
	}
	if s.Error != "" {
		list = append(list, strings.TrimSuffix(s.Error+": "+s.Message, ": "))
	}
	return strings.Join(list, "; ")
}
