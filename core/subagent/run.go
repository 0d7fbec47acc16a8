package subagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// known are agent types that files written for Claude Code name. Those of the user
// and the project take precedence. A nil definition has all tools.
func known() map[string]*Definition {
	looks := func(name string) *Definition {
		return &Definition{
			Name: name, Disallowed: []string{"write_file", "edit_file", "apply_patch"},
			Prompt: "You only look and report. Change no files, and run no command that changes any.",
		}
	}
	return map[string]*Definition{"explore": looks("explore"), "plan": looks("plan"), "general-purpose": nil}
}

// Run lets a subagent of a session do a task, and returns its report when it is done.
// Kind is its type, empty for a general one. Of req, Parent, Model and Effort are
// used; progress may be nil.
func (s *Toolset) Run(ctx context.Context, req Request, kind, task string, progress func(core.Progress)) (report string, err error) {
	var d *Definition
	if kind != "" {
		if d, err = s.definition(kind); err != nil {
			return "", err
		}
	}
	id := s.nextID()
	req.name(id, d)
	a, err := s.start(ctx, id, req, nil)
	if err != nil {
		return "", fmt.Errorf("the agent could not be started: %w", err)
	}
	defer func() {
		s.remove(req.Parent.ID, a)
		a.end()
	}()
	a.begin(&s.wg, task)
	out, err := a.await(ctx, progress)
	switch {
	case err != nil:
		return "", fmt.Errorf("it was cancelled: %w", err)
	case !out.Success:
		return "", errors.New(strings.TrimSpace(fmt.Sprintf("it stopped early after %d turns (%s).\n%s", out.Turns, cmp.Or(out.Error, out.Stop), out.Output)))
	}
	return out.Output, nil
}
