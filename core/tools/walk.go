package tools

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/gitignore"
)

// maxIgnoreFile is the maximum size of a .gitignore.
const maxIgnoreFile = 1 << 20

// walker walks a directory in the order of names, without what git ignores. It
// never enters .git and follows no symbolic link below its base.
type walker struct {
	env  core.Environment
	base string // as the model wrote it; empty = the working directory
	root string // the resolved base, without a slash at the end, once it is known
	// all visits what git ignores too, but does not enter it.
	all bool
	// enter, if set, decides whether to enter a directory.
	enter func(rel string) bool

	denied int // directories that may not be read
	failed int // directories that could not be read

	ahead treeAhead
}

// walkEntry is a file or directory found by a walker.
type walkEntry struct {
	rel     string // relative to the base, with slashes
	entry   fs.DirEntry
	depth   int // 1 = in the base
	ignored bool
}

// errStopWalk ends a walk early; the walk itself then returns nil.
var errStopWalk = errors.New("stop walking")

// walk visits everything below the base, each directory before its entries. It
// fails if the base cannot be read, and with the error of visit or ctx.
func (w *walker) walk(ctx context.Context, visit func(walkEntry) error) error {
	if w.ahead.batch == nil {
		if err := w.resolve(ctx); err != nil {
			return err
		}
	}
	entries, err := w.readDir(ctx, "")
	if err != nil {
		return err
	}
	levels, err := w.outerLevels(ctx)
	if err != nil {
		return err
	}
	if err := w.readTree(ctx, entries, levels); err != nil {
		return err
	}
	err = w.visitDir(ctx, "", entries, 1, levels, visit)
	if errors.Is(err, errStopWalk) {
		return nil
	}
	return err
}

// resolve finds out where the base is, so that no path below it must be resolved.
func (w *walker) resolve(ctx context.Context) error {
	base, err := w.env.Resolve(ctx, orHere(w.base))
	w.root = strings.TrimSuffix(base.Path, "/")
	return err
}

// at returns the path of rel for the environment.
func (w *walker) at(rel string) string {
	if rel == "" {
		return cmp.Or(w.root, "/")
	}
	return w.root + "/" + rel
}

func (w *walker) visitDir(ctx context.Context, dir string, entries []fs.DirEntry, depth int, levels []gitignore.Level, visit func(walkEntry) error) error {
	levels = w.innerLevels(ctx, dir, entries, levels)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		rel := dir + e.Name()
		skip := skips(levels, rel, e)
		if skip && !w.all {
			continue
		}
		if err := visit(walkEntry{rel: rel, entry: e, depth: depth, ignored: skip}); err != nil {
			return err
		}
		if skip || !w.enters(rel, e) {
			continue
		}
		below, err := w.readDir(ctx, rel)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission):
			w.denied++
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			w.failed++
		default:
			if err := w.visitDir(ctx, rel+"/", below, depth+1, levels, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func skips(levels []gitignore.Level, rel string, e fs.DirEntry) bool {
	return e.Name() == ".git" || gitignore.Ignored(levels, rel, e.IsDir())
}

func (w *walker) enters(rel string, e fs.DirEntry) bool {
	return e.IsDir() && (w.enter == nil || w.enter(rel))
}

// innerLevels adds the rules of a directory of the walk.
func (w *walker) innerLevels(ctx context.Context, dir string, entries []fs.DirEntry, levels []gitignore.Level) []gitignore.Level {
	for _, name := range ignoreFiles(entries) {
		if rules := w.rules(ctx, w.at(dir+name)); len(rules) > 0 {
			levels = append(levels[:len(levels):len(levels)], gitignore.Level{Dir: dir, Rules: rules})
		}
	}
	return levels
}

// ignoreFiles returns the files with rules of a directory.
func ignoreFiles(entries []fs.DirEntry) (names []string) {
	for _, e := range entries {
		switch {
		case e.Name() == ".git" && e.IsDir():
			names = append(names, ".git/info/exclude")
		case e.Name() == ".gitignore" && !e.IsDir():
			names = append(names, ".gitignore")
		}
	}
	return names
}

// outerLevels returns the user's own rules, and those of the directories above
// the base that are in the workspace and may be read.
func (w *walker) outerLevels(ctx context.Context) ([]gitignore.Level, error) {
	windows := w.env.Info().OS == "windows"
	slashed := func(p string) string {
		if windows {
			p = strings.ReplaceAll(p, `\`, "/")
		}
		return strings.TrimSuffix(p, "/")
	}
	info := w.env.Info()
	global := gitignore.Parse(info.Ignore)
	for _, root := range info.Roots {
		below, ok := strings.CutPrefix(slashed(w.root)+"/", slashed(root)+"/")
		if !ok {
			continue
		}
		levels, err := w.levelsFrom(ctx, root, strings.TrimSuffix(below, "/"))
		return append([]gitignore.Level{{Below: below, Rules: global}}, levels...), err
	}
	return []gitignore.Level{{Rules: global}}, nil
}

// levelsFrom returns the rules of the directories from root to the one above the
// base, which is below root.
func (w *walker) levelsFrom(ctx context.Context, root, below string) ([]gitignore.Level, error) {
	type file struct{ name, below string }
	var files []file
	for dir := root; below != ""; {
		for _, name := range []string{".git/info/exclude", ".gitignore"} {
			files = append(files, file{joinPath(dir, name), below + "/"})
		}
		var next string
		next, below, _ = strings.Cut(below, "/")
		dir = joinPath(dir, next)
	}
	if w.ahead.batch != nil {
		var paths []string
		for _, f := range files {
			paths = append(paths, f.name)
		}
		if err := w.readRules(paths); err != nil {
			return nil, err
		}
	}
	var levels []gitignore.Level
	for _, f := range files {
		if rules := w.rules(ctx, f.name); len(rules) > 0 {
			levels = append(levels, gitignore.Level{Below: f.below, Rules: rules})
		}
	}
	return levels, nil
}

func (w *walker) rules(ctx context.Context, name string) []gitignore.Rule {
	if rules, ok := w.ahead.rules[name]; ok {
		return rules
	}
	data, err := core.ReadFile(ctx, w.env.Files(), name, maxIgnoreFile)
	if err != nil {
		return nil // better to search too much
	}
	return gitignore.Parse(string(data))
}

// joinPath joins a slash-separated path to a base, for display.
func joinPath(base, rel string) string {
	switch {
	case base == "" || base == ".":
		return path.Clean(rel)
	case rel == "":
		return base
	}
	return strings.TrimSuffix(base, "/") + "/" + rel
}
