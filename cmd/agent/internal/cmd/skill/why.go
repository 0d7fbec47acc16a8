package skill

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/skills"
)

// whyLine says why a skill is activated, or why not.
type whyLine struct {
	Name   string `json:"name"`
	Scope  string `json:"scope"`
	Result string `json:"result"` // activated, held, ranked, nothing, or its state
	Reason string `json:"reason"`
}

// resultOrder is the order in which results are printed; states come last.
var resultOrder = []string{"activated", "held", "ranked", "nothing"}

func (l whyLine) order() int {
	if i := slices.Index(resultOrder, l.Result); i >= 0 {
		return i
	}
	return len(resultOrder)
}

type whyOptions struct{ options }

func newWhyCmd(s *cmdutil.IO) *cobra.Command {
	o := &whyOptions{options{IO: s}}
	cmd := &cobra.Command{
		Use:     "why PROMPT",
		Short:   "Explain why each skill is or is not activated",
		Example: "  agent skills why \"Draft the changelog\"",
		Args:    cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), strings.Join(args, " ")) },
	}
	o.register(cmd)
	return cmd
}

func (o *whyOptions) run(ctx context.Context, prompt string) error {
	set, lib, err := o.load()
	if err != nil {
		return err
	}
	info, result, err := match(ctx, set, lib, prompt)
	if err != nil {
		return err
	}
	for _, skill := range lib.Catalog().Skills {
		info.Skills = append(info.Skills, explain(skill, result))
	}
	slices.SortStableFunc(info.Skills, func(a, b whyLine) int { return cmp.Compare(a.order(), b.order()) })
	if o.json {
		return cmdutil.WriteJSON(o.Out, info)
	}
	return printWhy(o.Out, info.Skills)
}

func printWhy(out io.Writer, lines []whyLine) error {
	t := cmdutil.NewTable(out, "SKILL", "SCOPE", "RESULT", "REASON")
	for _, l := range lines {
		t.Row(l.Name, l.Scope, l.Result, display.OneLine(l.Reason, 300))
	}
	return t.Flush()
}

// explain says what the result of a match is for a skill.
func explain(skill *skills.Skill, r skills.Result) whyLine {
	l := whyLine{Name: skill.Name, Scope: string(skill.Scope), Result: "nothing", Reason: "no trigger and no term matches the prompt"}
	if skill.State != skills.StateOn {
		l.Result, l.Reason = string(skill.State), skill.Why
		return l
	}
	if m, ok := matchOf(skill, r.Shortlist); ok {
		l.Result, l.Reason = "ranked", rankText(m.Score, m.Trigger)
	}
	if m, ok := matchOf(skill, r.HeldBack); ok {
		l.Result, l.Reason = "held", fmt.Sprintf("%s %q matches, but %s", m.By, m.Trigger, m.HeldBack)
	}
	if m, ok := matchOf(skill, r.Activated); ok {
		l.Result, l.Reason = "activated", fmt.Sprintf("%s %q", m.By, m.Trigger)
		return l
	}
	if demoted := skill.Demoted(); len(demoted) > 0 {
		l.Reason += fmt.Sprintf("; %s used only for ranking (too broad), such as %q", display.Plural(len(demoted), "trigger"), demoted[0].Trigger)
	}
	return l
}

func matchOf(skill *skills.Skill, list []skills.Match) (skills.Match, bool) {
	i := slices.IndexFunc(list, func(m skills.Match) bool { return m.Skill == skill })
	if i < 0 {
		return skills.Match{}, false
	}
	return list[i], true
}
