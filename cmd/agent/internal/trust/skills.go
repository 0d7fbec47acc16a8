package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// skillFolders are the folders of a project's skills, in the directory and in
// its parents up to the root of the repository.
var skillFolders = []string{".agent/skills", ".agents/skills", ".claude/skills"}

// maxSkillFiles limits the files of all skills of a directory. With more, the
// directory cannot be trusted.
const maxSkillFiles = 5000

// addSkills adds the files of the skills that are used in a directory: they
// instruct the model, and their scripts can be run.
func (s *Store) addSkills(dir string, found map[string]string) error {
	h := &skillHasher{dir: dir, found: found, seen: map[string]bool{}}
	for at := dir; ; {
		for _, folder := range skillFolders {
			root := filepath.Join(at, filepath.FromSlash(folder))
			if sameFile(root, filepath.Join(s.home, "skills")) || ownSkills(root) {
				continue // these are the user's skills
			}
			if err := h.walk(root, 0); err != nil {
				return fmt.Errorf("trust: skills: %w", err)
			}
		}
		up := filepath.Dir(at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || up == at || !inRepository(dir) {
			return nil
		}
		at = up
	}
}

// ownSkills reports whether a folder is ~/.agents/skills or ~/.claude/skills, the
// user's skills that several programs share.
func ownSkills(root string) bool {
	home, err := os.UserHomeDir()
	return err == nil && (sameFile(root, filepath.Join(home, ".agents", "skills")) || sameFile(root, filepath.Join(home, ".claude", "skills")))
}

// inRepository reports whether a directory is in a git repository.
func inRepository(dir string) bool {
	for at := dir; ; {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(at)
		if up == at {
			return false
		}
		at = up
	}
}

// skillHasher hashes the files below folders. It follows symbolic links.
type skillHasher struct {
	dir   string
	found map[string]string
	seen  map[string]bool // folders by real path
	files int
}

// maxSkillDepth limits the nesting of folders.
const maxSkillDepth = 16

func (h *skillHasher) walk(folder string, depth int) error {
	real, err := filepath.EvalSymlinks(folder)
	if errors.Is(err, fs.ErrNotExist) || h.seen[real] || depth > maxSkillDepth {
		return nil
	}
	if err != nil {
		return err
	}
	h.seen[real] = true
	entries, err := os.ReadDir(real)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // a link to nothing
		case err != nil:
			return err
		case info.IsDir() && e.Name() != ".git" && e.Name() != "node_modules":
			err = h.walk(path, depth+1)
		case info.Mode().IsRegular():
			err = h.hash(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *skillHasher) hash(path string) error {
	if h.files++; h.files > maxSkillFiles {
		return fmt.Errorf("more than %d files: remove some to trust this directory", maxSkillFiles)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	rel, err := filepath.Rel(h.dir, path)
	if err != nil {
		return err
	}
	h.found[strings.ReplaceAll(filepath.ToSlash(rel), "\n", " ")] = hex.EncodeToString(sum.Sum(nil))
	return nil
}
