package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bundled "github.com/seed-009c0928/agent/bundled_skills"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/skills"
)

// library is the skills of the settings; nothing is read yet.
func (s *settings) library() *skills.Library {
	set := s.Settings.Skills
	places := skills.Places(skills.PlaceOptions{
		Dir: s.dir, Home: s.Home, UserHome: s.userHome, Trusted: s.trusted, Bundled: bundled.Files,
	})
	if set.PluginDir != "" {
		dir := set.PluginDir
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(s.userHome, rest)
		}
		places = append(places[:len(places)-1:len(places)-1], skills.Place{Scope: skills.ScopeUser, Dir: dir}, places[len(places)-1])
	}
	var folders []string
	for _, p := range places {
		if p.Dir != "" {
			folders = append(folders, p.Dir)
		}
	}
	return skills.NewLibrary(skills.LibraryOptions{Places: places, Enable: set.Enable, Disable: set.Disable, Locked: skills.Locks(folders...)})
}

// skills are the ones that an agent gets.
func (s *settings) skills() agent.SkillOptions {
	set := s.Settings.Skills
	if !set.Enabled || s.bare {
		return agent.SkillOptions{}
	}
	o := agent.SkillOptions{Library: s.library(), Max: set.MaxSkills, ScriptTimeout: time.Duration(set.ScriptTimeoutMs) * time.Millisecond}
	if o.Max == 0 {
		o.Max = -1 // none but those that the person names
	}
	if s.Home != "" {
		o.Usage = filepath.Join(s.Home, "skill-usage.json")
	}
	return o
}

// bundledSkills are those that come with the program, and no others.
func bundledSkills() agent.SkillOptions {
	return agent.SkillOptions{Library: skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Bundled: bundled.Files})})}
}

// withSkills adds a /NAME for each skill that a person may call. What is entered
// goes to the session as it is, where the skill's text joins it.
func withSkills(commands []tui.Command, lib *skills.Library) []tui.Command {
	if lib == nil {
		return commands
	}
	out := slices.Clone(commands)
	for _, s := range lib.Catalog().Active() {
		if s.NoUser {
			continue
		}
		out = withCommand(out, string(s.Scope), tui.Command{
			Name: s.Name, Args: s.ArgumentHint, Summary: display.OneLine(s.Brief, 80) + " (skill)",
			Run: func(_ context.Context, args string) (tui.Result, error) {
				return tui.Result{Prompt: strings.TrimSpace("/" + s.FullName() + " " + args)}, nil
			},
		})
	}
	return out
}

// cmdSkills lists the skills as they are now.
func (c *chat) cmdSkills(context.Context, string) (string, error) {
	if c.library == nil {
		return "There are no skills: the settings or --bare leave them out.", nil
	}
	var b strings.Builder
	b.WriteString("| Skill | Scope | State | For |\n| --- | --- | --- | --- |\n")
	for _, s := range c.library.Catalog().Skills {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, s.Scope, s.State, strings.ReplaceAll(display.OneLine(s.Brief, 80), "|", "/"))
	}
	return b.String(), nil
}
