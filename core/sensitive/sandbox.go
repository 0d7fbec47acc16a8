package sensitive

import (
	"slices"
	"strings"
)

// IsSecret reports whether a file, by its path in a workspace with forward slashes,
// may contain secrets.
func IsSecret(path string) bool {
	e, ok := Match(path, 0)
	return ok && e.Class == Secret
}

// Fixture reports whether a file, by its path in a workspace with forward slashes, is
// a key that tests use: a sandbox may show it if it is committed, as it is no secret.
func Fixture(path string) bool {
	dirs := strings.Split(path, "/")
	name := dirs[len(dirs)-1]
	e, ok := Match(name, 0)
	return ok && e.Reason == keyFiles && slices.ContainsFunc(dirs[:len(dirs)-1], func(dir string) bool {
		return slices.Contains([]string{"testdata", "test-data", "test_data", "fixtures", "fixture", "__fixtures__", "test", "tests", "__tests__", "spec", "specs", "testing", "test-fixtures"}, strings.ToLower(dir))
	})
}

// keyFiles is the reason of private keys that are recognised by their ending.
const keyFiles = "private keys and key stores"

// SecretPaths returns the places of secrets that have a fixed location, for a
// sandbox to hide: absolute paths that need not exist, with forward slashes. The
// last element may have *. Home and agentHome may be empty.
func SecretPaths(home, agentHome string) []string {
	roots := map[Scope]string{System: "", Home: strings.TrimRight(home, "/"), AgentHome: strings.TrimRight(agentHome, "/")}
	var paths []string
	for _, e := range entries() {
		root, fixed := roots[e.Scope]
		if !fixed || e.Class != Secret || root == "" && e.Scope != System {
			continue
		}
		p := strings.TrimSuffix(e.Pattern, "/")
		if i := strings.IndexByte(p, '*'); i >= 0 && strings.Contains(p[i:], "/") {
			continue // of processes, which a sandbox has its own of
		}
		paths = append(paths, root+"/"+p)
	}
	if home != "" {
		paths = append(paths, roots[Home]+"/.env*")
	}
	return paths
}

// ProtectedNames returns what a sandbox must keep from being written in a
// workspace, at any depth: names and, with a slash inside, paths relative to any
// directory. A slash at the end says that it is a directory; an element may have
// *. What is below ".git/" and must not be written is in [GitPaths].
func ProtectedNames() []string {
	var names []string
	for _, e := range entries() {
		if e.Class == Protected && e.Scope == Anywhere {
			names = append(names, e.Pattern)
		}
	}
	return slices.Compact(names)
}

// GitPaths returns the paths below the directory of a git repository that make
// git run programs or read other files: what a sandbox protects where git itself
// may write. A slash at the end says that it is a directory.
func GitPaths() []string {
	return []string{
		"config", "config.worktree", "hooks/", "info/attributes", "modules/", "objects/info/alternates",
		"objects/info/http-alternates", "commondir", "worktrees/*/config.worktree",
	}
}
