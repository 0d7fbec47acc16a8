package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/gitignore"
	"github.com/seed-009c0928/agent/plugins/bundles"
)

// maxSources bounds how many files and folders of a linked plugin are looked at
// before a call.
const maxSources = 2000

// packages are folders that hold what others wrote or what a program made.
var packages = []string{"node_modules", "__pycache__", "target"}

// SourceStamp returns a text that changes when a file is added to the folder of a
// plugin, removed or edited. Hidden files that no plugin reads, those that its .gitignore names, installed
// packages and the excepted files do not count, nor does anything beyond 2,000 files.
func SourceStamp(dir string, except func(path string, info fs.FileInfo) bool) string {
	var levels []gitignore.Level
	if text, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err == nil {
		levels = append(levels, gitignore.Level{Rules: gitignore.Parse(string(text))})
	}
	sum, seen := sha256.New(), 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what cannot be read does not count
		if err != nil || path == dir {
			return nil
		}
		if seen++; seen > maxSources {
			return fs.SkipAll
		}
		rel, _ := filepath.Rel(dir, path) // it is below dir
		if rel = filepath.ToSlash(rel); strings.HasPrefix(e.Name(), ".") && !slices.Contains(bundles.Hidden, e.Name()) || slices.Contains(packages, e.Name()) || gitignore.Ignored(levels, rel, e.IsDir()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := e.Info(); err == nil && !e.IsDir() && (except == nil || !except(path, info)) {
			fmt.Fprintf(sum, "%s:%d:%d;", rel, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))
}
