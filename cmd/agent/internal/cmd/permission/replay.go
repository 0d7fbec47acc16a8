package permission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type replayOptions struct {
	*cmdutil.IO
	flags          setup.Flags
	session, since string
	all, json      bool
}

func newReplayCmd(s *cmdutil.IO) *cobra.Command {
	o := &replayOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Apply the rules to the calls of past sessions",
		Long: "Show what the rules would decide now on the calls of past sessions of this directory, and what was decided\n" +
			"then. The calls are not run. With --rules, a settings file takes the place of yours. Approvals for a session\n" +
			"apply to its later calls, as they did then. Files and directories are those of today.",
		Example: "  agent permissions replay --since 7d\n" +
			"  agent permissions replay --rules new-settings.json --all",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.flags.UserFile, "rules", "", "use the rules of this settings `FILE` instead of your settings")
	f.StringVar(&o.since, "since", "", "only calls since `TIME`: a date such as 2026-01-31, or an age such as 12h or 7d")
	f.StringVar(&o.session, "session", "", "only the session with this `ID`")
	f.BoolVar(&o.all, "all", false, "sessions of all directories, each with the rules of its directory")
	o.flags.Register(f, policyFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// replayed is a call of a past session, with the decisions then and now.
type replayed struct {
	Session  string         `json:"session"`
	Cwd      string         `json:"cwd"`
	Seq      event.Seq      `json:"seq"`
	Time     time.Time      `json:"time"`
	Tool     string         `json:"tool"`
	Accesses []event.Access `json:"accesses"`
	Then     string         `json:"then"` // allow, ask, deny
	Now      string         `json:"now"`
	Changed  bool           `json:"changed"`
	Rule     string         `json:"rule"` // that decides now
	Source   string         `json:"source"`
	Reason   string         `json:"reason"`
}

func (o *replayOptions) run(ctx context.Context) error {
	after, err := sinceTime(o.since, time.Now())
	if err != nil {
		return err
	}
	if o.flags.UserFile != "" && !filepath.IsAbs(o.flags.UserFile) {
		o.flags.UserFile = filepath.Join(o.Cwd, o.flags.UserFile)
	}
	logs, dir, err := o.logs(after)
	if err != nil {
		return err
	}
	calls := []replayed{}
	var failed []error
	for cwd, sessions := range logs {
		if err := o.inDirectory(ctx, dir, cwd, sessions, func(c replayed) {
			if !c.Time.Before(after) {
				calls = append(calls, c)
			}
		}); err != nil {
			failed = append(failed, err)
		}
	}
	slices.SortStableFunc(calls, func(a, b replayed) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
	})
	if o.json {
		err = cmdutil.WriteJSON(o.Out, calls)
	} else {
		err = printReplayed(o.Out, calls)
	}
	return errors.Join(append(failed, err)...)
}

// sinceTime parses a date or an age.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	var days int
	var unit string
	if n, _ := fmt.Sscanf(text, "%d%s", &days, &unit); n == 2 && unit == "d" && days >= 0 {
		return now.AddDate(0, 0, -days), nil
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	return time.Time{}, cmdutil.Usagef("--since %q: expected a date such as 2026-01-31, or an age such as 12h or 7d", text)
}

// logs returns the sessions to replay by their working directory, and the
// directory of their logs.
func (o *replayOptions) logs(after time.Time) (byDir map[string][]store.Summary, dir string, err error) {
	home, id := "", ""
	if o.session != "" {
		home, id, err = setup.FindSession(o.IO, o.session)
	} else {
		home, err = o.AgentHome()
	}
	if err != nil {
		return nil, "", err
	}
	dir = agent.SessionsDir(home)
	all, err := store.List(dir)
	if err != nil && len(all) == 0 {
		return nil, "", err
	}
	here := o.WorkDir(o.flags.Dir)
	byDir = map[string][]store.Summary{}
	for _, s := range all {
		wanted := s.ID == id
		if id == "" {
			wanted = (o.all || s.Cwd == here) && !s.Time.Before(after)
		}
		if wanted {
			byDir[s.Cwd] = append(byDir[s.Cwd], s)
		}
	}
	if len(byDir) == 0 {
		return nil, "", fmt.Errorf("no session of %s: use --cd, --all or an earlier --since", here)
	}
	return byDir, dir, nil
}

