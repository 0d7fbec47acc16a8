package skill

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/skills"
)

// NewCmd returns agent skills.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("skills", "Manage skills",
		newListCmd(s), newShowCmd(s), newMatchCmd(s), newWhyCmd(s), newLintCmd(s), newCreateCmd(s),
		newEnableCmd(s), newDisableCmd(s),
		newAddCmd(s), newUpdateCmd(s), newRemoveCmd(s), newVerifyCmd(s),
	)
}

// options are what all commands about skills share.
type options struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func (o *options) register(cmd *cobra.Command) {
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
}

// load reads the settings and the skills, and prints what is wrong with skills
// to stderr.
func (o *options) load() (*setup.Setup, *skills.Library, error) {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return nil, nil, err
	}
	if w := set.UntrustedSkills(); w != "" {
		fmt.Fprintf(o.Err, "agent: %s\n", w)
	}
	lib := set.Library()
	for _, p := range lib.Catalog().Problems {
		fmt.Fprintf(o.Err, "agent: %s\n", display.OneLine(p.Error(), 500))
	}
	return set, lib, nil
}

// find returns the skill with a name. The error suggests similar ones.
func find(c *skills.Catalog, name string) (*skills.Skill, error) {
	if skill, ok := c.Find(name); ok {
		return skill, nil
	}
	var similar []string
	for _, m := range c.Matcher().Match(strings.ReplaceAll(name, "-", " "), skills.MatchOptions{Shortlist: 3}).Shortlist {
		similar = append(similar, m.Skill.Name)
	}
	if len(similar) > 0 {
		return nil, fmt.Errorf("no skill %q; similar: %s", name, strings.Join(similar, ", "))
	}
	return nil, fmt.Errorf("no skill %q; list them with 'agent skills list'", name)
}

// folder returns where the skills of the user, or of the project, are installed.
func folder(set *setup.Setup, project bool) (string, error) {
	if project {
		return filepath.Join(set.Dir, ".agent", "skills"), nil
	}
	if set.Home == "" {
		return "", errors.New("no home directory for skills: set AGENT_HOME, or use --project")
	}
	return filepath.Join(set.Home, "skills"), nil
}
