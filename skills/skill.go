package skills

import (
	"io/fs"
	"strings"
)

// Scope says whose a skill is. A project's goes before the person's own, and
// that before a bundled one.
type Scope string

// The scopes.
const (
	ScopeProject Scope = "project"
	ScopeUser    Scope = "user"
	ScopeBundled Scope = "bundled"
)

// State says whether a skill can be used.
type State string

// The states.
const (
	StateOn       State = "on"
	StateOff      State = "off"      // by default_enabled or the settings
	StateShadowed State = "shadowed" // by another one of its name; SCOPE:NAME reaches it
	StateChanged  State = "changed"  // since it was installed, and nobody accepted that
)

// Skill is a skill that was found. It is immutable.
type Skill struct {
	Manifest
	Scope       Scope
	Base        string // of Paths, see [Place]
	Dir         string // the folder on disk; empty for a bundled one
	File        string // of the SKILL.md, for people
	Files       fs.FS  // the folder
	Hash        string // SHA-256 of the SKILL.md, in hex
	State       State
	Installed   bool   // from elsewhere, by an [Installer]
	Why         string // about the state, if it is not on
	Diagnostics []Diagnostic

	lock Lock // of an installed one
}

// FullName is SCOPE:NAME.
func (s *Skill) FullName() string { return string(s.Scope) + ":" + s.Name }

// Called reports whether a name means the skill: its name or its full name, in
// any case.
func (s *Skill) Called(name string) bool {
	return strings.EqualFold(name, s.Name) || strings.EqualFold(name, s.FullName())
}

// Problem is a folder whose skill could not be read, or something else that is
// wrong with a place.
type Problem struct {
	Path        string
	Diagnostics []Diagnostic
}

// Error implements error. It is the first diagnostic that counts.
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
