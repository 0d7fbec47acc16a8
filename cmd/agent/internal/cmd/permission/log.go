package permission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type logOptions struct {
	*cmdutil.IO
	flags        setup.Flags
	denied, json bool
}

func newLogCmd(s *cmdutil.IO) *cobra.Command {
	o := &logOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "log [SESSION]",
		Short: "Show the permission decisions of a session",
		Long: "Show which calls of a session were allowed or denied, by whom and why. The default is the latest session\n" +
			"of this directory. The decider is \"policy\" (a rule or the mode), \"person\" (the user), \"headless\"\n" +
			"(non-interactive, so denied) or \"hook\". The user's answer is \"once\", \"session\" or \"always\"; the last two\n" +
			"add the rules that follow.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.denied, "denied", false, "show only denied calls")
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// loggedDecision is a decision in a session's log.
type loggedDecision struct {
	Seq  event.Seq `json:"seq"`
	Time time.Time `json:"time"`
	Call string    `json:"call"`
	event.Permission
	// Sandbox is the level of the sandbox that the call ran in, once it ended.
	Sandbox string `json:"sandbox,omitempty"`
}

func (o *logOptions) run(ctx context.Context, args []string) error {
	home, id, err := o.session(args)
	if err != nil {
		return err
	}
	list := []loggedDecision{}
	var damage error
	for e, err := range store.Read(ctx, agent.SessionsDir(home), id, 0) {
		if damage = err; err != nil {
			break
		}
		list = o.add(list, &e)
	}
	if o.json {
		err = cmdutil.WriteJSON(o.Out, list)
	} else {
		err = o.print(id, list)
	}
	return errors.Join(err, setup.SessionAdvice(damage, id))
}

// session returns the session named by args, or the latest of the directory.
func (o *logOptions) session(args []string) (home, id string, err error) {
	if len(args) == 1 {
		return setup.FindSession(o.IO, args[0])
	}
	if home, err = o.AgentHome(); err != nil {
		return "", "", err
	}
	dir := o.WorkDir(o.flags.Dir)
	last, err := store.Latest(agent.SessionsDir(home), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("no session of %s: use --cd, or an ID from agent sessions list --all", dir)
	}
	return home, last.ID, err
}

// add appends the decision in an event, or notes the sandbox of a call that
// ended.
func (o *logOptions) add(list []loggedDecision, e *event.Event) []loggedDecision {
	switch body := e.Body.(type) {
	case event.Permission:
		if !o.denied || body.Decision == "deny" {
			list = append(list, loggedDecision{Seq: e.Seq, Time: e.Time, Call: e.Call, Permission: body})
		}
	case event.ToolResult:
		for i := len(list) - 1; i >= 0 && e.Call != ""; i-- {
			if list[i].Call == e.Call {
				list[i].Sandbox = body.Sandbox()
				break
			}
		}
	}
	return list
}

func (o *logOptions) print(id string, list []loggedDecision) error {
	if len(list) == 0 {
		what := "permission decisions"
		if o.denied {
			what = "denied calls"
		}
		_, err := fmt.Fprintf(o.Out, "Session %s has no %s.\n", id, what)
		return err
	}
	var b strings.Builder
	for _, d := range list {
		d.print(&b)
	}
	_, err := io.WriteString(o.Out, b.String())
	return err
}

func (d loggedDecision) print(b *strings.Builder) {
	decider := d.Decider
	if d.Choice != "" && d.Choice != d.Decision {
		decider += ", " + d.Choice
	}
	fmt.Fprintf(b, "%s  %-5s  by %s: %s\n", d.Time.Local().Format(time.DateTime), d.Decision, decider, d.Tool)
	for _, a := range d.Accesses {
		fmt.Fprintf(b, "    %s %s\n", a.Scope, display.VisibleLine(a.Resource, 400))
	}
	rule := display.VisibleLine(d.Rule, 400)
	if d.Source != "" {
		rule += " (" + d.Source + ")"
	}
	fmt.Fprintf(b, "    rule: %s\n", rule)
	for _, r := range d.Rules {
		fmt.Fprintf(b, "    added: %s\n", display.VisibleLine(r, 400))
	}
	if d.Reason != "" {
		fmt.Fprintf(b, "    %s\n", display.VisibleLine(d.Reason, 1000))
	}
	switch d.Sandbox {
	case "":
	case "none":
		b.WriteString("    ran without a sandbox\n")
	default:
		fmt.Fprintf(b, "    ran in the sandbox (%s)\n", display.VisibleLine(d.Sandbox, 40))
	}
}
