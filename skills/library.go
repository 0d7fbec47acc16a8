package skills

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// LibraryOptions say which skills there are.
type LibraryOptions struct {
	Places []Place
	// Enable and Disable are names, or full names, of skills that are on or off
	// whatever their manifests say. Disable goes first; "*" and "SCOPE:*" are
	// all, or all of a scope.
	Enable, Disable []string
	// Locked tells of an installed skill, by its folder, what the person agreed
	// to; false for one that is not installed. Nil means that none is. See
	// [Locks].
	Locked func(dir string) (Lock, bool)
}

// Lock is what the person agreed to of an installed skill.
type Lock struct {
	Files    map[string]string // SHA-256 in hex, by path with slashes
	Toolsets bool              // its toolsets, too, which are native code
	Err      error             // why the lock file says nothing that can be relied on
}

// Library is the skills that there are. It looks for changes whenever it is
// asked: a skill that was added or edited counts from the next input on, and
// nothing is watched in between. It is safe for concurrent use.
type Library struct {
	opts LibraryOptions

	mu       sync.Mutex
	read     map[string]cached // by the path of the SKILL.md
	current  *Catalog
	versions int
}

// cached is a file as it was read last.
type cached struct {
	found   found
	skill   *Skill
	problem *Problem
}

// NewLibrary returns a library. It reads nothing yet.
func NewLibrary(opts LibraryOptions) *Library {
	return &Library{opts: opts, read: map[string]cached{}}
}

// Catalog is the skills at one time. It is immutable.
type Catalog struct {
	Version  int      // differs between catalogs of a library that differ
	Skills   []*Skill // sorted by name; of one name the one that counts first
	Problems []Problem

	once    sync.Once
	matcher *Matcher
}

// Active returns the skills that are on, by name.
func (c *Catalog) Active() []*Skill {
	return slices.DeleteFunc(slices.Clone(c.Skills), func(s *Skill) bool { return s.State != StateOn })
}

// Find returns the skill of that name, or full name, whatever its state; of
// several the one that counts.
func (c *Catalog) Find(name string) (*Skill, bool) {
	var found *Skill
	for _, s := range c.Skills {
		if s.Called(name) && (found == nil || found.State != StateOn && s.State == StateOn) {
			found = s
		}
	}
	return found, found != nil
}

// Matcher returns the matcher of the catalog's active skills, which is made
// when it is wanted first.
func (c *Catalog) Matcher() *Matcher {
	c.once.Do(func() { c.matcher = NewMatcher(c.Active()) })
	return c.matcher
}

// Catalog returns the skills as they are now. A file that did not change, by
// size and time, is not read again, and the catalog is the same one until
// something changed.
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

// Refresh forgets what was read, so that the next catalog is read anew.
func (l *Library) Refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read, l.current = map[string]cached{}, nil
}

// arrange makes a catalog of skills in the order of their places: of two with
// one name the earlier counts, and of two with one content the later is left
// out.
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

// judge sets the state that a skill has by itself.
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
		s.State, s.Why = StateOff, "the settings disable it"
	case s.Disabled && !listed(l.opts.Enable, s):
		s.State, s.Why = StateOff, "it is off unless it is enabled: agent skills enable "+s.Name
	}
}

// lockedSum is the sum of a file, whatever the case of its name.
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

// shadow marks a skill whose name is taken.
func (c *Catalog) shadow(s *Skill) {
	for _, other := range c.Skills {
		if other.State != StateOn || !strings.EqualFold(other.Name, s.Name) {
			continue
		}
		s.State, s.Why = StateShadowed, fmt.Sprintf("%s goes before it", other.File)
		message := fmt.Sprintf("%s shadows the %s skill of the same name: %s reaches that", other.FullName(), s.Scope, s.FullName())
		if other.Scope == s.Scope {
			message = fmt.Sprintf("another %s skill has the same name and is left out: %s; give one of them another name", s.Scope, s.File)
		}
		other.Diagnostics = append(other.Diagnostics, Diagnostic{File: other.File, Line: 1, Column: 1, Severity: Warning, Message: message})
		return
	}
}
