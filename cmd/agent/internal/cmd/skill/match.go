package skill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/skills"
)

// The tiers of disclosure: how much of the skills the model sees.
const (
	tierNone  = iota // there are no skills
	tierCount        // their number, in the system prompt
	tierList         // one line each
	tierText         // full texts
)

// matchInfo is what a prompt activates.
type matchInfo struct {
	Tier      int         `json:"tier"`
	Activated []matchLine `json:"activated"`
	Shortlist []matchLine `json:"shortlist"`
	Listed    []string    `json:"listed"`
	Left      int         `json:"left"`   // skills that the list leaves out
	Tokens    int         `json:"tokens"` // added to the prompt, estimated
	Skills    []whyLine   `json:"skills,omitempty"`
}

type matchLine struct {
	Name    string        `json:"name"`
	Scope   string        `json:"scope"`
	Score   float64       `json:"score"`
	By      skills.Reason `json:"by"`
	Trigger string        `json:"trigger,omitempty"`
}

func matchLines(list []skills.Match) []matchLine {
	lines := make([]matchLine, 0, len(list))
	for _, m := range list {
		lines = append(lines, matchLine{m.Skill.Name, string(m.Skill.Scope), m.Score, m.By, m.Trigger})
	}
	return lines
}

type matchOptions struct{ options }

func newMatchCmd(s *cmdutil.IO) *cobra.Command {
	o := &matchOptions{options{IO: s}}
	cmd := &cobra.Command{
		Use:     "match PROMPT",
		Short:   "Show which skills a prompt activates",
		Example: "  agent skills match \"Review the diff of this branch\"",
		Args:    cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), strings.Join(args, " ")) },
	}
	o.register(cmd)
	return cmd
}

func (o *matchOptions) run(ctx context.Context, prompt string) error {
	set, lib, err := o.load()
	if err != nil {
		return err
	}
	info, _, err := match(ctx, set, lib, prompt)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, info)
	}
	tier := []string{"No skills", "No match (skill count only)", "List of skills", "Full text"}[info.Tier]
	fmt.Fprintf(o.Out, "%s: %s added to the prompt\n", tier, display.Plural(info.Tokens, "token"))
	activated := map[string]bool{}
	for _, m := range info.Activated {
		activated[m.Name] = true
		fmt.Fprintf(o.Out, "  + %s: %s %s\n", m.Name, m.By, display.OneLine(m.Trigger, 200))
	}
	for _, m := range info.Shortlist {
		if !activated[m.Name] {
			fmt.Fprintf(o.Out, "  - %s: %s\n", m.Name, display.OneLine(rankText(m.Score, m.Trigger), 200))
		}
	}
	return nil
}

// rankText describes the full-text rank of a skill.
func rankText(score float64, terms string) string {
	return fmt.Sprintf("score %.1f, matched terms: %s", score, terms)
}

// match matches a prompt as a session would.
func match(ctx context.Context, set *setup.Setup, lib *skills.Library, prompt string) (matchInfo, skills.Result, error) {
	o := set.SkillOptions()
	source := skills.NewSource(skills.SourceOptions{Library: lib, Max: o.Max, Usage: skills.NewUsage(o.Usage), Exists: existsIn(set.Dir)})
	req := core.ContextRequest{Session: core.SessionInfo{Dir: set.Dir}, Input: core.TextInput(prompt).Content}
	result := source.Match(ctx, req)
	info := matchInfo{Activated: matchLines(result.Activated), Shortlist: matchLines(result.Shortlist), Listed: []string{}}

	p, err := set.Profile(set.Settings.Providers.Default, set.Loaded.Model())
	if err != nil {
		return info, result, err
	}
	req.Budget = p.ContextWindow / 50
	blocks, err := source.Context(ctx, req)
	if err != nil {
		return info, result, err
	}
	if lib.Breadcrumb() != "" {
		info.Tier = tierCount
	}
	for _, b := range blocks {
		info.Tokens += len(b.Text) / 4
		switch e := b.Event.(type) {
		case event.SkillActivated:
			info.Tier = tierText
		case event.SkillsListed:
			info.Tier, info.Listed, info.Left = max(info.Tier, tierList), e.Names, e.Left
		}
	}
	return info, result, nil
}

// existsIn returns a function that reports whether a file exists; paths may be
// relative to dir.
func existsIn(dir string) func(context.Context, string) bool {
	return func(_ context.Context, path string) bool {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		_, err := os.Stat(path)
		return err == nil
	}
}
