package skills

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// LibraryOptions configure a [Library].
type LibraryOptions struct {
	Places []Place
	// Enable and Disable are names or full names of skills; they override the
	// manifests. Disable takes precedence. "*" means all skills, "SCOPE:*" all of
	// a scope.
	Enable, Disable []string
	// Locked returns what the user approved for the installed skill in a folder;
	// false if it is not an installed one. Nil means that none is. See [Locks].
	Locked func(dir string) (Lock, bool)
}

// Lock is what the user approved for an installed skill.
type Lock struct {
	Files    map[string]string // SHA-256 in hex, by path with slashes
	Toolsets bool              // whether its toolsets, which are native code, may start
	Err      error             // why the lock file cannot be trusted
}

// Library finds the skills in its places. It checks for changes on each request,
// so that an added or edited skill is used from the next input on. It is safe for
// concurrent use.
type Library struct {
	opts LibraryOptions

	mu       sync.Mutex
	read     map[string]cached // by the path of the SKILL.md
	current  *Catalog
	versions int
}

// cached is a file that was read.
type cached struct {
	found   found
	skill   *Skill
	problem *Problem
}

// NewLibrary returns a library. It does not read any file yet.
func NewLibrary(opts LibraryOptions) *Library {
	return &Library{opts: opts, read: map[string]cached{}}
}

// Catalog is an immutable snapshot of a library.
type Catalog struct {
	Version  int      // increases with each change
	Skills   []*Skill // sorted by name, then by precedence
	Problems []Problem

	once    sync.Once
	matcher *Matcher
}

// Active returns the skills with StateOn, sorted by name.
func (c *Catalog) Active() []*Skill {
	return slices.DeleteFunc(slices.Clone(c.Skills), func(s *Skill) bool { return s.State != StateOn })
}

// listed returns the skills that the model may load, sorted by name.
func (c *Catalog) listed() []*Skill {
	return slices.DeleteFunc(c.Active(), func(s *Skill) bool { return s.NoModel })
}

// Find returns the skill with a name or full name, in any state. If there are
// several, it prefers the active one.
func (c *Catalog) Find(name string) (*Skill, bool) {
	var found *Skill
	for _, s := range c.Skills {
		if s.Called(name) && (found == nil || found.State != StateOn && s.State == StateOn) {
			found = s
		}
	}
	return found, found != nil
}

// Matcher returns the matcher of the active skills, built on first use.
func (c *Catalog) Matcher() *Matcher {
	c.once.Do(func() { c.matcher = NewMatcher(c.Active()) })
	return c.matcher
}

// Catalog returns the current skills. Files whose size and time did not change
// are not read again, and the same catalog is returned until something changes.
func (l *Library) Catalog() *Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[string]bool{}
	read := map[string]cached{}
	changed := l.current == nil
	var order []cached
	var problems []Problem
	for _, p := range l.opts.Places {
		list, odd := walk(p, seen)
		problems = append(problems, odd...)
		for _, f := range list {
			key := f.path()
			c, ok := l.read[key]
			if !ok || c.found.size != f.size || !c.found.changed.Equal(f.changed) {
				c = cached{found: f}
				c.skill, c.problem = f.read()
				changed = true
			}
			read[key] = c
			order = append(order, c)
		}
	}
	if !changed && len(read) == len(l.read) {
		return l.current
	}
	l.read = read
	l.versions++
	l.current = l.arrange(order, problems)
	return l.current
}

// arrange builds a catalog from skills in order of precedence: a skill shadows
// later ones with the same name, and identical ones are dropped.
func (l *Library) arrange(order []cached, problems []Problem) *Catalog {
	c := &Catalog{Version: l.versions, Problems: problems}
	contents := map[string]bool{}
	for _, at := range order {
		if at.problem != nil {
			c.Problems = append(c.Problems, *at.problem)
			continue
		}
		s := *at.skill
		key := strings.ToLower(s.Name) + "\x00" + s.Hash
		if contents[key] {
			continue
		}
		contents[key] = true
		s.Diagnostics = slices.Clone(s.Diagnostics)
		l.judge(&s)
		if s.State == StateOn {
			c.shadow(&s)
		}
		c.Skills = append(c.Skills, &s)
	}
	slices.SortStableFunc(c.Skills, func(a, b *Skill) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return c
}

// judge sets the state of a skill, apart from shadowing.
func (l *Library) judge(s *Skill) {
	if l.opts.Locked != nil && s.Dir != "" {
		if lock, ok := l.opts.Locked(s.Dir); ok {
			s.Installed, s.lock = true, lock
			switch {
			case lock.Err != nil:
				s.State, s.Why = StateChanged, lock.Err.Error()
				return
			case lockedSum(lock.Files, "SKILL.md") != s.Hash:
				s.State, s.Why = StateChanged, fmt.Sprintf("its SKILL.md changed since it was installed: see agent skills verify %s", s.Name)
				return
			}
		}
	}
	switch {
	case listed(l.opts.Disable, s):
		s.State, s.Why = StateOff, "disabled in the settings"
	case s.Disabled && !listed(l.opts.Enable, s):
		s.State, s.Why = StateOff, "disabled by default: enable it with agent skills enable "+s.Name
	}
}

// lockedSum returns the checksum of a file, ignoring the case of its name.
func lockedSum(files map[string]string, name string) string {
	for f, sum := range files {
		if strings.EqualFold(f, name) {
			return sum
		}
	}
	return ""
}

func listed(names []string, s *Skill) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return n == "*" || n == string(s.Scope)+":*" || s.Called(n)
	})
}

// shadow marks a skill whose name is already taken.
func (c *Catalog) shadow(s *Skill) {
	for _, other := range c.Skills {
		if other.State != StateOn || !strings.EqualFold(other.Name, s.Name) {
			continue
		}
		s.State, s.Why = StateShadowed, fmt.Sprintf("%s takes precedence", other.File)
		message := fmt.Sprintf("%s shadows the %s skill of the same name: use %s for that one", other.FullName(), s.Scope, s.FullName())
		if other.Scope == s.Scope {
			message = fmt.Sprintf("another %s skill with the same name is ignored: %s: rename one of them", s.Scope, s.File)
		}
		other.Diagnostics = append(other.Diagnostics, Diagnostic{File: other.File, Line: 1, Column: 1, Severity: Warning, Message: message})
		return
	}
}
