package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// Options are those of one shot.
type Options struct {
	*cmdutil.IO
	*setup.Flags
	Print       bool // the root command's -p
	format      string
	schema      string
	lastMessage string
	resumption
	ephemeral bool
	Recording setup.Recording
}

func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &Options{IO: s, Flags: &setup.Flags{}}
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
		RunE: func(cmd *cobra.Command, args []string) error { return o.Run(cmd.Context(), args) },
	}
	o.Register(cmd.Flags())
	return cmd
}

func (o *Options) Register(f *pflag.FlagSet) {
	o.Flags.Register(f)
	f.StringVar(&o.format, "output-format", "text", "`FORMAT` of stdout: text, json (the result event) or stream-json (every event on a line)")
	f.StringVar(&o.schema, "output-schema", "", "`FILE` with a JSON Schema that the answer must meet, where the provider can do that")
	f.StringVarP(&o.lastMessage, "output-last-message", "o", "", "write the last answer to `FILE`, too")
	o.resumption.register(f)
	f.BoolVar(&o.ephemeral, "ephemeral", false, "keep the session in memory only")
	o.Recording.Register(f)
}

func (o *Options) Run(ctx context.Context, args []string) (err error) {
	switch format(o.format) {
	case FormatText, FormatJSON, FormatStream:
	default:
		return cmdutil.Usagef("--output-format %q: use text, json or stream-json", o.format)
	}
	if err := cmp.Or(o.Check(), o.Recording.Check()); err != nil {
		return err
	}
	defer func() { o.Recording.Close(o.Err, err) }()
	t := &Task{IO: o.IO, Format: format(o.format), verbose: o.Verbose}
	if err := o.prepare(ctx, t, args); err != nil {
		return cmdutil.Advise(t.Failed(err), setup.FirstRunAdvice(ctx, err))
	}
	out, err := t.Run(ctx)
	if o.lastMessage != "" && out.Text != "" {
		if werr := os.WriteFile(o.lastMessage, []byte(out.Text), 0o644); werr != nil {
			err = errors.Join(err, fmt.Errorf("--output-last-message: %w", werr))
		}
	}
	if err != nil {
		return cmdutil.Advise(setup.SessionAdvice(err, t.Session.Resume), setup.FirstRunAdvice(ctx, err))
	}
	if code := OutcomeCode(out, nil); code != cmdutil.ExitDone {
		return &cmdutil.StatusError{Code: code}
	}
	return nil
}

// prepare fills in the task from settings, flags and stdin.
func (o *Options) prepare(ctx context.Context, t *Task, args []string) error {
	prompt, err := o.prompt(ctx, args)
	if err != nil {
		return err
	}
	t.Prompt = prompt
	set, err := o.Load(o.IO)
	if err != nil {
		return err
	}
	t.Prompt = set.ExpandCommand(prompt)
	return o.Configure(ctx, t, set)
}

// Configure fills in what a session needs, whether a person is there or not.
func (o *Options) Configure(ctx context.Context, t *Task, set *setup.Setup) (err error) {
	if err := o.Recording.Open(set); err != nil {
		return err
	}
	if t.Session.Provider, err = set.Providers(ctx); err != nil {
		return err
	}
	t.Agent, t.Mode, t.place = set.AgentOptions(o.Logger()), set.Mode(), set.Environment
	var failed []error
	if t.Agent.Agents, failed = set.Definitions(); len(failed) > 0 {
		fmt.Fprintf(o.Err, "agent: %v\n", errors.Join(failed...))
	}
	for _, w := range set.MCPWarnings() {
		fmt.Fprintf(o.Err, "agent: %s\n", w)
	}
	if err := set.SessionOptions(&t.Session); err != nil {
		return err
	}
	t.Session.Ephemeral = o.ephemeral || !set.Settings.Session.Save
	if o.schema != "" {
		data, err := os.ReadFile(o.schema)
		if err != nil {
			return cmdutil.Usagef("--output-schema: %w", err)
		}
		if !json.Valid(data) {
			return cmdutil.Usagef("--output-schema %s: not valid JSON", o.schema)
		}
		t.Session.Request.OutputSchema = data
	}
	t.Session.Resume, err = o.session(ctx, set.Home, t.Agent.Dir)
	return err
}

// Load reads the settings of the place where the session is gone on with.
func (o *Options) Load(s *cmdutil.IO) (*setup.Setup, error) {
	if err := o.locate(s, o.Flags); err != nil {
		return nil, err
	}
	return o.Flags.Load(s)
}

// Logger writes what only a developer wants to know to stderr.
func (o *Options) Logger() *slog.Logger { return o.Flags.Logger(o.IO) }

// prompt joins the arguments and what was piped in.
func (o *Options) prompt(ctx context.Context, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" || (!o.InTTY && o.piped()) {
		in, err := cmdutil.ReadAll(ctx, o.In)
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
		return "", cmdutil.Usagef("there is no prompt: give it as an argument, or pipe it in")
	}
	return text, nil
}

// piped reports whether stdin can hold anything: not a device such as /dev/null.
func (o *Options) piped() bool {
	f, ok := o.In.(*os.File)
	if !ok {
		return o.In != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}
