package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/planmode"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/permissions"
)

// Options are the options of all commands that run a session.
type Options struct {
	*cmdutil.IO
	*setup.Flags
	Recording    setup.Recording
	Print        bool // the root command's --print
	Verbose      bool
	On           string // URL of the service that runs the session; empty = this process
	format       string
	inputFormat  string
	outputSchema string
	lastMessage  string
	ephemeral    bool
	isolation    isolation
	onAsk        string
	answer       *reply // of agent answer
	resumption
}

// NewOptions returns empty options.
func NewOptions(s *cmdutil.IO) *Options { return &Options{IO: s, Flags: &setup.Flags{}} }

// NewCmd returns agent exec.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := NewOptions(s)
	cmd := &cobra.Command{
		Use:     "exec [flags] [PROMPT|-]",
		Aliases: []string{"e"},
		Short:   "Run one prompt non-interactively",
		Long: "Run one prompt to completion and print the answer. Calls that need approval are denied and reported,\n" +
			"or with --on-ask park the run ends, and agent answer continues it.\n" +
			"Text piped to stdin is appended to the prompt; with - it is the prompt. Without one, --continue and\n" +
			"--resume continue a session that was interrupted.\n\n" +
			"Exit codes: 0 done, 1 error, 2 usage, 3 configuration, 4 provider, 5 limit reached,\n" +
			"6 done, but a tool call was denied, 7 parked, 130 SIGINT, 143 SIGTERM.",
		Example: "  agent exec \"What does this package do?\"\n" +
			"  agent exec --provider local --model llama3.3 --permission-mode accept-edits \"Fix the typo in README.md\"\n" +
			"  git diff | agent exec --output-format json \"Review this\"\n" +
			"  agent exec --attempts 3 --choose 'go test ./...' --apply \"Fix the race in cache.go\"",
		RunE: func(cmd *cobra.Command, args []string) error { return o.Run(cmd.Context(), args) },
	}
	o.Register(cmd.Flags())
	cmdutil.FlagSection(cmd.Flags(), cmdutil.WorkspaceSection, o.isolation.register)
	return cmd
}

// Register adds the flags of exec to a command's.
func (o *Options) Register(f *pflag.FlagSet) {
	cmdutil.FlagSection(f, cmdutil.SessionSection, o.registerSession)
	cmdutil.FlagSection(f, cmdutil.OutputSection, o.registerOutput)
	o.Flags.Register(f, setup.SessionFlags)
	cmdutil.FlagSection(f, cmdutil.DebugSection, o.Recording.Register)
}

func (o *Options) registerSession(f *pflag.FlagSet) {
	o.resumption.register(f)
	f.StringVar(&o.On, remote.Flag, "", "run the session on the service at `URL`, see agent serve")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "do not save the session")
	f.StringVar(&o.onAsk, "on-ask", cmp.Or(o.onAsk, onAskDeny), "`ACTION` for a call that needs approval: deny, or park (end with exit code 7 until agent answer)")
}

func (o *Options) registerOutput(f *pflag.FlagSet) {
	f.StringVar(&o.format, "output-format", string(FormatText), "`FORMAT` of stdout: text, json (the result event) or stream-json (one event per line)")
	f.StringVar(&o.inputFormat, "input-format", string(FormatText), "`FORMAT` of stdin: text (a prompt) or stream-json (commands of a host, see docs/host-protocol.md)")
	f.StringVar(&o.outputSchema, "output-schema", "", "require an answer that matches the JSON Schema in `FILE`, if the provider supports it")
	f.StringVarP(&o.lastMessage, "output-last-message", "o", "", "also write the final answer to `FILE`")
	o.RegisterVerbose(f)
}

// RegisterVerbose adds --verbose.
func (o *Options) RegisterVerbose(f *pflag.FlagSet) {
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "show reasoning, permission decisions and full results")
}

// Run runs the prompt in args and stdin.
func (o *Options) Run(ctx context.Context, args []string) (err error) {
	switch format(o.format) {
	case FormatText, FormatJSON, FormatStream:
	default:
		return cmdutil.Usagef("--output-format %q: use text, json or stream-json", o.format)
	}
	switch format(o.inputFormat) {
	case FormatText, FormatStream:
	default:
		return cmdutil.Usagef("--input-format %q: use text or stream-json", o.inputFormat)
	}
	if err := cmp.Or(o.Check(), o.Recording.Check(), o.checkOnAsk(), o.isolation.check(o)); err != nil {
		return err
	}
	if o.On != "" {
		return o.runOn(ctx, args)
	}
	defer func() { o.Recording.Close(o.Err, err) }()
	if format(o.inputFormat) == FormatStream {
		return o.runLines(ctx, args)
	}
	t := &Task{IO: o.IO, Format: format(o.format), verbose: o.Verbose, reply: o.answer}
	if err := o.prepare(ctx, t, args); err != nil {
		return cmdutil.Advise(t.fail(err), setup.FirstRunAdvice(ctx, err))
	}
	out, err := o.isolation.run(ctx, t)
	if err = errors.Join(err, o.writeLast(out)); err != nil {
		return cmdutil.Advise(setup.SessionAdvice(err, t.Session.Resume), setup.FirstRunAdvice(ctx, err))
	}
	return status(out)
}

