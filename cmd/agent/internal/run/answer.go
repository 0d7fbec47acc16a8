package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/host"
)

// The actions of --on-ask.
const (
	onAskDeny = "deny"
	onAskPark = "park"
)

func (o *Options) checkOnAsk() error {
	if o.onAsk != onAskDeny && o.onAsk != onAskPark {
		return cmdutil.Usagef("--on-ask %q: use deny or park", o.onAsk)
	}
	return nil
}

// parker leaves every question to agent answer, which fills in no forms.
type parker struct{}

// Ask implements [core.Asker].
func (parker) Ask(_ context.Context, q core.Question) (core.Answer, error) {
	if len(q.Choices) == 0 {
		return core.Answer{}, core.ErrNonInteractive
	}
	return core.Answer{}, core.ErrParked
}

// reply is the answer to a parked question.
type reply struct {
	question string // its ID; empty = the only one of the session
	answer   string // yes, no or rule
	reason   string
}

// NewAnswerCmd returns agent answer.
func NewAnswerCmd(s *cmdutil.IO) *cobra.Command {
	o := NewOptions(s)
	o.onAsk = onAskPark
	r := &reply{}
	cmd := &cobra.Command{
		Use:   "answer [flags] [ID yes|no|rule]",
		Short: "Answer a parked question and continue its session",
		Long: "Answer the question that ended agent exec --on-ask park, and continue the session where it stopped.\n" +
			"ID is the question's or the session's. With yes the call runs, with no it is denied, with rule it runs\n" +
			"and the first rule on offer is added to your settings. Pass the flags that exec was run with.\n\n" +
			"The answer is recorded first: if the command is killed, agent exec --resume ID continues. Output and exit\n" +
			"codes are those of exec; the next question is parked, too. Without an ID, the open questions of all sessions are listed;\n" +
			"with --on URL, those of a service.",
		Example: "  id=$(agent exec --on-ask park \"Run the tests\")\n  agent answer \"$id\" yes",
		Args: cmdutil.Args(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cobra.ExactArgs(2)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && o.On != "":
				return o.listQuestions(cmd.Context())
			case len(args) == 0:
				return o.listWaiting(cmd.Context())
			}
			if r.answer = args[1]; !slices.Contains([]string{"yes", "no", "rule"}, r.answer) {
				return cmdutil.Usagef("answer %q: use yes, no or rule", r.answer)
			}
			if r.reason != "" && r.answer != "no" {
				return cmdutil.Usagef("--reason: only with no")
			}
			if o.Resume != "" || o.Latest || o.Fork {
				return cmdutil.Usagef("--resume, --continue and --fork: the ID says which session to continue")
			}
			o.answer = r
			if o.On != "" {
				r.question = args[0]
				return o.Run(cmd.Context(), nil)
			}
			var err error
			if o.Resume, r.question, err = findQuestion(s, args[0]); err != nil {
				return err
			}
			return o.Run(cmd.Context(), nil)
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().StringVar(&r.reason, "reason", "", "with no: `TEXT` for the model")
	return cmd
}

// findQuestion returns the session that an ID names, and the ID of the question if
// it is one: the session's ID and a number.
func findQuestion(s *cmdutil.IO, id string) (session, question string, err error) {
	_, session, err = setup.FindSession(s, id)
	if at := strings.LastIndex(id, "-"); errors.Is(err, fs.ErrNotExist) && at > 0 {
		if _, found, err := setup.FindSession(s, id[:at]); err == nil {
			return found, id, nil
		}
	}
	return session, "", err
}

// todo returns what the task has to do: nothing, if the session waits for an answer
// that the task does not have.
func (t *Task) todo(s *host.Session) (host.Command, error) {
	now := s.Now()
	if open := now.Questions; t.reply != nil && len(open) > 0 {
		at := slices.IndexFunc(open, func(q event.Question) bool { return t.reply.question == "" || q.QID == t.reply.question })
		if at < 0 {
			return host.Command{}, fmt.Errorf("session %s does not wait for an answer to %s, but to %s", s.ID(), t.reply.question, open[0].QID)
		}
		choice, err := t.reply.choice(open[at])
		return host.Command{Type: "answer", Question: open[at].QID, Choice: choice, Reason: t.reply.reason}, err
	}
	switch parked := now.State == core.StateParked; {
	case t.reply != nil && !parked:
		return host.Command{}, fmt.Errorf("session %s waits for no answer", s.ID())
	case t.reply != nil:
		fmt.Fprintf(t.Err, "agent: the question has an answer already; continuing with that\n")
	case t.Prompt == "" && !parked && now.State != core.StateUnfinished:
		return host.Command{}, errNoPrompt
	case len(now.Questions) > 0:
		return host.Command{}, nil
	case t.Prompt != "":
		in := core.TextInput(t.Prompt)
		return host.Command{Type: "input", Own: &in}, nil
	}
	return host.Command{Type: "continue"}, nil
}

// choice returns the choice that an answer means for a question.
func (r *reply) choice(q event.Question) (core.Choice, error) {
	choices := map[string][]core.Choice{
		"yes": {core.ChoiceOnce, core.ChoiceYes}, "no": {core.ChoiceDeny, core.ChoiceNo}, "rule": {core.ChoiceAlways},
	}
	for _, c := range choices[r.answer] {
		if slices.Contains(q.Choices, string(c)) {
			return c, nil
		}
	}
	return "", cmdutil.Usagef("question %s cannot be answered with %s: no rule is on offer; use yes or no", q.QID, r.answer)
}
