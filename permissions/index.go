package permissions

import (
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// ruleList holds the rules of one list in order, with an index of those that
// could match an access, so that many rules stay cheap.
type ruleList struct {
	rules    []*rule
	anything []*rule // rules that are not indexed
	tools    map[string][]*rule
	scopes   map[core.Scope][]*rule
	programs map[string][]*rule // of commands, by the name of the program
	paths    map[scopedPath][]*rule
}

// scopedPath is the index key of rules whose globs are one path, or a tree with
// this root.
type scopedPath struct {
	scope core.Scope
	path  string
}

// add appends a rule.
func (l *ruleList) add(r *rule) {
	if l.rules == nil {
		*l = ruleList{
			tools: map[string][]*rule{}, scopes: map[core.Scope][]*rule{},
			programs: map[string][]*rule{}, paths: map[scopedPath][]*rule{},
		}
	}
	r.order = len(l.rules)
	l.rules = append(l.rules, r)
	switch {
	case r.every:
		l.anything = append(l.anything, r)
	case r.scope == "":
		l.tools[r.Name] = append(l.tools[r.Name], r)
	case startsProgram(r.scope) && !r.all && r.cond == nil && len(r.argv.words) > 0:
		l.programs[r.argv.program] = append(l.programs[r.argv.program], r)
	case r.scope.IsFile() && !r.all && r.cond == nil && simpleGlobs(r.globs):
		for _, g := range r.globs {
			key := scopedPath{r.scope, g.top()}
			l.paths[key] = append(l.paths[key], r)
		}
	default:
		l.scopes[r.scope] = append(l.scopes[r.scope], r)
	}
	if r.all && !r.every && r.scope != "" { // there may be a tool of this name
		l.tools[r.Name] = append(l.tools[r.Name], r)
	}
}

func simpleGlobs(globs []glob) bool {
	return !slices.ContainsFunc(globs, func(g glob) bool { return !g.literal && g.tree == "" })
}

// first returns the first rule that fits matches to a subject.
func (l *ruleList) first(s *subject, fits func(*rule) bool) *rule {
	if len(l.rules) == 0 {
		return nil
	}
	var found *rule
	try := func(rules []*rule) {
		for _, r := range rules {
			if found != nil && r.order >= found.order {
				return
			}
			if fits(r) {
				found = r
				return
			}
		}
	}
	try(l.anything)
	try(l.tools[s.tool])
	try(l.scopes[s.Scope])
	switch {
	case startsProgram(s.Scope):
		l.tryPrograms(s, try)
	case s.Scope.IsFile():
		l.tryPaths(s, try)
	}
	return found
}

func (l *ruleList) tryPrograms(s *subject, try func([]*rule)) {
	if len(l.programs) == 0 {
		return
	}
	if s.program == "" { // could be any program
		for _, rules := range l.programs {
			try(rules)
		}
		return
	}
	try(l.programs[s.program])
	for _, name := range s.programs {
		try(l.programs[name])
	}
}

// tryPaths tries the rules of the path and of all its parents; if the subject is
// a tree or unknown, all rules for paths.
func (l *ruleList) tryPaths(s *subject, try func([]*rule)) {
	if len(l.paths) == 0 {
		return
	}
	if s.path == "" || s.Recursive {
		for key, rules := range l.paths {
			if key.scope == s.Scope {
				try(rules)
			}
		}
		return
	}
	for path := s.path; ; {
		try(l.paths[scopedPath{s.Scope, path}])
		if s.ruled != s.path { // deny and ask rules may be folded
			try(l.paths[scopedPath{s.Scope, fold(path)}])
		}
		i := strings.LastIndexByte(path, '/')
		switch {
		case path == "/" || i < 0:
			return
		case i == 0:
			path = "/"
		default:
			path = path[:i]
		}
	}
}
