package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/planmode"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/skills"
)

// Interactive runs sessions on the terminal, one after the other, until the user
// quits. Who has chosen no provider is led to one first.
func Interactive(ctx context.Context, o *run.Options, args []string, configure Configure) (err error) {
	if err := cmp.Or(o.Check(), o.Recording.Check()); err != nil {
		return err
	}
	defer func() { o.Recording.Close(o.Err, err) }()
	for _, name := range []string{"output-format", "output-schema", "output-last-message"} {
		if o.Changed(name) {
			return cmdutil.Usagef("--%s needs a non-interactive run: add -p, or use agent exec", name)
		}
	}
	if o.On != "" {
		return interactiveOn(ctx, o, strings.Join(args, " "))
	}
	if err := firstMinute(ctx, o, configure); err != nil {
		return err
	}
	next := tui.Next{Kind: tui.NextNew, Prompt: strings.Join(args, " ")}
	seen := false // the session's history is already on the screen
	begun := ""
	queue := tui.NewQueue()
	for {
		c := &chat{Options: o, seen: seen, queue: queue, begun: begun}
		after, err := c.run(ctx, next)
		switch {
		case errors.Is(err, tui.ErrTerminated):
			return cmdutil.ErrTerminated
		case err != nil:
			return cmdutil.Advise(err, setup.FirstRunAdvice(ctx, err))
		case after.Kind == tui.NextQuit || after.Kind == "":
			return nil
		}
		next, begun = after, "clear"
		seen = next.Kind == tui.NextResume && next.Prompt != "" // resumed after an abort
		o.Latest, o.Resume, o.Fork = false, "", false
		if next.Kind == tui.NextResume {
			o.Resume = next.Session
		}
	}
}

// chat is one interactive session and the state of its slash commands.
type chat struct {
	*run.Options
	seen  bool   // do not show the history again
	begun string // see agent.SessionOptions
	queue *tui.Queue
	asker *tui.Asker
	open  openCalls
	plan  *planmode.Mode
	// otherwise is the model outside mode plan, as PROVIDER/MODEL.
	otherwise string
	set       *setup.Setup
	agent     *agent.Agent
	session   *host.Session
	root      *agent.Session // the same, for what a driver does not do
	opts      agent.SessionOptions
	history   history
	custom    []setup.CustomCommand
	terminal  tui.Options     // as the settings have it
	library   *skills.Library // nil without skills

	mu      sync.Mutex // guards the fields below
	model   string
	policy  *permissions.Policy
	usage   model.Usage
	last    model.Usage // of the last model call; its input is the context
	calls   int
	request *model.Request // the last one
	cost    float64        // USD
	priced  bool           // the price of every call is known

	line *statusLine

	pasted *sandbox.TempDir // of pasted images; nil if there are none
	images int

	branchName string
	branchRead time.Time
}

func (c *chat) run(ctx context.Context, next tui.Next) (tui.Next, error) {
	var err error
	if c.set, err = c.Load(c.IO); err != nil {
		return tui.Next{}, err
	}
	if c.terminal, err = Terminal(c.IO, c.set); err != nil {
		return tui.Next{}, err
	}
	t := &run.Task{IO: c.IO}
	if err := c.Configure(ctx, t, c.set); err != nil {
		return tui.Next{}, err
	}
	asker := tui.NewAsker()
	asker.Rules = cmdutil.Tilde(filepath.Join(c.set.Home, "settings.json"), c.set.UserHome)
	t.Session.SaveRules, t.Session.Begun = c.set.SaveRules, c.begun
	t.Session.Provider = setup.Advising{Provider: t.Session.Provider}
	t.Session.Cost = c.count(t.Session.Cost)
	t.Session.Hooks.BeforeModel = c.keepRequest
	t.Session.Hooks.BeforeTool = func(_ context.Context, call *model.ToolCall) error {
		c.open.add(*call)
		return nil
	}
	t.Session.Hooks.AfterTool = func(_ context.Context, call model.ToolCall, _ *core.Result) {
		c.open.remove(call.ID)
		c.queue.Deliver()
	}
	c.asker, asker.Review = asker, c.review
	if c.policy, err = c.set.Policy(); err != nil {
		return tui.Next{}, err
	}
	var failed []error
	if c.custom, failed = c.set.CustomCommands(); len(failed) > 0 {
		fmt.Fprintf(c.Err, "agent: %v\n", errors.Join(failed...))
	}
	c.addPlanMode(t)
	h := host.New(t.Agent.Home, c.opener(t))
	if c.session, err = h.Open(ctx, host.Open{ID: t.Session.Resume, Dir: t.Agent.Dir}); err != nil {
		return tui.Next{}, err
	}
	defer h.Close()
	defer c.removePasted()
	c.library = t.Agent.Skills.Library
	c.history = history{filepath.Join(c.set.Home, "history")}

	var git func(context.Context) bool
	if c.set.Trusted { // git runs what a repository's settings name
		git = func(ctx context.Context) bool { return profile.Uncommitted(ctx, c.agent.Env()) }
	}
	c.line = newStatusLine(ctx, c.set.Settings.Terminal.StatusLine, git)
	defer c.line.close()
	after, err := tui.Run(ctx, c.options(asker, next.Prompt))
	c.root.Ending(map[tui.NextKind]string{tui.NextNew: "clear", tui.NextResume: "resume", tui.NextQuit: "prompt_input_exit"}[after.Kind])
	if err == nil && after.Kind == tui.NextQuit && !c.opts.Ephemeral && len(c.session.Inputs()) > 0 {
		fmt.Fprintf(c.Terminal, "agent resume %s continues this session.\n", c.session.ID())
	}
	return after, err
}

