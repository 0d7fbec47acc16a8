package permissions

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// The limits of what is looked through for one access.
const (
	maxExpanded = 2000   // paths that a glob stands for
	maxBelow    = 20_000 // entries below a directory
)

// reach finds out what an access of a command leads to, in the environment that
// the command will run in.
type reach struct {
	policy *Policy
	ctx    context.Context
	access *shell.Access
	links  bool   // symbolic links below a directory count for what they lead to
	why    string // not all could be found out, and why
}

// paths returns the paths that the access names, links resolved. Where that is
// not possible it says why, and returns the path as it stands, so that rules
// and special places are compared with that at least.
func (r *reach) paths() []core.Resolved {
	if r.policy.environment == nil {
		r.why = "leads to files that are not known"
		return []core.Resolved{{Path: path.Clean(r.access.Path)}}
	}
	names := []string{r.access.Path}
	if r.access.Glob {
		if names = r.expand(); len(names) == 0 && r.why == "" {
			names = []string{r.access.Path} // the shell leaves it as it is
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

// expand returns the paths that a pattern of the shell stands for.
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
					r.why = fmt.Sprintf("stands for more than %d files", maxExpanded)
					return nil
				}
			}
		}
		found = next
	}
	return found
}

// matchName matches a name with a part of a pattern, as the shell does.
func matchName(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") {
		return false
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok || err != nil
}

// below yields the files below a directory that the access touches as well. It
// passes over what git keeps for itself and over installed packages.
func (r *reach) below(dir core.Resolved) iter.Seq[core.Resolved] {
	return func(yield func(core.Resolved) bool) {
		if r.policy.environment == nil {
			return
		}
		left := maxBelow
		r.walk(dir, &left, yield)
		if left <= 0 {
			r.why = fmt.Sprintf("goes through more than %d files, among which there may be some with secrets", maxBelow)
		}
	}
}

func (r *reach) walk(dir core.Resolved, left *int, yield func(core.Resolved) bool) bool {
	entries, err := r.policy.environment.Files().ReadDir(r.ctx, dir.Path)
	if err != nil {
		return true // it is a file, or the command cannot read it either
	}
	for _, e := range entries {
		name := e.Name()
		if r.access.SkipsHidden && strings.HasPrefix(name, ".") || name == ".git" || name == "node_modules" {
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
