package skill

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/skills"
)

type showOptions struct{ options }

func newShowCmd(s *cmdutil.IO) *cobra.Command {
	o := &showOptions{options{IO: s}}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a skill: its triggers, requirements and text",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.register(cmd)
	return cmd
}

func (o *showOptions) run(name string) error {
	_, lib, err := o.load()
	if err != nil {
		return err
	}
	skill, err := find(lib.Catalog(), name)
	if err != nil {
		return err
	}
	info := newSkillInfo(skill)
	info.Diagnostics = skill.Lint()
	if o.json {
		return cmdutil.WriteJSON(o.Out, struct {
			skillInfo
			Text string `json:"text"`
		}{info, skill.Body()})
	}
	return printSkill(o.Out, info, skill)
}

func printSkill(out io.Writer, info skillInfo, skill *skills.Skill) error {
	t := fields{cmdutil.NewTable(out)}
	t.add("Name", skill.FullName())
	t.add("State", strings.TrimSuffix(string(skill.State)+": "+skill.Why, ": "))
	t.add("File", skill.File)
	t.add("Description", skill.Description)
	t.add("When to use", skill.WhenToUse)
	t.add("Version", skill.Version)
	t.add("License", skill.License)
	t.add("Compatibility", skill.Compatibility)
	t.add("Keywords", strings.Join(skill.Triggers.Keywords, ", "))
	t.add("Verbs", strings.Join(skill.Triggers.Verbs, ", "))
	t.add("Patterns", strings.Join(skill.Triggers.Patterns, "  "))
	t.add("Requested tools", strings.Join(skill.AllowedTools, ", "))
	t.add("Toolsets", strings.Join(skill.Toolsets, ", "))
	t.add("Tokens", fmt.Sprint(info.Tokens))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, d := range info.Diagnostics {
		fmt.Fprintln(out, display.OneLine(d.Error(), 1000))
	}
	_, err := fmt.Fprintf(out, "\n%s\n", display.Visible(skill.Body()))
	return err
}

// fields is a table of named values.
type fields struct{ *cmdutil.Table }

// add adds a value, unless it is empty.
func (f fields) add(name, value string) {
	if value != "" {
		f.Row(name, display.VisibleLine(value, 2000))
	}
}