// addPlanMode adds mode plan to the agent and the session.
func (c *chat) addPlanMode(t *run.Task) {
	c.plan = planmode.New(c.planDir(t.Agent.Home), c.runModes, c.setMode)
	c.plan.Set(c.policy.Mode() == permissions.ModePlan)
	c.otherwise = t.Otherwise
	t.Agent.Toolsets = append(t.Agent.Toolsets, c.plan)
	t.Session.Context = append(t.Session.Context, c.plan)
}

// planDir returns the directory for plans; empty saves none.
func (c *chat) planDir(home string) string {
	dir := c.set.Settings.Agent.PlanDir
	switch rest, inHome := strings.CutPrefix(dir, "~/"); {
	case dir == "" && home == "":
		return ""
	case dir == "":
		return filepath.Join(home, "plans")
	case inHome:
		return filepath.Join(c.set.UserHome, rest)
	case filepath.IsAbs(dir):
		return dir
	}
	return filepath.Join(c.set.Dir, dir)
}

// options returns what the terminal UI needs.
func (c *chat) options(asker *tui.Asker, prompt string) tui.Options {
	files := &fileList{env: c.agent.Env(), find: c.symbols}
	o := c.terminal
	o.Session, o.Asker, o.Queue, o.Prompt = c.session, asker, c.queue, prompt
	o.Title, o.Dir, o.Welcome = "agent: "+filepath.Base(c.set.Dir), c.set.Dir, c.welcome()
	o.Status, o.Refresh, o.Commands, o.NextMode = c.status, c.line.changed, c.allCommands, c.nextMode
	o.Shell, o.Dropped, o.PasteImage = c.shell, c.dropped, c.pasteImage
	o.Expand = func(ctx context.Context, text string) (core.Input, []string, error) {
		return expand(ctx, c.agent, text, c.symbols, func(name string) (model.Parts, string, error) { return c.resource(ctx, name) })
	}
	o.Complete = func(prefix string) []string {
		return append(c.resources(prefix), files.complete(context.Background(), prefix)...)
	}
	switch {
	case c.seen:
		o.Welcome = ""
	case c.opts.Resume != "":
		o.Replay = 5
	}
	if c.set.Home != "" && !c.opts.Ephemeral {
		o.History = c.history.load()
		o.SaveHistory = func(entry string) {
			if err := c.history.add(entry); err != nil {
				c.Logger(c.IO).Warn("history not saved", "cause", err)
			}
		}
	}
	return o
}

func (c *chat) welcome() string {
	return fmt.Sprintf("**agent** %s · %s · `%s` · /help", cmdutil.Version(), c.modelName(), cmdutil.Tilde(c.set.Dir, c.set.UserHome))
}

// modelName is PROVIDER/MODEL.
func (c *chat) modelName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opts.Provider.Info().Name + "/" + c.model
}

func (c *chat) status() tui.Status {
	name := c.modelName()
	c.mu.Lock()
	defer c.mu.Unlock()
	st := tui.Status{
		Model: name, Effort: string(c.opts.Request.Effort), Mode: string(c.policy.Mode()), Branch: c.branch(),
		Tokens: c.usage.Total(), Cost: c.cost, Priced: c.priced,
	}
	window := c.opts.Profile.ContextWindow
	if window > 0 {
		st.Used = 100 * c.last.Total() / window
	}
	input := ""
	if c.line.command != "" {
		input = c.statusInput(st, window)
	}
	st.Line, st.Dirty = c.line.show(input)
	return st
}

// branch returns the branch of the workspace's repository, or "". It is read once a
// second at most; c.mu is held.
func (c *chat) branch() string {
	if time.Since(c.branchRead) < time.Second {
		return c.branchName
	}
	c.branchRead, c.branchName = time.Now(), ""
	for dir := c.set.Dir; ; dir = filepath.Dir(dir) {
		head, err := os.ReadFile(filepath.Join(dir, ".git", "HEAD"))
		if err == nil {
			ref := strings.TrimSpace(string(head))
			if name, ok := strings.CutPrefix(ref, "ref: refs/heads/"); ok {
				c.branchName = name
			} else {
				c.branchName = ref[:min(len(ref), 8)]
			}
			return c.branchName
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// count returns price, wrapped to add up what the session uses.
func (c *chat) count(price func(provider, name string, u model.Usage) (float64, bool)) func(provider, name string, u model.Usage) (float64, bool) {
	return func(provider, name string, u model.Usage) (float64, bool) {
		usd, known := price(provider, name, u)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.usage = c.usage.Add(u)
		if u.Total() > 0 { // a failed call does not tell
			c.last = u
		}
		c.cost += usd
		c.priced = known && (c.priced || c.calls == 0)
		c.calls++
		return usd, known
	}
}

// shell runs a "!command". It is the user's own, so it needs no approval.
func (c *chat) shell(ctx context.Context, command string, out io.Writer) error {
	p, err := c.agent.Env().Start(ctx, core.Command{Script: command, Stdout: out, Stderr: out})
	if err != nil {
		return err
	}
	exit, err := p.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("exit code %d", exit.Code)
	}
	return err
}
