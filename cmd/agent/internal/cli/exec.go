package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execOptions are those of one shot.
type execOptions struct {
	*streams
	*shared
	print       bool // the root command's -p
	format      string
	schema      string
	lastMessage string
	resumption
	ephemeral bool
	tape      tape
}

func newExec(s *streams) *cobra.Command {
	o := &execOptions{streams: s, shared: &shared{}}
	cmd := &cobra.Command{
		Use:     "exec [flags] [PROMPT|-]",
		Aliases: []string{"e"},
		Short:   "Run one prompt to its end, without a person at the keyboard",
		Long: "exec runs one prompt and prints the answer. What would be asked is denied and reported.\n" +
			"Text piped to stdin joins the prompt; - reads the whole prompt from there.\n\n" +
			"Exit codes: 0 done, 1 error, 2 usage, 3 configuration, 4 provider, 5 a limit was hit,\n" +
			"6 finished, but a tool call was denied, 130 SIGINT, 143 SIGTERM.",
		Example: "  agent exec \"What does this package do?\"\n" +
			"  agent exec --provider local --model llama3.3 --permission-mode accept-edits \"Fix the typo in README.md\"\n" +
			"  git diff | agent exec --output-format json \"Review this\"",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *execOptions) register(f *pflag.FlagSet) {
	o.shared.register(f)
	f.StringVar(&o.format, "output-format", "text", "`FORMAT` of stdout: text, json (the result event) or stream-json (every event on a line)")
	f.StringVar(&o.schema, "output-schema", "", "`FILE` with a JSON Schema that the answer must meet, where the provider can do that")
	f.StringVarP(&o.lastMessage, "output-last-message", "o", "", "write the last answer to `FILE`, too")
	o.resumption.register(f)
	f.BoolVar(&o.ephemeral, "ephemeral", false, "keep the session in memory only")
	o.tape.register(f)
}

func (o *execOptions) run(ctx context.Context, args []string) (err error) {
	switch format(o.format) {
	case formatText, formatJSON, formatStream:
	default:
		return &usageError{fmt.Errorf("--output-format %q: use text, json or stream-json", o.format)}
	}
	if err := cmp.Or(o.check(), o.tape.check()); err != nil {
		return err
	}
	defer func() { o.tape.close(o.err, err) }()
	t := &task{streams: o.streams, format: format(o.format), verbose: o.verbose}
	if err := o.prepare(ctx, t, args); err != nil {
		return advise(t.failed(err), firstRun(ctx, err))
	}
	out, err := t.run(ctx)
	if o.lastMessage != "" && out.Text != "" {
		if werr := os.WriteFile(o.lastMessage, []byte(out.Text), 0o644); werr != nil {
			err = errors.Join(err, fmt.Errorf("--output-last-message: %w", werr))
		}
	}
	if err != nil {
		return advise(sessionAdvice(err, t.session.Resume), firstRun(ctx, err))
	}
	if code := outcomeCode(out, nil); code != exitDone {
		return &statusError{code}
	}
	return nil
}

// prepare fills in the task from settings, flags and stdin.
func (o *execOptions) prepare(ctx context.Context, t *task, args []string) error {
	prompt, err := o.prompt(ctx, args)
	if err != nil {
		return err
	}
	t.prompt = prompt
	set, err := o.load(o.streams)
	if err != nil {
		return err
	}
	t.prompt = set.expandCommand(prompt)
	return o.configure(ctx, t, set)
}

// configure fills in what a session needs, whether a person is there or not.
func (o *execOptions) configure(ctx context.Context, t *task, set *settings) (err error) {
	if err := o.tape.open(set); err != nil {
		return err
	}
	if t.session.Provider, err = set.providers(ctx); err != nil {
		return err
	}
	t.agent, t.mode, t.place = set.agentOptions(o.logger()), set.mode(), set.place
	var failed []error
	if t.agent.Agents, failed = set.definitions(); len(failed) > 0 {
		fmt.Fprintf(o.err, "agent: %v\n", errors.Join(failed...))
	}
	for _, w := range set.mcpWarnings() {
		fmt.Fprintf(o.err, "agent: %s\n", w)
	}
	if err := set.sessionOptions(&t.session); err != nil {
		return err
	}
	t.session.Ephemeral = o.ephemeral || !set.Settings.Session.Save
	if o.schema != "" {
		data, err := os.ReadFile(o.schema)
		if err != nil {
			return &usageError{fmt.Errorf("--output-schema: %w", err)}
		}
		if !json.Valid(data) {
			return &usageError{fmt.Errorf("--output-schema %s: not valid JSON", o.schema)}
		}
		t.session.Request.OutputSchema = data
	}
	t.session.Resume, err = o.session(ctx, set.Home, t.agent.Dir)
	return err
}

// load reads the settings of the place where the session is gone on with.
func (o *execOptions) load(s *streams) (*settings, error) {
	if err := o.locate(s, o.shared); err != nil {
		return nil, err
	}
	return o.shared.load(s)
}

// logger writes what only a developer wants to know to stderr.
func (o *execOptions) logger() *slog.Logger { return o.shared.logger(o.streams) }

// maxStdin bounds what stdin may add to a prompt.
const maxStdin = 10 << 20

// prompt joins the arguments and what was piped in.
func (o *execOptions) prompt(ctx context.Context, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" || (!o.inTTY && o.piped()) {
		in, err := readAll(ctx, o.in)
		if err != nil {
			return "", err
		}
		switch in = strings.TrimSpace(in); {
		case text == "-" || text == "":
			text = in
		case in != "":
			text += "\n\n<stdin>\n" + in + "\n</stdin>"
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", &usageError{errors.New("there is no prompt: give it as an argument, or pipe it in")}
	}
	return text, nil
}

// piped reports whether stdin can hold anything: not a device such as /dev/null.
func (o *execOptions) piped() bool {
	f, ok := o.in.(*os.File)
	if !ok {
		return o.in != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// readAll reads stdin to its end or until ctx is done.
func readAll(ctx context.Context, in io.Reader) (string, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // ends with stdin, or with the process
		data, err := io.ReadAll(io.LimitReader(in, maxStdin+1))
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil:
			return "", fmt.Errorf("stdin: %w", r.err)
		case len(r.data) > maxStdin:
			return "", &usageError{fmt.Errorf("stdin holds more than %d MiB: write it to a file and name the file in the prompt", maxStdin>>20)}
		}
		return string(r.data), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
