package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-009c0928/agent/core"
)

//go:embed glob.md
var globDoc string

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
}

// Glob returns the tool glob, which finds files whose path matches a pattern,
// the last modified first.
func Glob() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        "glob",
		Description: strings.TrimSpace(globDoc),
		ReadOnly:    true,
		Scopes:      []core.Scope{core.ScopeRead},
		Output:      core.OutputLimit{MaxChars: 20_000, MaxLines: 500, Mode: core.Head},
	}, func(_ context.Context, _ *core.Call, in globArgs) ([]core.Access, error) {
		in = in.located()
		return fileAccess(core.ScopeRead, orHere(in.Path), true), nil
	}, runGlob)
}

// located returns the arguments with the directory where the search starts as
// path, if the pattern leads out of it.
func (in globArgs) located() globArgs {
	pattern := path.Clean(in.Pattern)
	if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "../") {
		return in
	}
	dir, rest := doublestar.SplitPattern(pattern)
	if !strings.HasPrefix(pattern, "/") {
		dir = path.Join(orHere(in.Path), dir)
	}
	return globArgs{Pattern: rest, Path: dir}
}

func runGlob(ctx context.Context, call *core.Call, in globArgs) (core.Result, error) {
	if in.Pattern == "" {
		return invalid("pattern is empty. Give a pattern such as **/*.go.")
	}
	in = in.located()
	pattern := path.Clean(in.Pattern)
	switch {
	case pattern == "..":
		return invalid("pattern %q names no file. Give the directory as path, and a pattern relative to it.", in.Pattern)
	case !doublestar.ValidatePattern(pattern):
		return invalid("pattern %q is not a valid glob pattern: a bracket or brace is not closed. Escape it with a backslash if it is meant literally.", in.Pattern)
	}
	if refusal := wantDir(ctx, call.Env, orHere(in.Path), "search", "Give a directory, and the file's name as pattern."); refusal != nil {
		return *refusal, nil
	}
	w := &walker{env: call.Env, base: in.Path, enter: func(rel string) bool { return mayContain(pattern, rel) }}
	found, err := globFiles(ctx, w, pattern)
	if err != nil {
		return failure("search", orHere(in.Path), err), nil
	}
	if len(found) == 0 {
		text := fmt.Sprintf("No files in %s match %s. (* does not cross directories, **/ does; what .gitignore names is left out.)\n%s",
			orHere(in.Path), in.Pattern, w.skipped("directory", "directories"))
		return core.TextResult(strings.TrimSuffix(text, "\n")), nil
	}
	var out strings.Builder
	out.WriteString(w.skipped("directory", "directories"))
	for i, f := range found {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(joinPath(in.Path, f.rel))
	}
	return core.TextResult(out.String()), nil
}

type globFile struct {
	rel      string
	modified time.Time
}

// globFiles returns the files that match, the newest first.
func globFiles(ctx context.Context, w *walker, pattern string) ([]globFile, error) {
	var found []globFile
	if err := w.openBatch(ctx); err != nil {
		return nil, err
	}
	defer w.closeBatch()
	err := w.walk(ctx, func(e walkEntry) error {
		if e.entry.IsDir() || !doublestar.MatchUnvalidated(pattern, e.rel) {
			return nil
		}
		if info, err := e.entry.Info(); err == nil { // else it was removed meanwhile
			found = append(found, globFile{e.rel, info.ModTime()})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b globFile) int {
		return cmp.Or(b.modified.Compare(a.modified), cmp.Compare(a.rel, b.rel))
	})
	return found, err
}

// mayContain reports whether something below a directory can match the pattern.
func mayContain(pattern, dir string) bool {
	for dir != "" {
		var want, have string
		var deeper bool
		want, pattern, deeper = strings.Cut(pattern, "/")
		have, dir, _ = strings.Cut(dir, "/")
		// A brace may match several elements.
		if strings.Contains(want, "**") || strings.Contains(want, "{") {
			return true
		}
		if !deeper || !doublestar.MatchUnvalidated(want, have) {
			return false
		}
	}
	return true
}
