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
	Files fs.FS  // instead of Dir, for bundled skills
	// Base is the folder that the skills' Paths are relative to, itself relative
	// to the working directory, with slashes.
	Base string
	// Within is the folder that symbolic links may not leave; empty = anywhere.
	Within string
	// Plugin is the plugin that the skills belong to: their names are PLUGIN:NAME. Of
	// its folder Dir, only Folders are skills. Fill replaces the variables of a text.
	Plugin  string
	Folders []string
	Fill    func(text string) string
	// HookVars are the variables of the plugin's hooks.
	HookVars map[string]string
}

// PlaceOptions configure [Places].
type PlaceOptions struct {
	Dir      string // the working directory
	Home     string // the agent's directory, ~/.agent
	UserHome string // the user's home directory
	Trusted  bool   // use the project's skills
	NoClaude bool   // leave out the folders of Claude Code
	Bundled  fs.FS  // nil for none
}

// projectFolders are the skill folders of a project. Those of other programs are
// read but never written.
var projectFolders = []string{".agent/skills", ".agents/skills", claudeFolder}

// claudeFolder is the folder of Claude Code, in a project and in the home
// directory.
const claudeFolder = ".claude/skills"

// Places lists the places of skills in order of precedence. Project skills are
// searched from the working directory up to the top of its repository.
func Places(o PlaceOptions) []Place {
	var all []Place
	if o.Trusted && o.Dir != "" {
		chain := upward(o.Dir)
		top := chain[len(chain)-1]
		for i, dir := range chain {
			base := strings.TrimSuffix(strings.Repeat("../", i), "/")
			for _, folder := range projectFolders {
				if o.NoClaude && folder == claudeFolder {
					continue
				}
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
		if !o.NoClaude {
			own = append(own, filepath.Join(o.UserHome, filepath.FromSlash(claudeFolder)))
		}
	}
	// In the home directory, the user's skills are not project skills.
	all = slices.DeleteFunc(all, func(p Place) bool { return slices.Contains(own, p.Dir) })
	for _, dir := range own {
		all = append(all, Place{Scope: ScopeUser, Dir: dir})
	}
	if o.Bundled != nil {
		all = append(all, Place{Scope: ScopeBundled, Files: o.Bundled})
	}
	return all
}

// upward lists dir and its parents up to the top of the repository. Without a
// repository it returns only dir.
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
