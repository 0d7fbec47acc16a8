package skills

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Scope is where a skill comes from. The project's skills take precedence over
// the user's, and those over bundled ones.
type Scope string

// The scopes.
const (
	ScopeProject Scope = "project"
	ScopeUser    Scope = "user"
	ScopeBundled Scope = "bundled"
)

// State is whether a skill can be used.
type State string

// The states.
const (
	StateOn       State = "on"
	StateOff      State = "off"      // by default_enabled or the settings
	StateShadowed State = "shadowed" // another skill has the same name; use SCOPE:NAME
	StateChanged  State = "changed"  // since it was installed, and not accepted
)

// Skill is an immutable skill.
type Skill struct {
	Manifest
	Scope       Scope
	Base        string // of Paths, see [Place]
	Dir         string // the folder on disk; empty for a bundled one
	File        string // path of the SKILL.md, for display
	Files       fs.FS  // the folder
	Hash        string // SHA-256 of the SKILL.md, in hex
	State       State
	Installed   bool   // by an [Installer]
	Why         string // the reason, if State is not StateOn
	Diagnostics []Diagnostic
	HookVars    map[string]string // of a plugin, see [Place]

	lock Lock // if Installed
	text cachedText
}

// Body returns the text after the frontmatter, which is read when it is first needed if
// the rest of the skill came from a cache.
func (s *Skill) Body() string {
	if s.text.of == nil {
		return s.Manifest.Body
	}
	if text, ok := s.text.read(); ok {
		return text
	}
	data, err := readFile(s.Files, filepath.Base(s.File), maxFile+1)
	if err == nil && sumOf(data) == s.Hash {
		if m, _ := Parse(s.File, data); m != nil {
			return m.Body
		}
	}
	return "The SKILL.md of this skill has just changed: load the skill again."
}

// FullName returns SCOPE:NAME.
func (s *Skill) FullName() string { return string(s.Scope) + ":" + s.Name }

// Called reports whether a name is the skill's name or full name, ignoring case.
func (s *Skill) Called(name string) bool {
	return strings.EqualFold(name, s.Name) || strings.EqualFold(name, s.FullName())
}

// Problem is a skill that could not be read, or another problem with a place.
type Problem struct {
	Path        string
	Diagnostics []Diagnostic
	Incomplete  bool // the place has more folders than are searched
}

// Error implements error. It returns the first error, else the first diagnostic.
func (p Problem) Error() string {
	for _, d := range p.Diagnostics {
		if d.Severity == Error {
			return d.Error()
		}
	}
	if len(p.Diagnostics) > 0 {
		return p.Diagnostics[0].Error()
	}
	return p.Path
}
