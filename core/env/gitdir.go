package env

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// gitPaths are the paths in the directory of a git repository that make git run
// programs, or read other files that do. Commands may write the rest.
var gitPaths = []string{
	"config", "config.worktree", "hooks", "info/attributes", "objects/info/alternates", "objects/info/http-alternates", "commondir",
}

// maxModules is the maximum number of submodules of a repository that commands may
// write; the rest is read-only.
const maxModules = 8

// isGitDir reports whether dir is the directory of a git repository.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// gitPins returns what must be read-only in the directory of a repository.
func gitPins(dir string) (pins []string) {
	add := func(path string) {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			pins = append(pins, path)
		}
	}
	for _, name := range gitPaths {
		add(filepath.Join(dir, name))
	}
	settings, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*", "config.worktree")) // cannot fail: dir has no pattern
	for _, path := range settings {
		add(path)
	}
	modules := gitModules(filepath.Join(dir, "modules"))
	if len(modules) > maxModules {
		add(filepath.Join(dir, "modules"))
		return pins
	}
	for _, m := range modules {
		for _, name := range gitPaths {
			add(filepath.Join(m, name))
		}
	}
	return pins
}

// gitModules returns the directories of the submodules.
func gitModules(dir string) (found []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(found) > maxModules:
			return fs.SkipAll
		case d.IsDir() && isGitDir(path):
			found = append(found, path)
			if _, err := os.Lstat(filepath.Join(path, "modules")); err != nil {
				return fs.SkipDir
			}
		case d.IsDir() && slices.Contains([]string{"objects", "refs", "logs"}, d.Name()):
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// gitDirs returns the repository directories that the .git file of a worktree
// refers to: its own, and the one with the settings.
func gitDirs(dir string) []string {
	at, ok := gitFile(filepath.Join(dir, ".git"))
	if !ok {
		return nil
	}
	dirs := []string{at}
	if text, err := os.ReadFile(filepath.Join(at, "commondir")); err == nil {
		common := strings.TrimSpace(string(text))
		if !filepath.IsAbs(common) {
			common = filepath.Join(at, common)
		}
		dirs = append(dirs, common)
	}
	return dirs
}

// borrowed returns the directories with objects that the repositories of
// directories use of others.
func borrowed(dirs []string) (found []string) {
	for _, dir := range dirs {
		objects := filepath.Join(dir, ".git", "objects")
		text, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
		if err != nil || len(text) > maxSetting {
			continue
		}
		for line := range strings.Lines(string(text)) {
			other := strings.TrimSuffix(line, "\n")
			if !filepath.IsAbs(other) {
				other = filepath.Join(objects, other)
			}
			if filepath.Base(other) == "objects" && isGitDir(filepath.Dir(other)) {
				found = append(found, other)
			}
		}
	}
	return found
}

// gitFile returns the directory that a .git file refers to.
func gitFile(path string) (dir string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false // missing, or a directory
	}
	dir, ok = strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if dir = strings.TrimSpace(dir); !ok || dir == "" {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return dir, true
}

var (
	gitSection = lazy.Regexp(`(?i)^\[\s*(core|remote|branch|user|init|submodule|lfs|extensions|pull|push|color|column|advice)\s*("[^"\\]*")?\s*\]$`)
	gitSetting = lazy.Regexp(`(?i)^(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|` +
		`fetch|merge|rebase|remote|pushremote|name|email|defaultbranch|active|objectformat|partialclonefilter|promisor|tagopt|ff|default|autosetupremote|ui)\s*=[^\\]*$`)
	gitURL = lazy.Regexp(`(?i)^(url|pushurl)\s*=\s*(https?://|ssh://|git@|file://|\.{0,2}/)[^\\]*$`)
)

// harmlessConfig reports whether the settings of a repository, such as those that
// git init and clone write, cannot make git run a program.
func harmlessConfig(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil || len(text) > maxSetting {
		return false
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", line[0] == '#', line[0] == ';', gitSection().MatchString(line), gitSetting().MatchString(line):
		case gitURL().MatchString(line) && !strings.Contains(line, "::"):
		default:
			return false
		}
	}
	return true
}

// maxSetting limits the files that are read to judge them.
const maxSetting = 256 << 10

// gitPlanted returns the files in the directory of a repository that are new or
// changed and can make git run a program later.
func gitPlanted(dir string, changed func(path string) bool) (found []string) {
	is := func(path string, harmless func() bool) {
		if changed(path) && !harmless() {
			found = append(found, path)
		}
	}
	never := func() bool { return false }
	for _, name := range gitPaths {
		path := filepath.Join(dir, name)
		switch name {
		case "config":
			is(path, func() bool { return harmlessConfig(path) })
		case "hooks":
			entries, err := readSome(path, scanEntries)
			if err != nil { // missing, or not a directory: a link
				is(path, never)
			}
			for _, e := range entries {
				is(filepath.Join(path, e.Name()), func() bool { return strings.HasSuffix(e.Name(), ".sample") })
			}
		case "info/attributes", "objects/info/alternates", "objects/info/http-alternates", "config.worktree":
			is(path, func() bool { info, err := os.Stat(path); return err == nil && info.Size() == 0 })
		default:
			is(path, never)
		}
	}
	common, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*", "commondir"))
	for _, path := range common {
		is(path, func() bool {
			text, err := os.ReadFile(path)
			return err == nil && string(bytes.TrimSpace(text)) == "../.."
		})
	}
	settings, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*", "config.worktree"))
	for _, path := range settings {
		is(path, never)
	}
	todo := filepath.Join(dir, "rebase-merge", "git-rebase-todo")
	is(todo, func() bool { return !todoRuns(todo) })
	for _, module := range gitModules(filepath.Join(dir, "modules")) {
		found = append(found, gitPlanted(module, changed)...)
	}
	return found
}

