package permissions

import (
	"fmt"
	"slices"
	"strings"
)

// Settings are the permissions in a settings file.
type Settings struct {
	// Mode is one of the modes; empty leaves it to others.
	Mode string `json:"mode,omitempty"`
	// Allow, Ask and Deny are rules, such as "shell(go test *)".
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// When are rules with conditions.
	When []When `json:"when,omitempty"`
}

// allowing counts the rules that allow something.
func (s *Settings) allowing() int {
	n := len(s.Allow)
	for i := range s.When {
		if s.When[i].Then == ListAllow {
			n++
		}
	}
	return n
}

// Mode says what happens to accesses that no rule speaks of.
type Mode string

// The modes.
const (
	// ModeDefault allows reading inside the workspace and subagents, and asks
	// before everything else.
	ModeDefault Mode = "default"
	// ModeAcceptEdits is ModeDefault and allows writing inside the workspace.
	ModeAcceptEdits Mode = "accept-edits"
	// ModeWorkspace is ModeAcceptEdits, and commands run unasked in a sandbox:
	// they can write in the workspace only, and reach no network. Without a
	// sandbox that works they ask.
	ModeWorkspace Mode = "workspace"
	// ModeReadOnly denies writing, deleting and commands, and is ModeDefault
	// in all else.
	ModeReadOnly Mode = "read-only"
	// ModeBypass allows, also where an ask rule asks. Deny rules, built-in
	// denials and the questions about sensitive places stay.
	ModeBypass Mode = "bypass"
)

// Modes returns the modes.
func Modes() []Mode {
	return []Mode{ModeDefault, ModeAcceptEdits, ModeWorkspace, ModeReadOnly, ModeBypass}
}

// ParseMode returns the mode of that name.
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

// Source is where a set of rules comes from.
type Source string

// The sources, in the order in which rules are looked through. The order only
// decides which of several matching rules is named.
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
	// ListWhen is where conditions stand; what they say puts them into one of
	// the others.
	ListWhen List = "when"
)

// RuleSet is the settings of one source.
type RuleSet struct {
	Source Source
	// File is the settings file; empty if there is none. It is protected from
	// writes.
	File string
	// Base is the directory, symbolic links resolved, that relative globs start
	// from; empty means every directory of the workspace.
	Base string
	// Trusted counts for a project only: the mode and the allow rules of one
	// that is not trusted are ignored, with a warning.
	Trusted bool
	// Refused says why the mode and the allow rules of the set are ignored,
	// whatever its source; empty if they are not.
	Refused  string
	Settings Settings
	// Position tells where a rule stands in File, counted from 1, or 0 where
	// that is not known. It may be nil.
	Position func(list List, index int) (line, column int)
}

// where names the place of a rule: file:line, file, or the source.
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

// mayAllow reports whether the set's mode and allow rules count.
func (s *RuleSet) mayAllow() bool { return s.refusal() == "" }

// refusal says why they do not.
func (s *RuleSet) refusal() string {
	if s.Source == SourceProject && !s.Trusted {
		return "the project is not trusted, so its rules can only tighten"
	}
	return s.Refused
}
