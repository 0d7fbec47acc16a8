package skill

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/skills"
)

// skillInfo is the JSON form of a skill.
type skillInfo struct {
	Name         string              `json:"name"`
	Scope        skills.Scope        `json:"scope"`
	State        skills.State        `json:"state"`
	Why          string              `json:"why,omitempty"`
	Brief        string              `json:"brief"`
	Description  string              `json:"description"`
	Version      string              `json:"version,omitempty"`
	License      string              `json:"license,omitempty"`
	File         string              `json:"file"`
	Installed    bool                `json:"installed"`
	Triggers     skills.Triggers     `json:"triggers"`
	AllowedTools []string            `json:"allowedTools,omitempty"`
	Toolsets     []string            `json:"toolsets,omitempty"`
	Tokens       int                 `json:"tokens"` // of its text, estimated
	Diagnostics  []skills.Diagnostic `json:"diagnostics"`
}

func newSkillInfo(s *skills.Skill) skillInfo {
	return skillInfo{
		Name: s.Name, Scope: s.Scope, State: s.State, Why: s.Why, Brief: s.Brief, Description: s.Description, Version: s.Version, License: s.License,
		File: s.File, Installed: s.Installed, Triggers: s.Triggers, AllowedTools: s.AllowedTools, Toolsets: s.Toolsets,
		Tokens: len(s.Body()) / 4, Diagnostics: append([]skills.Diagnostic{}, s.Diagnostics...),
	}
}

// warnings counts the diagnostics that are more than notes.
func (i *skillInfo) warnings() int {
	n := 0
	for _, d := range i.Diagnostics {
		if d.Severity > skills.Note {
			n++
		}
	}
	return n
}

type listOptions struct{ options }

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{options{IO: s}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List skills with their scope and state",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	o.register(cmd)
	return cmd
}

func (o *listOptions) run() error {
	_, lib, err := o.load()
	if err != nil {
		return err
	}
	infos := []skillInfo{}
	for _, skill := range lib.Catalog().Skills {
		infos = append(infos, newSkillInfo(skill))
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, infos)
	}
	return printSkills(o.Out, infos)
}

func printSkills(out io.Writer, infos []skillInfo) error {
	t := cmdutil.NewTable(out, "NAME", "SCOPE", "STATE", "TOKENS", "DESCRIPTION")
	for _, i := range infos {
		state := string(i.State)
		if n := i.warnings(); n > 0 {
			state += ", " + display.Plural(n, "warning")
		}
		t.Row(i.Name, i.Scope, state, i.Tokens, display.OneLine(i.Brief, 80))
	}
	return t.Flush()
}
