package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// pairs is a text to compare with many others by pairs of adjacent bytes (the
// Dice coefficient).
type pairs struct {
	counts map[[2]byte]int
	text   string
}

func newPairs(text string) pairs {
	p := pairs{counts: make(map[[2]byte]int, len(text)), text: text}
	for i := 1; i < len(text); i++ {
		p.counts[[2]byte{text[i-1], text[i]}]++
	}
	return p
}

// similarity is 1 for a text with the same pairs, 0 for one with no common pair.
func (p pairs) similarity(other string) float64 {
	if p.text == other {
		return 1
	}
	total := len(p.text) + len(other) - 2
	if len(p.text) < 2 || len(other) < 2 {
		return 0
	}
	// Texts of very different length cannot be similar.
	if 2*float64(min(len(p.text), len(other))-1)/float64(total) < minSimilarity {
		return 0
	}
	seen := make(map[[2]byte]int, len(p.counts))
	common := 0
	for i := 1; i < len(other); i++ {
		pair := [2]byte{other[i-1], other[i]}
		if seen[pair] < p.counts[pair] {
			seen[pair]++
			common++
		}
	}
	return 2 * float64(common) / float64(total)
}

// minSimilarity is the similarity from which a text is worth suggesting.
const minSimilarity = 0.5

// nearNames returns up to three paths in the same directory with similar names,
// the nearest first; none if the directory cannot be read.
func nearNames(ctx context.Context, env core.Environment, path string) []string {
	dir, base := splitPath(env, path)
	listed := dir
	if listed == "" {
		listed = "."
	}
	entries, err := env.Files().ReadDir(ctx, listed)
	if err != nil {
		return nil
	}
	type near struct {
		path  string
		score float64
	}
	var found []near
	want := newPairs(strings.ToLower(base))
	for _, e := range entries {
		if score := want.similarity(strings.ToLower(e.Name())); score >= minSimilarity {
			found = append(found, near{dir + e.Name(), score})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(b.score, a.score) })
	var names []string
	for _, n := range found[:min(3, len(found))] {
		names = append(names, n.path)
	}
	return names
}

// splitPath splits a path after its last separator.
func splitPath(env core.Environment, path string) (dir, base string) {
	separators := "/"
	if env.Info().OS == "windows" {
		separators = `/\`
	}
	i := strings.LastIndexAny(path, separators) + 1
	return path[:i], path[i:]
}