// writeLast writes the file of --output-last-message.
func (o *Options) writeLast(out core.Outcome) error {
	if o.lastMessage == "" || out.Text == "" {
		return nil
	}
	if err := os.WriteFile(o.lastMessage, []byte(out.Text), 0o644); err != nil {
		return fmt.Errorf("--output-last-message: %w", err)
	}
	return nil
}

// status is the error of an outcome that is not done.
func status(out core.Outcome) error {
	if code := OutcomeCode(out, nil); code != cmdutil.ExitDone {
		return &cmdutil.StatusError{Code: code}
	}
	return nil
}

// prepare fills in the task from args, stdin, flags and settings.
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
	if prompt != "" {
		t.Prompt = set.ExpandCommand(prompt)
		if w := set.UnknownName(prompt); w != "" && t.Prompt == prompt {
			fmt.Fprintf(o.Err, "agent: %s\n", w)
		}
	}
	if err := o.Configure(ctx, t, set); err != nil {
		return err
	}
	if o.onAsk == onAskPark {
		if t.Session.Ephemeral {
			return cmdutil.Usagef("--on-ask park: the session must be saved; leave out --ephemeral, or set session.save=true")
		}
		t.Session.Asker, t.Session.SaveRules = parker{}, set.SaveRules
	}
	if t.Mode == string(permissions.ModePlan) {
		t.Session.Context = append(t.Session.Context, planmode.Printed{})
	}
	return nil
}

// planModel makes agent.planModel the model of a session that begins in mode plan.
func (o *Options) planModel(ctx context.Context, t *Task, set *setup.Setup) error {
	info := t.Session.Provider.Info()
	t.Otherwise = info.Name + "/" + info.Model
	name := set.Settings.Agent.PlanModel
	if name == "" || t.Mode != string(permissions.ModePlan) || o.Changed("model") {
		return nil
	}
	provider, name, err := config.SplitModel(name, "", info.Name, set.Settings.Providers.Names())
	if err != nil {
		return &config.Error{Key: "agent.planModel", Err: err}
	}
	provider = cmp.Or(provider, info.Name)
	if t.Session.Provider, err = set.Switch(ctx, provider, name); err != nil {
		return err
	}
	t.Session.Model = name
	t.Session.Profile, err = set.Profile(provider, name)
	return err
}

// Configure fills in the agent and session of any run, interactive or not.
func (o *Options) Configure(ctx context.Context, t *Task, set *setup.Setup) (err error) {
	if err := o.Recording.Open(set); err != nil {
		return err
	}
	if t.Session.Provider, err = set.Providers(ctx); err != nil {
		return err
	}
	t.home, t.userHome = set.Home, set.UserHome
	t.Agent, t.Mode, t.place = set.AgentOptions(o.Logger(o.IO)), set.Mode(), set.Environment
	var failed []error
	if t.Agent.Agents, failed = set.Definitions(); len(failed) > 0 {
		fmt.Fprintf(o.Err, "agent: %v\n", errors.Join(failed...))
	}
	if w := set.UntrustedSkills(); w != "" {
		fmt.Fprintf(o.Err, "agent: %s\n", w)
	}
	if lib := t.Agent.Skills.Library; lib != nil {
		lib.Begin() // beside the rest of the start
	}
	for _, w := range set.MCPWarnings() {
		fmt.Fprintf(o.Err, "agent: %s\n", w)
	}
	if err := set.SessionOptions(&t.Session); err != nil {
		return err
	}
	t.Agent.Telemetry = set.Telemetry(o.IO, t.Session.Cost)
	if err := o.planModel(ctx, t, set); err != nil {
		return err
	}
	t.Session.Ephemeral = o.ephemeral || !set.Settings.Session.Save
	if o.outputSchema != "" {
		data, err := os.ReadFile(o.outputSchema)
		if err != nil {
			return cmdutil.Usagef("--output-schema: %w", err)
		}
		if !json.Valid(data) {
			return cmdutil.Usagef("--output-schema %s: not valid JSON", o.outputSchema)
		}
		if _, err := schema.Parse(data); err != nil {
			return cmdutil.Usagef("--output-schema %s: not a JSON Schema: %v", o.outputSchema, err)
		}
		t.Session.Request.OutputSchema = data
	}
	t.Session.Resume, err = o.session(ctx, set.Home, t.Agent.Dir)
	return err
}

// Load reads the settings of the session's directory.
func (o *Options) Load(s *cmdutil.IO) (*setup.Setup, error) {
	if err := o.locate(s, o.Flags); err != nil {
		return nil, err
	}
	return o.Flags.Load(s)
}

// prompt joins the arguments and the text on stdin.
func (o *Options) prompt(ctx context.Context, args []string) (string, error) {
	if o.answer != nil {
		return "", nil
	}
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
	if strings.TrimSpace(text) == "" && o.Resume == "" && !o.Latest { // a parked or unfinished session needs none
		return "", errNoPrompt
	}
	return text, nil
}

var errNoPrompt = cmdutil.Usagef("no prompt: pass it as an argument or pipe it to stdin")

// piped reports whether stdin may have text: it is not a device such as /dev/null.
func (o *Options) piped() bool {
	f, ok := o.In.(*os.File)
	if !ok {
		return o.In != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}
