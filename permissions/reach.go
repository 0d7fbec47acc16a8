package permissions

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// The limits of what is searched for one access.
const (
	maxExpanded = 2000   // paths that a glob matches
	maxBelow    = 20_000 // entries below a directory
)

// reach resolves the paths of a command's access, in the environment that the
// command will run in.
type reach struct {
	policy *Policy
	ctx    context.Context
	access *shell.Access
	links  bool   // resolve symbolic links below a directory
	why    string // why not all paths could be resolved; empty if they were
}

// paths returns the paths that the access names, links resolved. A path that
// cannot be resolved is returned as it is, so that rules and special places can
// at least match that, and why is set.
func (r *reach) paths() []core.Resolved {
	if r.policy.environment == nil {
		r.why = "leads to unknown files"
		return []core.Resolved{{Path: path.Clean(r.access.Path)}}
	}
	names := []string{r.access.Path}
	if r.access.Glob {
		if names = r.expand(); len(names) == 0 && r.why == "" {
			names = []string{r.access.Path} // the shell does not expand it
		}
	}
	var all []core.Resolved
	for _, name := range names {
		to, err := r.policy.environment.Resolve(r.ctx, name)
		if err != nil {
			r.why = fmt.Sprintf("leads to a path that cannot be resolved: %v", err)
			to = core.Resolved{Path: path.Clean(name)}
		}
		to.Path = slashed(to.Path)
		all = append(all, to)
	}
	return all
}

// expand returns the paths that a shell pattern matches.
func (r *reach) expand() []string {
	parts := strings.Split(strings.TrimPrefix(r.access.Path, "/"), "/")
	found := []string{""}
	for i, part := range parts {
		if !strings.ContainsAny(part, `*?[\`) {
			for j := range found {
				found[j] += "/" + part
			}
			continue
		}
		var next []string
		for _, dir := range found {
			entries, err := r.policy.environment.Files().ReadDir(r.ctx, dir+"/")
			if err != nil {
				continue
			}
			for _, e := range entries {
				if matchName(part, e.Name()) && (i == len(parts)-1 || e.IsDir() || e.Type()&fs.ModeSymlink != 0) {
					next = append(next, dir+"/"+e.Name())
				}
				if len(next) > maxExpanded {
					r.why = fmt.Sprintf("matches more than %d files", maxExpanded)
					return nil
				}
			}
		}
		found = next
	}
	return found
}

// matchName matches a name against one path element of a pattern, as the shell
// does.
func matchName(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") {
		return false
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok || err != nil
}

// below yields the files below a directory that the access includes. It skips
// .git and node_modules.
func (r *reach) below(dir core.Resolved) iter.Seq[core.Resolved] {
	return func(yield func(core.Resolved) bool) {
		if r.policy.environment == nil {
			return
		}
		left := maxBelow
		r.walk(dir, &left, yield)
		if left <= 0 {
			r.why = fmt.Sprintf("covers more than %d files, some of which may contain secrets", maxBelow)
		}
	}
}

// excludes reports whether the access leaves out files with a name.
func (r *reach) excludes(name string, dir bool) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	if slices.ContainsFunc(r.access.Without, matches) {
		return true
	}
	included, err := path.Match(fold(r.access.Name), fold(name)) // -iname
	return !dir && r.access.Name != "" && !included && err == nil
}

func (r *reach) walk(dir core.Resolved, left *int, yield func(core.Resolved) bool) bool {
	entries, err := r.policy.environment.Files().ReadDir(r.ctx, dir.Path)
	if err != nil {
		return true // a file, or the command cannot read it either
	}
	for _, e := range entries {
		name := e.Name()
		if r.access.SkipsHidden && strings.HasPrefix(name, ".") || name == ".git" || name == "node_modules" || r.excludes(name, e.IsDir()) {
			continue
		}
		if *left--; *left <= 0 {
			return false
		}
		below := core.Resolved{Path: strings.TrimSuffix(dir.Path, "/") + "/" + name, Inside: dir.Inside}
		if r.links && e.Type()&fs.ModeSymlink != 0 {
			to, err := r.policy.environment.Resolve(r.ctx, below.Path)
			if err != nil {
				r.why = fmt.Sprintf("leads to a link that cannot be resolved: %v", err)
				return false
			}
			below = to
		}
		if e.IsDir() {
			if !r.walk(below, left, yield) {
				return false
			}
		} else if !yield(below) {
			return false
		}
	}
	return true
}
