package env

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/gitignore"
)

// Bounds of git's settings.
const (
	maxIncludes   = 10      // files that include each other
	maxGitSetting = 1 << 20 // bytes of a file
)

// globalIgnore returns what the user tells git to ignore in all repositories:
// the content of the file that core.excludesFile names, or of git/ignore in the
// user's configuration.
func globalIgnore(home, configHome, dir string) string {
	if configHome == "" {
		configHome = filepath.Join(home, ".config")
	}
	s := gitSettings{home: home}
	files := []string{"/etc/gitconfig", filepath.Join(configHome, "git", "config"), filepath.Join(home, ".gitconfig")}
	for up := dir; ; up = filepath.Dir(up) {
		if dirs := gitDirs(up); len(dirs) > 0 {
			s.gitDir = dirs[0]
			files = append(files, filepath.Join(dirs[len(dirs)-1], "config"))
		} else if at := filepath.Join(up, ".git"); isGitDir(at) {
			s.gitDir = at
			files = append(files, filepath.Join(at, "config"))
		}
		if s.gitDir != "" || up == filepath.Dir(up) {
			break
		}
	}
	file := filepath.Join(configHome, "git", "ignore")
	for _, settings := range files {
		if named, ok := s.excludesFile(settings, maxIncludes); ok {
			file = named
		}
	}
	return string(smallFile(file))
}

// gitSettings reads git's settings for a repository.
type gitSettings struct {
	home   string
	gitDir string // empty without a repository
}

// excludesFile returns the value of core.excludesFile in a file of settings, or
// in one that it includes.
func (s gitSettings) excludesFile(settings string, depth int) (file string, ok bool) {
	section := ""
	for line := range strings.Lines(string(smallFile(settings))) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			section, line = s.section(strings.TrimSpace(name), filepath.Dir(settings)), strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		setting := section + "." + strings.ToLower(strings.TrimSpace(key))
		if setting != "core.excludesfile" && setting != "include.path" {
			continue
		}
		value = gitPath(value, s.home, filepath.Dir(settings))
		if setting == "core.excludesfile" {
			file, ok = value, true
		} else if depth > 0 {
			if included, found := s.excludesFile(value, depth-1); found {
				file, ok = included, true
			}
		}
	}
	return file, ok
}

// section returns the name of a section: that of a conditional include is include
// if its condition is met.
func (s gitSettings) section(name, dir string) string {
	kind, condition, _ := strings.Cut(name, " ")
	if kind = strings.ToLower(kind); kind != "includeif" {
		return strings.ToLower(name)
	}
	kind, pattern, _ := strings.Cut(strings.Trim(strings.TrimSpace(condition), `"`), ":")
	met := false
	switch kind {
	case "gitdir":
		met = s.within(pattern, dir, false)
	case "gitdir/i":
		met = s.within(pattern, dir, true)
	case "onbranch":
		head, _ := strings.CutPrefix(strings.TrimSpace(string(smallFile(filepath.Join(s.gitDir, "HEAD")))), "ref: refs/heads/")
		met = s.gitDir != "" && gitignore.Match(allBelow(pattern), head)
	}
	if met {
		return "include"
	}
	return ""
}

// within reports whether a pattern matches the repository.
func (s gitSettings) within(pattern, dir string, fold bool) bool {
	switch {
	case strings.HasPrefix(pattern, "~/"):
		pattern = filepath.ToSlash(s.home) + pattern[1:]
	case strings.HasPrefix(pattern, "./"):
		pattern = filepath.ToSlash(dir) + pattern[1:]
	case !filepath.IsAbs(filepath.FromSlash(pattern)):
		pattern = "**/" + pattern
	}
	pattern, path := allBelow(pattern), filepath.ToSlash(s.gitDir)
	if fold {
		pattern, path = strings.ToLower(pattern), strings.ToLower(path)
	}
	return path != "" && gitignore.Match(pattern, path)
}

// allBelow makes a pattern that ends in a slash match everything below.
func allBelow(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return pattern + "**"
	}
	return pattern
}

// gitPath returns the path that a setting names.
func gitPath(value, home, dir string) string {
	value = strings.TrimSpace(value)
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		value, _, _ = strings.Cut(quoted, `"`)
	} else if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	value = strings.ReplaceAll(value, `\\`, `\`)
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		return filepath.Join(home, rest)
	}
	if value != "" && !filepath.IsAbs(value) {
		value = filepath.Join(dir, value)
	}
	return value
}

// smallFile returns the content of a regular file; nothing if there is none.
func smallFile(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxGitSetting {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil // it may not be read: then nothing is ignored
	}
	return data
}
