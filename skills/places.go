package skills

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Place is a folder whose subfolders are skills.
type Place struct {
	Scope Scope
	Dir   string // on disk
	Files fs.FS  // in its stead, for bundled skills
	// Base leads from the working directory, with slashes, to the folder that the
	// paths of the skills are taken against.
	Base string
	// Within bounds where symbolic links may lead; empty means anywhere.
	Within string
}

// PlaceOptions say where skills may be.
type PlaceOptions struct {
	Dir      string // the working directory
	Home     string // the agent's own directory, ~/.agent
	UserHome string // the person's home directory
	Trusted  bool   // the working directory's own skills count
	Bundled  fs.FS  // nil for none
}

// projectFolders are where a project keeps skills. Those of other programs are
// read, and never written.
var projectFolders = []string{".agent/skills", ".agents/skills", ".claude/skills"}

// Places lists where skills may be, the more important ones first. A project's
// are looked for from the working directory up to the top of its repository.
func Places(o PlaceOptions) []Place {
	var all []Place
	if o.Trusted && o.Dir != "" {
		chain := upward(o.Dir)
		top := chain[len(chain)-1]
		for i, dir := range chain {
			base := strings.TrimSuffix(strings.Repeat("../", i), "/")
			for _, folder := range projectFolders {
				all = append(all, Place{Scope: ScopeProject, Dir: filepath.Join(dir, filepath.FromSlash(folder)), Base: base, Within: top})
			}
		}
	}
	var own []string
	if o.Home != "" {
		own = append(own, filepath.Join(o.Home, "skills"))
	}
	if o.UserHome != "" {
		own = append(own, filepath.Join(o.UserHome, ".agents", "skills"))
	}
	// Work in the home directory does not make a project of one's own skills.
	all = slices.DeleteFunc(all, func(p Place) bool { return slices.Contains(own, p.Dir) })
	for _, dir := range own {
		all = append(all, Place{Scope: ScopeUser, Dir: dir})
	}
	if o.Bundled != nil {
		all = append(all, Place{Scope: ScopeBundled, Files: o.Bundled})
	}
	return all
}

// upward lists dir and those above it, up to the top of the repository. Without
// a repository it is dir alone.
func upward(dir string) []string {
	var chain []string
	for at := dir; ; {
		chain = append(chain, at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return chain
		}
		up := filepath.Dir(at)
		if up == at {
			return chain[:1]
		}
		at = up
	}
}
