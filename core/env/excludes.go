package env

import (
	"os"
	"path/filepath"
	"strings"
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
	file := filepath.Join(configHome, "git", "ignore")
	for _, settings := range []string{
		"/etc/gitconfig", filepath.Join(configHome, "git", "config"), filepath.Join(home, ".gitconfig"), filepath.Join(dir, ".git", "config"),
	} {
		if named, ok := excludesFile(settings, home, maxIncludes); ok {
			file = named
		}
	}
	return string(smallFile(file))
}

// excludesFile returns the value of core.excludesFile in a file of settings, or
// in one that it includes.
func excludesFile(settings, home string, depth int) (file string, ok bool) {
	section := ""
	for line := range strings.Lines(string(smallFile(settings))) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		setting := section + "." + strings.ToLower(strings.TrimSpace(key))
		if setting != "core.excludesfile" && setting != "include.path" {
			continue
		}
		value = gitPath(value, home, filepath.Dir(settings))
		if setting == "core.excludesfile" {
			file, ok = value, true
		} else if depth > 0 {
			if included, found := excludesFile(value, home, depth-1); found {
				file, ok = included, true
			}
		}
	}
	return file, ok
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
