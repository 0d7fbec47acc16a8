package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core/gitindex"
)

const maxSubmodules = 200

// CheckRepository returns an error if the settings of the git repository that
// contains a directory, or of its submodules, could make git run a program
// despite [Analysis.Env]: settings whose names the repository chooses, such as
// filters and text converters. It returns nil if there is no repository.
//
// Read returns the content of the file at an absolute path, and an error that
// is [fs.ErrNotExist] if there is none. What cannot be read or parsed is an error.
// Enclosing repositories are checked, too, since git falls back to them if one
// is damaged.
func CheckRepository(dir string, read func(path string) ([]byte, error)) error {
	c := &repositoryCheck{read: read, left: maxSubmodules}
	for dir = path.Clean(dir); ; dir = path.Dir(dir) {
		if err := c.worktree(dir); err != nil {
			return err
		}
		if dir == "/" || dir == "." || dir == path.Dir(dir) {
			return nil
		}
	}
}

type repositoryCheck struct {
	read func(path string) ([]byte, error)
	left int // how many more submodules may be checked
}

// worktree checks the repository whose work tree is a directory, if any.
func (c *repositoryCheck) worktree(dir string) error {
	gitDir := path.Join(dir, ".git")
	link, err := c.read(gitDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil: // a file with the path of the repository
		target, ok := strings.CutPrefix(strings.TrimRight(string(link), "\r\n"), "gitdir: ")
		if !ok {
			return fmt.Errorf("%s is neither a repository nor a link to one", gitDir)
		}
		gitDir = target
		if !path.IsAbs(gitDir) {
			gitDir = path.Join(dir, gitDir)
		}
	}
	if err := c.settings(dir, gitDir); err != nil {
		return err
	}
	return c.submodules(dir, gitDir)
}

// settings checks the settings files of a repository.
func (c *repositoryCheck) settings(dir, gitDir string) error {
	common := gitDir
	switch text, err := c.read(path.Join(gitDir, "commondir")); {
	case err == nil:
		if common = strings.TrimSpace(string(text)); !path.IsAbs(common) {
			common = path.Join(gitDir, common)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the settings of the repository: %w", err)
	}
	for _, name := range []string{path.Join(common, "config"), path.Join(gitDir, "config.worktree")} {
		content, err := c.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the settings of the repository: %w", err)
		}
		if err := checkConfig(string(content), func(worktree string) bool { return path.Join(gitDir, worktree) == dir }); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkConfig looks for the first setting that is not known to be harmless.
// core.worktree, which submodules have, must be the known work tree.
func checkConfig(content string, isWorktree func(string) bool) error {
	section, subsection := "", ""
	for i, line := range strings.Split(strings.TrimPrefix(content, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			end := strings.LastIndexByte(line, ']')
			if end < 0 || strings.Count(line, "]") != 1 || strings.Count(line, "[") != 1 || strings.Contains(line, `\`) {
				return fmt.Errorf("line %d: unsupported section header", i+1)
			}
			section, subsection, _ = strings.Cut(line[1:end], " ")
			if before, after, dotted := strings.Cut(section, "."); dotted {
				section, subsection = before, after+subsection
			}
			section = strings.ToLower(section)
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if strings.HasSuffix(line, `\`) {
			return fmt.Errorf("line %d: line continuations are not supported", i+1)
		}
		key, v, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if section == "core" && subsection == "" && key == "worktree" && isWorktree(strings.TrimSpace(v)) {
			continue
		}
		if !isHarmlessSetting(section, subsection != "", key) {
			name := section + "." + key
			if subsection != "" {
				name = section + "." + strings.Trim(subsection, ` "`) + "." + key
			}
			return fmt.Errorf("setting %s (line %d) may make git run a program", name, i+1)
		}
	}
	return nil
}

// harmlessSettings are the settings that run no program in read-only commands, or
// that gitEnv overrides; * is the whole section.
var harmlessSettings = map[string]string{
	"core": " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath abbrev compression " +
		"bigfilethreshold untrackedcache fsmonitor hookspath pager editor sshcommand excludesfile attributesfile sharedrepository commentchar whitespace preloadindex " +
		"longpaths fscache checkstat trustctime protecthfs protectntfs packedgitlimit packedgitwindowsize deltabasecachelimit multipackindex commitgraph sparsecheckout sparsecheckoutcone hidedotfiles createobject fsync ",
	"extensions": " worktreeconfig partialclone refstorage noop preciousobjects relativeworktrees ",
	"remote":     " url fetch pushurl push tagopt prune prunetags promisor partialclonefilter skipdefaultupdate skipfetchall mirror gh-resolved ",
	"submodule":  " url active branch path recurse fetchjobs shallow fetchrecursesubmodules ",
	"diff": " algorithm renames renamelimit colormoved colormovedws context interhunkcontext mnemonicprefix noprefix relative statgraphwidth indentheuristic suppressblankempty wserrorhighlight ignoresubmodules autorefreshindex dirstat " +
		"tool guitool ",
	"merge": " conflictstyle ff renames renamelimit log tool stat defaulttoupstream verbosity branchdesc suppressdest ",
	"user":  "*", "author": "*", "committer": "*", "branch": "*", "color": "*", "column": "*", "advice": "*", "push": "*", "pull": "*", "fetch": "*", "rebase": "*",
	"rerere": "*", "gc": "*", "pack": "*", "index": "*", "feature": "*", "status": "*", "commit": "*", "tag": "*", "init": "*", "http": "*", "https": "*", "url": "*",
	"lfs": "*", "gui": "*", "github": "*", "gitlab": "*", "maintenance": "*", "log": "*", "format": "*", "gpg": "*", "alias": "*", "credential": "*", "pager": "*",
	"stash": "*", "notes": "*", "safe": "*", "blame": "*", "versionsort": "*", "help": "*", "worktree": "*", "checkout": "*", "clone": "*", "am": "*", "apply": "*",
	"protocol": "*", "receive": "*", "transfer": "*", "i18n": "*", "showbranch": "*", "svn-remote": "*", "svn": "*", "difftool": "*", "mergetool": "*", "sequence": "*", "vscode": "*",
}

// harmlessDriver are the settings of a diff driver that run nothing.
const harmlessDriver = " xfuncname funcname wordregex binary cachetextconv algorithm "

func isHarmlessSetting(section string, hasSubsection bool, key string) bool {
	if section == "diff" && hasSubsection {
		return strings.Contains(harmlessDriver, " "+key+" ")
	}
	keys := harmlessSettings[section]
	return keys == "*" || keys != "" && key != "" && strings.Contains(keys, " "+key+" ") && (section != "merge" || !hasSubsection)
}

// submodules checks the repositories that the index links to: git runs in them,
// too.
func (c *repositoryCheck) submodules(worktree, gitDir string) error {
	index, err := c.read(path.Join(gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the index of the repository: %w", err)
	}
	entries, err := gitindex.Read(index)
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(gitDir, "index"), err)
	}
	for _, e := range entries {
		if !e.Submodule {
			continue
		}
		if c.left--; c.left < 0 {
			return fmt.Errorf("%s has more than %d submodules", worktree, maxSubmodules)
		}
		if err := c.worktree(path.Join(worktree, e.Path)); err != nil {
			return err
		}
	}
	return nil
}
