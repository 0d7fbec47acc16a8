package setup

import (
	"path/filepath"
	"strings"
	"time"

	bundled "github.com/seed-009c0928/agent/bundled_skills"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/skills"
)

// Library is the skills of the settings; nothing is read yet.
func (s *Setup) Library() *skills.Library {
	set := s.Settings.Skills
	places := skills.Places(skills.PlaceOptions{
		Dir: s.Dir, Home: s.Home, UserHome: s.UserHome, Trusted: s.Trusted, Bundled: bundled.Files,
	})
	if set.PluginDir != "" {
		dir := set.PluginDir
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(s.UserHome, rest)
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

// Skills are the ones that an agent gets.
func (s *Setup) Skills() agent.SkillOptions {
	set := s.Settings.Skills
	if !set.Enabled || s.bare {
		return agent.SkillOptions{}
	}
	o := agent.SkillOptions{Library: s.Library(), Max: set.MaxSkills, ScriptTimeout: time.Duration(set.ScriptTimeoutMs) * time.Millisecond}
	if o.Max == 0 {
		o.Max = -1 // none but those that the person names
	}
	if s.Home != "" {
		o.Usage = filepath.Join(s.Home, "skill-usage.json")
	}
	return o
}

// BundledSkills are those that come with the program, and no others.
func BundledSkills() agent.SkillOptions {
	return agent.SkillOptions{Library: skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Bundled: bundled.Files})})}
}
