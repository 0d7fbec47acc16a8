package setup

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bundled "github.com/seed-009c0928/agent/bundled_skills"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/skills"
)

// Library returns the skills that the settings ask for. It reads none yet.
func (s *Setup) Library() *skills.Library {
	set := s.Settings.Skills
	places := skills.Places(skills.PlaceOptions{
		Dir: s.Dir, Home: s.Home, UserHome: s.UserHome, Trusted: s.Trusted, NoClaude: !set.Claude, Bundled: bundled.Files,
	})
	if dir := set.PluginDir; dir != "" {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(s.UserHome, rest)
		}
		// Bundled skills come last.
		places = slices.Insert(places, len(places)-1, skills.Place{Scope: skills.ScopeUser, Dir: dir})
	}
	for _, p := range s.bundleSkills() {
		places = slices.Insert(places, len(places)-1, p)
	}
	var folders []string
	for _, p := range places {
		if p.Dir != "" {
			folders = append(folders, p.Dir)
		}
	}
	o := skills.LibraryOptions{Places: places, Enable: set.Enable, Disable: set.Disable, Locked: skills.Locks(folders...)}
	if s.Home != "" {
		o.Cache = filepath.Join(s.Home, "cache", "skills")
	}
	return skills.NewLibrary(o)
}

// WarnIncomplete prints which places of skills have more folders than are searched. The
// library may be nil.
func WarnIncomplete(s *cmdutil.IO, lib *skills.Library) {
	if lib == nil {
		return
	}
	for _, p := range lib.Incomplete() {
		fmt.Fprintf(s.Err, "agent: %s\n", display.OneLine(p.Error(), 500))
	}
}

// UntrustedSkills says which skills of the project are not used because its
// directory is not trusted, and what to do; it is empty if there are none.
func (s *Setup) UntrustedSkills() string {
	if s.Trusted || s.bare || !s.Settings.Skills.Enabled {
		return ""
	}
	places := skills.Places(skills.PlaceOptions{Dir: s.Dir, Home: s.Home, UserHome: s.UserHome, Trusted: true, NoClaude: !s.Settings.Skills.Claude})
	places = slices.DeleteFunc(places, func(p skills.Place) bool { return p.Scope != skills.ScopeProject })
	var names []string
	for _, skill := range skills.NewLibrary(skills.LibraryOptions{Places: places}).Catalog().Skills {
		names = append(names, skill.Name)
	}
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names, ", ")
	if most := 5; len(names) > most {
		list = fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return display.OneLine(fmt.Sprintf("%s of this directory not used (%s): %s", display.Plural(len(names), "skill"), list, cmp.Or(s.advice, "the directory is not trusted")), 1000)
}

// SkillOptions returns the skills of an agent; none if they are disabled.
func (s *Setup) SkillOptions() agent.SkillOptions {
	set := s.Settings.Skills
	if !set.Enabled || s.bare {
		return agent.SkillOptions{}
	}
	o := agent.SkillOptions{Library: s.Library(), Max: set.MaxSkills, ScriptTimeout: time.Duration(set.ScriptTimeoutMs) * time.Millisecond, HasModel: s.hasModel}
	if o.Max == 0 {
		o.Max = -1 // only skills that the user names
	}
	if s.Home != "" {
		o.Usage = filepath.Join(s.Home, "skill-usage.json")
	}
	return o
}

// BundledSkills returns options with the bundled skills only.
func BundledSkills() agent.SkillOptions {
	return agent.SkillOptions{Library: skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Bundled: bundled.Files})})}
}
