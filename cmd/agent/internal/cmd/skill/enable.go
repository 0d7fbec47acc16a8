package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/skills"
)

// enableOptions are those of enable and disable.
type enableOptions struct {
	options
	on bool
}

func newEnableCmd(s *cmdutil.IO) *cobra.Command {
	return newSwitchCmd(s, true, "enable NAME…", "Enable skills in your settings")
}

func newDisableCmd(s *cmdutil.IO) *cobra.Command {
	return newSwitchCmd(s, false, "disable NAME…", "Disable skills in your settings")
}

func newSwitchCmd(s *cmdutil.IO, on bool, use, short string) *cobra.Command {
	o := &enableOptions{options: options{IO: s}, on: on}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd)
	return cmd
}

func (o *enableOptions) run(ctx context.Context, names []string) error {
	set, lib, err := o.load()
	if err != nil {
		return err
	}
	if set.Home == "" {
		return errors.New("no home directory for settings: set AGENT_HOME")
	}
	for _, name := range names {
		skill, err := find(lib.Catalog(), name)
		if err != nil {
			return err
		}
		if err := o.save(ctx, set.Home, skill, name); err != nil {
			return err
		}
	}
	return o.report(names)
}

// save writes to the user's settings whether a skill is enabled.
func (o *enableOptions) save(ctx context.Context, home string, skill *skills.Skill, name string) error {
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return skill.Called(n) })
	}
	return config.UserFile(home).Edit(ctx, func(in *config.Settings) []config.Change {
		enable, disable := without(in.Skills.Enable), without(in.Skills.Disable)
		switch {
		case !o.on:
			disable = append(disable, name)
		case skill.Disabled:
			enable = append(enable, name)
		}
		return []config.Change{{Key: "skills.enable", Value: jsonList(enable)}, {Key: "skills.disable", Value: jsonList(disable)}}
	})
}

func jsonList(list []string) string {
	text, _ := json.Marshal(append([]string{}, list...)) // strings cannot fail
	return string(text)
}

// report prints the state of skills with the new settings: other settings may
// still disable a skill.
func (o *enableOptions) report(names []string) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	c := set.Library().Catalog()
	infos := []skillInfo{}
	for _, name := range names {
		if skill, ok := c.Find(name); ok {
			infos = append(infos, newSkillInfo(skill))
		}
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, infos)
	}
	for _, i := range infos {
		fmt.Fprintf(o.Out, "%s:%s is %s%s\n", i.Scope, i.Name, i.State, strings.TrimSuffix(": "+i.Why, ": "))
	}
	return nil
}
