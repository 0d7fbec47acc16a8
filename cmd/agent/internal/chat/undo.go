package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/snapshot"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// cmdUndo takes back what the last input changed in files.
func (c *chat) cmdUndo(ctx context.Context, args string) (string, error) {
	opts := agent.UndoOptions{}
	switch args {
	case "":
	case "--overwrite":
		opts.Overwrite = func(string) bool { return true }
	default:
		return "", fmt.Errorf("/undo takes only --overwrite, not %q; /rewind goes further back", args)
	}
	return c.revert(ctx, opts)
}

// cmdRedo takes the last undo back.
func (c *chat) cmdRedo(ctx context.Context, _ string) (string, error) {
	return c.revert(ctx, agent.UndoOptions{Redo: true})
}

// revert takes changes back, and asks about files that were changed since and
// cannot be merged.
func (c *chat) revert(ctx context.Context, opts agent.UndoOptions) (string, error) {
	if err := c.decide(ctx, &opts); err != nil {
		return "", err
	}
	done, err := c.session.Undo(ctx, opts)
	if err != nil {
		return "", err
	}
	return "```\n" + display.Reverted(done, false) + "```", nil
}

// decide asks which files are restored although later changes are lost.
func (c *chat) decide(ctx context.Context, opts *agent.UndoOptions) error {
	if c.session.Now().Run != "" {
		return errors.New("the agent is working: stop it with Ctrl-C first")
	}
	if opts.Overwrite != nil {
		return nil
	}
	plan := *opts
	plan.DryRun = true
	planned, err := c.session.Undo(ctx, plan)
	if err != nil {
		return err
	}
	changed := slices.DeleteFunc(planned.Conflicts, func(f snapshot.Conflict) bool { return !f.Changed })
	lost, err := c.askOverwrite(ctx, changed)
	opts.Overwrite = func(path string) bool { return lost[path] }
	return err
}

// Answers about all files at once.
const (
	restoreAll core.Choice = "restore all"
	keepAll    core.Choice = "keep all"
)

// askOverwrite asks which files are restored although later changes are lost.
func (c *chat) askOverwrite(ctx context.Context, changed []snapshot.Conflict) (map[string]bool, error) {
	lost := map[string]bool{}
	for i, f := range changed {
		q := core.Question{
			Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
			Title:  fmt.Sprintf("Restore %s?", strings.TrimPrefix(f.Path, c.set.Dir+"/")),
			Detail: "It was changed since in the same lines; these changes would be lost.",
		}
		if n := len(changed) - i; n > 1 {
			q.Choices = append(q.Choices, restoreAll, keepAll)
			q.Detail += fmt.Sprintf(" The same is true of %s.", display.Plural(n-1, "other file"))
		}
		if diff := strings.Split(f.Diff, "\n"); f.Diff != "" {
			const most = 20
			q.Detail += "\n" + strings.Join(diff[:min(len(diff), most)], "\n")
			if len(diff) > most {
				q.Detail += fmt.Sprintf("\n… %s more", display.Plural(len(diff)-most, "line"))
			}
		}
		a, err := c.asker.Ask(ctx, q)
		if err != nil {
			return nil, err
		}
		switch a.Choice {
		case core.ChoiceYes:
			lost[f.Path] = true
		case keepAll:
			return lost, nil
		case restoreAll:
			for _, other := range changed[i:] {
				lost[other.Path] = true
			}
			return lost, nil
		}
	}
	return lost, nil
}
