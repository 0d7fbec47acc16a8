package permission

import (
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

// loggedDecision is a decision as a session's record has it.
type loggedDecision struct {
	Seq  event.Seq `json:"seq"`
	Time time.Time `json:"time"`
	Call string    `json:"call"`
	event.Permission
	// Sandbox is the level in which the program ran, once the call has ended.
	Sandbox string `json:"sandbox,omitempty"`
}

func newPermissionsLog(s *cmdutil.IO) *cobra.Command {
	var asJSON, denied bool
	var dir string
	cmd := &cobra.Command{
		Use:   "log [SESSION]",
		Short: "Show the decisions of a session, who made them and why",
		Long: "log reads the decisions from a session's record: that of the latest session of this directory, or the named one.\n" +
			"The decider is policy (a rule or the mode), person, headless (nobody was there to be asked) or hook.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, id, err := decided(s, args, dir)
			if err != nil {
				return err
			}
			list := []loggedDecision{}
			var broken error
			for e, err := range store.Read(cmd.Context(), agent.SessionsDir(home), id, 0) {
				if broken = err; err != nil {
					break
				}
				list = noteDecision(list, &e, denied)
			}
			if asJSON {
				err = cmdutil.WriteJSON(s.Out, list)
			} else {
				err = printDecisions(s.Out, id, list)
			}
			return errors.Join(err, setup.SessionAdvice(broken, id))
		},
	}
	cmd.Flags().BoolVar(&denied, "denied", false, "show what was denied only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVarP(&dir, "cd", "C", "", "the latest session of `DIR`")
	return cmd
}

// noteDecision adds the decision that an event is, or the sandbox of the call
// that it ends.
func noteDecision(list []loggedDecision, e *event.Event, denied bool) []loggedDecision {
	switch body := e.Body.(type) {
	case event.Permission:
		if !denied || body.Decision == "deny" {
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

// decided finds the session whose decisions are wanted.
func decided(s *cmdutil.IO, args []string, dir string) (home, id string, err error) {
	if len(args) == 1 {
		return setup.FindSession(s, args[0])
	}
	if home, err = s.AgentHome(); err != nil {
		return "", "", err
	}
	last, err := store.Latest(agent.SessionsDir(home), s.WorkDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("there is no session of %s; agent sessions list names those of other directories", s.WorkDir(dir))
	}
	return home, last.ID, err
}

func printDecisions(out io.Writer, id string, list []loggedDecision) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(out, "Session %s holds no such decision.\n", id)
		return err
	}
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s  %-5s  by %s: %s\n", d.Time.Local().Format(time.DateTime), d.Decision, d.Decider, d.Tool)
		for _, a := range d.Accesses {
			fmt.Fprintf(&b, "    %s %s\n", a.Scope, display.VisibleLine(a.Resource, 400))
		}
		rule := display.VisibleLine(d.Rule, 400)
		if d.Source != "" {
			rule += " (" + d.Source + ")"
		}
		fmt.Fprintf(&b, "    rule: %s\n", rule)
		if d.Reason != "" {
			fmt.Fprintf(&b, "    %s\n", display.VisibleLine(d.Reason, 1000))
		}
		switch d.Sandbox {
		case "":
		case "none":
			b.WriteString("    ran outside a sandbox\n")
		default:
			fmt.Fprintf(&b, "    ran in the sandbox (%s)\n", display.VisibleLine(d.Sandbox, 40))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
