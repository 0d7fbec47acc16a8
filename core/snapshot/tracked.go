package snapshot

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/gitindex"
)

// gitIndex is the index of the repository that a workspace is in.
type gitIndex struct {
	file  string
	below string // the workspace in the working tree, with a slash at its end
	seen  stamp
	known map[string]bool
}

// maxGitIndex limits the size of an index.
const maxGitIndex = 64 << 20

// added lists the files that git tracks since the last call: they are kept even if
// they are ignored, as git does. An index that cannot be read tracks nothing.
func (g *gitIndex) added() (paths []string) {
	f, err := os.Open(g.file)
	if err != nil {
		return nil
	}
	defer f.Close()
	now, err := statOpen(f)
	if err != nil || now == g.seen || now.size > maxGitIndex {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxGitIndex))
	if err != nil {
		return nil
	}
	g.seen = now
	if g.known == nil {
		g.known = map[string]bool{}
	}
	entries, _ := gitindex.Read(data)
	for _, e := range entries {
		name, inside := strings.CutPrefix(e.Path, g.below)
		if inside && !e.Submodule && !g.known[name] {
			g.known[name] = true
			paths = append(paths, name)
		}
	}
	return paths
}

// gitDir returns the repository with a working tree at dir.
func gitDir(dir string) string {
	at := filepath.Join(dir, ".git")
	text, err := os.ReadFile(at)
	to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	switch {
	case err != nil || !ok:
		return at
	case filepath.IsAbs(to):
		return to
	}
	return filepath.Join(dir, to)
}
