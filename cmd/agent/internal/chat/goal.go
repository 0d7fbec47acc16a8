package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tasks"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// cmdGoal works on a task until commands prove that it is complete, or with no text
// continues the last one.
func (c *chat) cmdGoal(ctx context.Context, text string) (string, error) {
	if c.session.Now().Run != "" {
		return "", errors.New("the agent is working: stop it with Ctrl-C first")
	}
	opts := c.goalOptions(ctx)
	closeGraph, err := tasks.Equip(ctx, c.set, &opts, c.graphTokens())
	if err != nil {
		return "", err
	}
	defer closeGraph()
	t, err := c.openGoal(ctx, strings.TrimSpace(text), opts)
	if err != nil {
		return "", err
	}
	s, err := t.Run(ctx)
	err = errors.Join(err, t.Close())
	report := fmt.Sprintf("Task `%s` is **%s** after %s. ", s.Task.Task, s.State, display.Plural(len(s.Beads), "bead"))
	switch s.State {
	case bead.Committed:
	case bead.Exhausted:
		report += "To continue it, give it more: `agent task resume --max-beads N --token-budget N`. "
	case bead.Blocked:
		report += "`/goal` gives it another try. "
	default:
		report += "`/goal` continues it. "
	}
	return report + fmt.Sprintf("`/tasks %s` shows its beads, `/tasks undo %s` takes it back.", s.Task.Task, s.Task.Task), err
}

// openGoal starts a task, or resumes the last one of the directory.
func (c *chat) openGoal(ctx context.Context, text string, opts agent.TaskOptions) (*agent.Task, error) {
	if text == "" {
		all, err := c.tasks(ctx)
		for _, s := range all {
			if s.State != bead.Committed && s.Reason != bead.ReasonUndone {
				t, err := c.agent.ResumeTask(ctx, s.Task.Task, bead.Limits{}, opts)
				if err == nil {
					c.root.Note(ctx, s.Task) // this session may not know it
				}
				return t, err
			}
		}
		return nil, errors.Join(errors.New("there is no task to continue: use /goal TEXT"), err)
	}
	root, err := os.OpenRoot(c.set.Dir)
	if err != nil {
		return nil, err
	}
	criteria := bead.Detect(root.FS())
	if err := root.Close(); err != nil {
		return nil, err
	}
	set := c.set.Settings.Task
	t, err := c.agent.StartTask(ctx, event.TaskStart{
		Task: agent.NewTaskID(), Description: text, Workspace: c.set.Dir, Criteria: criteria,
		TokenBudget: set.TokenBudget, MaxBeads: set.MaxBeads, Rounds: set.RoundsPerBead, TestChange: set.OnTestChange, Worktrees: set.Worktrees,
	}, opts)
	if errors.Is(err, bead.ErrNoCommand) {
		return nil, errors.New("no tests were found in the directory that could prove that the task is complete: use agent task run --criteria 'COMMAND'")
	}
	return t, err
}

// graphTokens is how much the prompt of a bead has from the graph: nothing if the plugin
// graph adds that to every input.
func (c *chat) graphTokens() int {
	if host := c.agent.Plugins(); host != nil && slices.ContainsFunc(host.Plugins(), func(p *plugins.Plugin) bool { return p.Name() == "graph" }) {
		return 0
	}
	return c.set.Settings.Graph.TokenBudget
}

// goalOptions returns the options of tasks: beads work as this session does, with its
// model and permission mode, ask in it, and are told of in it.
func (c *chat) goalOptions(ctx context.Context) agent.TaskOptions {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := agent.TaskOptions{Session: c.opts}
	o.Session.Model, o.Session.Resume, o.Session.Ephemeral = c.model, "", false
	o.Session.Asker, o.Session.Cost = c.root.Session, c.set.Prices()
	o.Session.Hooks.BeforeModel = nil // /context is about this session
	o.OnSession = func(s *agent.Session) {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.SetPolicy(c.policy)
	}
	o.Show = func(e event.Event) {
		switch b := e.Body.(type) {
		case event.TaskState:
			if b.Bead > 0 && b.State != string(bead.Verifying) {
				return
			}
		case event.Budget:
			if b.Warning == 0 {
				return
			}
		}
		c.root.Note(context.WithoutCancel(ctx), e.Body)
	}
	o.Allow = func(ctx context.Context, found []event.Guard) bool {
		var lines []string
		for _, g := range found {
			n, _ := display.NoteOf(g)
			lines = append(lines, n.Text)
		}
		a, err := c.root.Ask(ctx, core.Question{
			Kind: core.QuestionConfirm, Title: "Accept changes of existing tests or criteria?", Detail: strings.Join(lines, "\n"),
			Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
		})
		return err == nil && a.Choice == core.ChoiceYes
	}
	return o
}

// tasks returns the tasks of the directory, the last changed first.
func (c *chat) tasks(ctx context.Context) (list []bead.Status, err error) {
	all, err := agent.ListTasks(ctx, c.set.Home)
	for _, s := range all {
		if s.Task.Workspace == c.set.Dir {
			list = append(list, s)
		}
	}
	return list, err
}

// undoTask takes back what a task changed.
func (c *chat) undoTask(ctx context.Context, id string) (string, error) {
	id, err := agent.FindTask(c.set.Home, id)
	if err != nil {
		return "", err
	}
	left, err := agent.UndoTask(ctx, c.set.Home, id)
	text := "The changes of task `" + id + "` are taken back."
	if len(left) > 0 {
		text += " Kept, since they were changed since: " + display.OneLine(strings.Join(left, ", "), 1000) + "."
	}
	if err != nil {
		text = ""
	}
	return text, err
}

// cmdTasks lists the tasks of the directory, or shows the board of one.
func (c *chat) cmdTasks(ctx context.Context, args string) (string, error) {
	cell := func(text string, most int) string { return strings.ReplaceAll(display.OneLine(text, most), "|", "/") }
	var b strings.Builder
	if id := strings.TrimSpace(args); id != "" {
		if of, ok := strings.CutPrefix(id, "undo "); ok {
			return c.undoTask(ctx, strings.TrimSpace(of))
		}
		id, err := agent.FindTask(c.set.Home, id)
		if err != nil {
			return "", err
		}
		s, err := agent.TaskStatus(ctx, c.set.Home, id)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "**%s**, %s: %s\n\n| Bead | State | Criteria | Tokens |\n| --- | --- | --- | --- |\n", s.Task.Task, s.State, cell(s.Task.Description, 200))
		for _, one := range s.Beads {
			var criteria []string
			for _, k := range one.Criteria {
				criteria = append(criteria, k.Name+" "+k.Status)
			}
			used := 0
			if one.Result != nil {
				used = one.Result.Used
			}
			fmt.Fprintf(&b, "| %d %s | %s %s | %s | %d |\n", one.Bead, cell(one.Step, 40), one.State, cell(one.Reason, 100), cell(strings.Join(criteria, ", "), 200), used)
		}
		return b.String(), nil
	}
	all, err := c.tasks(ctx)
	if len(all) == 0 {
		return "No tasks in this directory. `/goal TEXT` works on one until its tests pass.", err
	}
	b.WriteString("| Task | State | Beads | |\n| --- | --- | --- | --- |\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", s.Task.Task, s.State, len(s.Beads), cell(s.Task.Description, 80))
	}
	return b.String(), err
}
