package skills

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// LibraryOptions configure a [Library].
type LibraryOptions struct {
	Places []Place
	// Enable and Disable are names or full names of skills; they override the
	// manifests. Disable takes precedence. "*" means all skills, "SCOPE:*" all of
	// a scope.
	Enable, Disable []string
	// Locked returns what the user approved of the installed skills in a folder,
	// by the names of their folders. Nil means nothing. See [Locks].
	Locked func(folder string) map[string]Lock
	// Cache is a folder for what was read and indexed of many skills; empty for
	// none.
	Cache string
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
	read     map[string]*cached // by the path of the SKILL.md
	current  *Catalog
	versions int
	fresh    time.Time // of the scan by latest; zero if it was used
}

// cached is a file that was read.
type cached struct {
	found   *found
	skill   *Skill
	problem *Problem
}

// NewLibrary returns a library. It does not read any file yet.
func NewLibrary(opts LibraryOptions) *Library {
	return &Library{opts: opts, read: map[string]*cached{}}
}

// With returns a library with further places behind those of l, which may be nil.
func (l *Library) With(places ...Place) *Library {
	var opts LibraryOptions
	if l != nil {
		opts = l.opts
	}
	opts.Places = slices.Concat(opts.Places, places)
	return NewLibrary(opts)
}

// Catalog is an immutable snapshot of a library.
type Catalog struct {
	Version  int      // increases with each change
	Skills   []*Skill // sorted by name, then by precedence
	Problems []Problem

	once    sync.Once
	matcher *Matcher
	cache   *diskCache
}

// Incomplete returns the problems that leave out skills which may be fine: places
// with too many folders.
func (l *Library) Incomplete() []Problem {
	return slices.DeleteFunc(slices.Clone(l.latest().Problems), func(p Problem) bool { return !p.Incomplete })
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
	c.once.Do(func() { c.matcher = newMatcher(c.Active(), c.cache) })
	return c.matcher
}

// freshness is how long a scan at the start of a session serves its first input.
const freshness = time.Second

// Catalog returns the current skills. Files whose size and times did not change
// are not read again, and the same catalog is returned until something changes.
func (l *Library) Catalog() *Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh := l.fresh; !fresh.IsZero() {
		if l.fresh = (time.Time{}); time.Since(fresh) < freshness {
			return l.current
		}
	}
	return l.scan()
}

// latest returns the last catalog, or the first one.
func (l *Library) latest() *Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		l.scan()
		l.fresh = time.Now()
	}
	return l.current
}

// Begin starts to read the skills. The first caller that needs them waits for that.
func (l *Library) Begin() {
	l.mu.Lock()
	if l.current != nil {
		l.mu.Unlock()
		return
	}
	go func() { // ends when they are read
		c := l.scan()
		l.fresh = time.Now()
		l.mu.Unlock()
		c.Matcher()
	}()
}

// scan looks for changes. The caller has the lock.
func (l *Library) scan() *Catalog {
	disk := &diskCache{dir: l.opts.Cache}
	seen := map[string]bool{}
	changed, total := l.current == nil, 0
	var problems []Problem
	lists := make([][]found, len(l.opts.Places))
	for i, p := range l.opts.Places {
		list, odd := walk(p, seen)
		problems = append(problems, odd...)
		lists[i], total = list, total+len(list)
	}
	read, order := make(map[string]*cached, total), make([]cached, 0, total)
	for i, p := range l.opts.Places {
		list := lists[i]
		var known map[string]*Skill
		if l.current == nil && len(list) >= minCached && p.Plugin == "" {
			known = disk.load(p.Dir, list)
		}
		for i := range list {
			f := &list[i]
			c := cached{found: f, skill: known[f.at]}
			switch before := l.read[f.at]; {
			case before != nil && before.found.state == f.state:
				c = *before
			case c.skill == nil:
				c.skill, c.problem = f.read()
				fallthrough
			default:
				changed = true
			}
			order = append(order, c) // there is room for all, so that nothing moves
			read[f.at] = &order[len(order)-1]
		}
		if l.current == nil && len(list) >= minCached && len(known) < len(list) && p.Plugin == "" {
			disk.store(p.Dir, order[len(order)-len(list):], time.Now())
		}
	}
	if !changed && len(read) == len(l.read) {
		return l.current
	}
	l.read = read
	l.versions++
	l.current = l.arrange(order, problems)
	l.current.cache = disk
	return l.current
}

// arrange builds a catalog from skills in order of precedence: a skill shadows
// later ones with the same name, and identical ones are dropped.
func (l *Library) arrange(order []cached, problems []Problem) *Catalog {
	c := &Catalog{Version: l.versions, Problems: problems}
	type content struct{ name, hash string }
	contents, names := make(map[content]bool, len(order)), make(map[string]*Skill, len(order))
	c.Skills = make([]*Skill, 0, len(order))
	locks := map[string]map[string]Lock{}
	copies := make([]Skill, len(order))
	for i, at := range order {
		if at.problem != nil {
			c.Problems = append(c.Problems, *at.problem)
			continue
		}
		s := &copies[i]
		*s = *at.skill
		key := content{strings.ToLower(s.Name), s.Hash}
		if contents[key] {
			continue
		}
		contents[key] = true
		s.Diagnostics = slices.Clone(s.Diagnostics)
		l.judge(s, locks)
		if s.State == StateOn {
			shadow(names, s)
		}
		c.Skills = append(c.Skills, s)
	}
	slices.SortStableFunc(c.Skills, func(a, b *Skill) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return c
}

// judge sets the state of a skill, apart from shadowing. Locks are those of the
// folders seen so far.
func (l *Library) judge(s *Skill, locks map[string]map[string]Lock) {
	if l.opts.Locked != nil && s.Dir != "" {
		parent := filepath.Dir(s.Dir)
		if _, seen := locks[parent]; !seen {
			locks[parent] = l.opts.Locked(parent)
		}
		if lock, ok := lockOf(locks[parent], filepath.Base(s.Dir)); ok {
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

// allNames is the key of a [Lock] for all skills of a folder.
const allNames = "*"

func lockOf(locks map[string]Lock, name string) (Lock, bool) {
	if lock, ok := locks[allNames]; ok {
		return lock, true
	}
	lock, ok := locks[name]
	return lock, ok
}

// shadow marks a skill whose name is already taken.
func shadow(names map[string]*Skill, s *Skill) {
	key := strings.ToLower(s.Name)
	other := names[key]
	if other == nil {
		names[key] = s
		return
	}
	s.State, s.Why = StateShadowed, fmt.Sprintf("%s takes precedence", other.File)
	message := fmt.Sprintf("%s shadows the %s skill of the same name: use %s for that one", other.FullName(), s.Scope, s.FullName())
	if other.Scope == s.Scope {
		message = fmt.Sprintf("another %s skill with the same name is ignored: %s: rename one of them", s.Scope, s.File)
	}
	other.Diagnostics = append(other.Diagnostics, Diagnostic{File: other.File, Line: 1, Column: 1, Severity: Warning, Message: message})
}
