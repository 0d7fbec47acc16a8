package tools

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

const maxListed = 1_000 // entries of one listing

//go:embed list_dir.md
var listDirDoc string

type listDirArgs struct {
	Path  string `json:"path,omitempty"`
	Depth int    `json:"depth,omitempty"`
}

// ListDir returns the tool list_dir, which lists a directory.
func ListDir() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        "list_dir",
		Description: strings.TrimSpace(listDirDoc),
		ReadOnly:    true,
		Repeatable:  true,
		Scopes:      []core.Scope{core.ScopeRead},
		Profiles:    []string{"default", "gemini"},
	}, func(_ context.Context, _ *core.Call, in listDirArgs) ([]core.Access, error) {
		// Depth 1 reads only the directory itself.
		return fileAccess(core.ScopeRead, orHere(in.Path), in.Depth > 1), nil
	}, runListDir)
}

// orHere returns path, or the working directory if it is empty.
func orHere(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func runListDir(ctx context.Context, call *core.Call, in listDirArgs) (core.Result, error) {
	if in.Depth < 0 {
		return invalid("depth cannot be negative. 1 shows the directory's own entries.")
	}
	if refusal := wantDir(ctx, call.Env, orHere(in.Path), "list", "Use read_file to read it."); refusal != nil {
		return *refusal, nil
	}
	most := max(in.Depth, 1)
	w := &walker{env: call.Env, base: in.Path, all: true}
	w.enter = func(rel string) bool { return strings.Count(rel, "/") < most-1 }
	if most > 1 {
		if err := w.openBatch(ctx); err != nil {
			return failure("list", orHere(in.Path), err), nil
		}
		defer w.closeBatch()
	}
	var out strings.Builder
	shown, cut := 0, false
	err := w.walk(ctx, func(e walkEntry) error {
		if shown == maxListed {
			cut = true
			return errStopWalk
		}
		shown++
		out.WriteString(strings.Repeat("  ", e.depth-1))
		writeEntry(&out, e, most > e.depth)
		return nil
	})
	switch {
	case err != nil:
		return failure("list", orHere(in.Path), err), nil
	case shown == 0:
		return core.TextResult("(The directory is empty.)"), nil
	}
	if cut {
		fmt.Fprintf(&out, "(Only the first %d entries are shown. List a subdirectory, or use glob.)\n", maxListed)
	}
	out.WriteString(w.skipped("directory", "directories"))
	return core.TextResult(strings.TrimSuffix(out.String(), "\n")), nil
}

// writeEntry writes the line of an entry: directories with "/", symbolic links
// with "@", files with their size.
func writeEntry(out *strings.Builder, e walkEntry, deeper bool) {
	out.WriteString(e.entry.Name())
	switch {
	case e.entry.IsDir():
		out.WriteByte('/')
		if e.ignored && deeper {
			out.WriteString(" (not shown)")
		}
	case e.entry.Type()&fs.ModeSymlink != 0:
		out.WriteByte('@')
	case e.entry.Type() != 0:
		out.WriteString(" (" + special(e.entry.Type()) + ")")
	default:
		if info, err := e.entry.Info(); err == nil {
			out.WriteString(" (" + byteSize(info.Size()) + ")")
		}
	}
	out.WriteByte('\n')
}

// wantDir returns a failure unless path is a directory.
func wantDir(ctx context.Context, env core.Environment, path, what, otherwise string) *core.Result {
	var refusal core.Result
	switch info, err := env.Files().Stat(ctx, path); {
	case err != nil:
		refusal = failure(what, path, err)
	case !info.IsDir():
		refusal = core.Failf(core.CodeIO, "Cannot %s %q: it is not a directory. %s", what, path, otherwise)
	default:
		return nil
	}
	return &refusal
}

// skipped reports what a walk had to leave out; empty if nothing.
func (w *walker) skipped(one, many string) string {
	var b strings.Builder
	note := func(n int, why string) {
		if n > 0 {
			noun := many
			if n == 1 {
				noun = one
			}
			fmt.Fprintf(&b, "(%d %s left out: %s.)\n", n, noun, why)
		}
	}
	note(w.denied, "access not granted")
	note(w.failed, "could not be read")
	return b.String()
}