// inDirectory judges the calls of the sessions of one directory by its policy.
func (o *replayOptions) inDirectory(ctx context.Context, logs, cwd string, sessions []store.Summary, use func(replayed)) error {
	flags := o.flags
	flags.Dir = cwd
	err := setup.WithTools(ctx, o.IO, &flags, func(_ *setup.Setup, a *agent.Agent, _ *core.Snapshot) error {
		policy, err := policyOf(a)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			r := replay{policy: policy, env: a.Env(), session: s.ID, cwd: cwd, use: use, uses: map[string]event.ToolUse{}, granted: map[string]bool{}}
			for e, readErr := range store.Read(ctx, logs, s.ID, 0) {
				if readErr != nil {
					err = errors.Join(err, setup.SessionAdvice(readErr, s.ID))
					break
				}
				r.event(ctx, &e)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("sessions of %s: %w", cwd, err)
	}
	return nil
}

// replay judges the calls of one session.
type replay struct {
	policy       *permissions.Policy
	env          core.Environment
	session, cwd string
	use          func(replayed)

	uses    map[string]event.ToolUse // by call
	rules   []string                 // that the user approved for the session
	granted map[string]bool          // and accesses, by tool and key
}

func (r *replay) event(ctx context.Context, e *event.Event) {
	switch body := e.Body.(type) {
	case event.ToolUse:
		r.uses[e.Call] = body
	case event.Permission:
		if body.Decider != "hook" {
			r.use(r.judge(ctx, e, body))
		}
	}
}

// judge decides on a call again.
func (r *replay) judge(ctx context.Context, e *event.Event, p event.Permission) replayed {
	use := r.uses[e.Call]
	req := core.PermissionRequest{
		Session: core.SessionInfo{ID: r.session, Dir: r.cwd}, Tool: p.Tool, Source: use.Source, Args: []byte(use.Args), Rules: r.rules,
		Granted: func(a core.Access) bool { return r.granted[p.Tool+"\x00"+a.Key()] },
	}
	for _, a := range p.Accesses {
		access := core.Access{Scope: core.Scope(a.Scope), Resource: a.Resource, Argv: a.Argv, Recursive: a.Recursive, Unconfined: a.Unconfined}
		if access.Scope.IsFile() {
			if to, err := r.env.Resolve(ctx, a.Resource); err == nil {
				access.Resource, access.Inside = to.Path, to.Inside
			}
		}
		req.Accesses = append(req.Accesses, access)
	}
	d := r.policy.Decide(ctx, req)
	c := replayed{
		Session: r.session, Cwd: r.cwd, Seq: e.Seq, Time: e.Time, Tool: p.Tool, Accesses: append([]event.Access{}, p.Accesses...),
		Then: p.Decision, Now: d.Verdict.String(), Rule: d.Rule, Source: d.Source, Reason: d.Reason,
	}
	if p.Decider != "policy" {
		c.Then = core.Ask.String()
	}
	c.Changed = c.Then != c.Now
	if p.Choice == string(core.ChoiceSession) || p.Choice == string(core.ChoiceAlways) {
		r.rules = append(r.rules, p.Rules...)
		for _, a := range req.Accesses {
			r.granted[p.Tool+"\x00"+a.Key()] = r.granted[p.Tool+"\x00"+a.Key()] || len(p.Rules) == 0
		}
	}
	return c
}

// printReplayed prints the calls, equal ones together, first those whose
// decision changes.
func printReplayed(out io.Writer, calls []replayed) error {
	type row struct{ then, now, call, rule string }
	counts := map[row]int{}
	var rows []row
	verdicts, changed := map[string]int{}, 0
	for _, c := range calls {
		call := c.Tool
		for _, a := range c.Accesses {
			if a.Scope != string(core.ScopeRead) || len(c.Accesses) == 1 { // what is written is also read
				call += " " + display.VisibleLine(strings.TrimPrefix(a.Resource, c.Cwd+string(filepath.Separator)), 60)
			}
		}
		r := row{c.Then, c.Now, call, display.VisibleLine(c.Rule, 60)}
		if counts[r]++; counts[r] == 1 {
			rows = append(rows, r)
		}
		verdicts[c.Now]++
		if c.Changed {
			changed++
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		order := func(r row) int {
			if r.then != r.now {
				return 0
			}
			return 1
		}
		return cmp.Compare(order(a), order(b))
	})
	t := cmdutil.NewTable(out, "THEN", "NOW", "CALLS", "CALL", "RULE")
	for _, r := range rows {
		now := r.now
		if r.then != r.now {
			now += " *"
		}
		t.Row(r.then, now, counts[r], r.call, r.rule)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s: %d allowed, %d asked, %d denied now; %d changed (*)\n", display.Plural(len(calls), "call"),
		verdicts["allow"], verdicts["ask"], verdicts["deny"], changed)
	return err
}
