package cli

import (
	"path/filepath"
	"strings"
	"time"

	bundled "github.com/seed-009c0928/agent/bundled_skills"
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
	return skills.NewLibrary(skills.LibraryOptions{Places: places, Enable: set.Enable, Disable: set.Disable})
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
