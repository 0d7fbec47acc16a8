package permissions

import (
	"fmt"
	"slices"
	"strings"
)

// Settings is the "permissions" object of a settings file.
type Settings struct {
	// Mode is one of the modes; empty leaves it to other sources.
	Mode string `json:"mode,omitempty"`
	// Allow, Ask and Deny are rules, such as "shell(go test *)".
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// When are conditions.
	When []When `json:"when,omitempty"`
}

// allowing counts the allow rules.
func (s *Settings) allowing() int {
	n := len(s.Allow)
	for i := range s.When {
		if s.When[i].Then == ListAllow {
			n++
		}
	}
	return n
}

// Mode is a permission mode: what happens to accesses that no rule matches.
type Mode string

// The modes.
const (
	// ModeDefault allows reading inside the workspace and subagents, and asks
	// before everything else.
	ModeDefault Mode = "default"
	// ModeAcceptEdits is ModeDefault, but allows writing inside the workspace.
	ModeAcceptEdits Mode = "accept-edits"
	// ModeWorkspace is ModeAcceptEdits, but runs commands in a sandbox without
	// asking: they can write only in the workspace and have no network. Without a
	// working sandbox it asks before commands.
	ModeWorkspace Mode = "workspace"
	// ModeReadOnly is ModeDefault, but denies writing, deleting and commands.
	ModeReadOnly Mode = "read-only"
	// ModePlan is ModeReadOnly, but no rule and no approval allows writing, deleting
	// or commands.
	ModePlan Mode = "plan"
	// ModeBypass allows everything, even if an ask rule matches. Deny rules,
	// built-in denials and requests about sensitive places remain.
	ModeBypass Mode = "bypass"
)

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{ModeDefault, ModeAcceptEdits, ModeWorkspace, ModeReadOnly, ModePlan, ModeBypass}
}

// ParseMode returns the mode with a name.
func ParseMode(name string) (Mode, error) {
	if m := Mode(name); slices.Contains(Modes(), m) {
		return m, nil
	}
	names := make([]string, 0, len(Modes()))
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return "", fmt.Errorf("unknown permission mode %q: use one of %s", name, strings.Join(names, ", "))
}

// Source is the origin of a set of rules.
type Source string

// The sources, in evaluation order. The order only decides which of several
// matching rules is reported.
const (
	SourceManaged Source = "managed"
	SourceUser    Source = "user"
	SourceProject Source = "project"
	SourceSession Source = "session"
	SourceFlag    Source = "flag"
)

func (s Source) rank() int {
	return slices.Index([]Source{SourceManaged, SourceUser, SourceProject, SourceSession, SourceFlag}, s)
}

// List is one of the lists of rules in [Settings].
type List string

// The lists.
const (
	ListAllow List = "allow"
	ListAsk   List = "ask"
	ListDeny  List = "deny"
	// ListWhen holds the conditions; their Then puts them into one of the others.
	ListWhen List = "when"
)

// RuleSet is the settings of one source. Rules of all sets apply together; a
// deny rule wins over any allow rule, wherever they come from.
type RuleSet struct {
	Source Source
	// File is the settings file; empty if there is none. It is protected from
	// writes.
	File string
	// Base is the directory, symbolic links resolved, that relative globs start
	// from; empty means each directory of the workspace.
	Base string
	// Trusted matters only for a project: the mode and the allow rules of an
	// untrusted one are ignored, with a warning.
	Trusted bool
	// Refused says why the mode and the allow rules of the set are ignored,
	// whatever its source; empty if they are not.
	Refused  string
	Settings Settings
	// Position returns the line and column of a rule in File, from 1, or 0 if
	// unknown. It may be nil.
	Position func(list List, index int) (line, column int)
}

// where returns the location of a rule: file:line, file or source.
func (s *RuleSet) where(list List, index int) (text string, line, column int) {
	if s.Position != nil {
		line, column = s.Position(list, index)
	}
	switch {
	case s.File == "":
		return string(s.Source), line, column
	case line > 0:
		return fmt.Sprintf("%s:%d", s.File, line), line, column
	}
	return s.File, line, column
}

// mayAllow reports whether the set's mode and allow rules are used.
func (s *RuleSet) mayAllow() bool { return s.refusal() == "" }

// refusal says why they are not.
func (s *RuleSet) refusal() string {
	if s.Source == SourceProject && !s.Trusted {
		return "the project is not trusted, so only its ask and deny rules apply"
	}
	return s.Refused
}