var todoExec = lazy.Regexp(`(?m)^\s*(x|exec)\s`)

// todoRuns reports whether continuing a rebase would run commands.
func todoRuns(path string) bool {
	text, err := os.ReadFile(path)
	return err != nil || len(text) > maxSetting || todoExec().Match(text)
}

// gitEnv is the environment for git in a sandbox in which it cannot write its
// settings and reach no keys: it does not try to.
func gitEnv(env []string) []string {
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "GIT_CONFIG_COUNT=") }) {
		return env // set by the policy, or by the user
	}
	return append(slices.Clip(env),
		"GIT_CONFIG_COUNT=4",
		"GIT_CONFIG_KEY_0=branch.autoSetupMerge", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=commit.gpgSign", "GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_KEY_2=tag.gpgSign", "GIT_CONFIG_VALUE_2=false",
		"GIT_CONFIG_KEY_3=tag.forceSignAnnotated", "GIT_CONFIG_VALUE_3=false",
	)
}

var (
	gitSigns  = lazy.Regexp(`(?im)^\s*(gpgsign|forceSignAnnotated)\s*=?\s*(true|yes|on|1)?\s*$`)
	gitWrites = lazy.Regexp(`\bgit\b.*\b(commit|merge|rebase|tag|cherry-pick|revert|am|pull)\b`)
)

// unsigned reports whether a command makes commits or tags that the user's settings
// say to sign.
func unsigned(script, home string, roots []string) bool {
	if !gitWrites().MatchString(script) {
		return false
	}
	files := []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config")}
	for _, dir := range roots {
		files = append(files, filepath.Join(dir, ".git", "config"))
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && gitSigns().Match(text)
	})
}

// protectGit adds the protection of the repository of a writable directory: git may
// write it, but not what it runs programs from.
func protectGit(p *sandbox.Profile, dir string) {
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	switch {
	case slices.Contains(p.Writable, git): // granted
	case err == nil && info.Mode().IsRegular():
		p.ReadOnly = append(p.ReadOnly, git)
		protectWorktree(p, git)
	case err == nil && info.IsDir() && isGitDir(git):
		p.ReadOnly = append(p.ReadOnly, gitPins(git)...)
	default:
		p.ReadOnly = append(p.ReadOnly, git+"/")
	}
}

// protectWorktree adds the protection of the repository that the .git file of a
// worktree refers to. Git may write it only if it refers to the worktree in turn.
func protectWorktree(p *sandbox.Profile, git string) {
	dirs := gitDirs(filepath.Dir(git))
	for _, dir := range dirs {
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		back, err := os.ReadFile(filepath.Join(dir, "gitdir"))
		repository := filepath.Dir(filepath.Dir(dir))
		switch {
		case err == nil && strings.TrimSpace(string(back)) == git && filepath.Base(filepath.Dir(dir)) == "worktrees" && isGitDir(repository):
			p.Writable = append(p.Writable, repository)
			p.ReadOnly = append(p.ReadOnly, append(gitPins(repository), filepath.Join(dir, "commondir"), filepath.Join(dir, "gitdir"))...)
		case !slices.ContainsFunc(p.Writable, func(w string) bool { return sandbox.Below(w, dir) && w != dir }):
		case isGitDir(dir):
			p.ReadOnly = append(p.ReadOnly, gitPins(dir)...)
		}
	}
}

// fixtures finds the keys of tests that are committed.
type fixtures struct {
	roots []string
	is    func(path string) bool
	index map[string][]byte // of git, by root
}

// has reports whether a file is one. It can be, if a root is a repository.
func (f *fixtures) has(path string) bool {
	return f.is != nil && slices.ContainsFunc(f.roots, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel) && f.is(filepath.ToSlash(rel)) && f.tracked(root, filepath.ToSlash(rel))
	})
}

// tracked reports whether the index of a repository has a file. An entry is the name,
// which ends in NUL, after two bytes with its length; version 4 has none such.
func (f *fixtures) tracked(root, rel string) bool {
	index, read := f.index[root]
	if !read {
		if f.index == nil {
			f.index = map[string][]byte{}
		}
		dir := filepath.Join(root, ".git")
		if dirs := gitDirs(root); len(dirs) > 0 {
			dir = dirs[0]
		}
		if info, err := os.Stat(filepath.Join(dir, "index")); err == nil && info.Size() <= maxIndex {
			index, _ = os.ReadFile(filepath.Join(dir, "index")) // without one, nothing is tracked
		}
		f.index[root] = index
	}
	name := []byte(rel + "\x00")
	for at := 0; ; {
		i := bytes.Index(index[at:], name)
		if i < 0 {
			return false
		}
		if at += i; at >= 2 && int(index[at-2]&0xf)<<8|int(index[at-1]) == min(len(rel), 0xfff) {
			return true
		}
		at++
	}
}

// maxIndex limits the index that is read.
const maxIndex = 64 << 20
