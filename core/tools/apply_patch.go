package tools

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/internal/patch"
)

//go:embed apply_patch.md
var applyPatchDoc string

type applyPatchArgs struct {
	Patch string `json:"patch" jsonschema:"the patch, from *** Begin Patch to *** End Patch"`
}

// ApplyPatch returns the tool apply_patch, which changes several files with one
// patch in the v4a format (see [patch]). The whole patch is checked before
// anything is written; if a write fails, earlier writes are undone.
func ApplyPatch() core.Tool {
	tool := core.NewTool(core.ToolDefinition{
		Name:        "apply_patch",
		Description: strings.TrimSpace(applyPatchDoc),
		Scopes:      []core.Scope{core.ScopeRead, core.ScopeWrite, core.ScopeDelete},
		Output:      core.OutputLimit{MaxChars: 10_000, Mode: core.Tail},
		Profiles:    []string{"openai"},
	}, func(_ context.Context, _ *core.Call, in applyPatchArgs) ([]core.Access, error) {
		return patchAccess(in.Patch), nil
	}, runApplyPatch)
	return fileTool{
		Tool: tool,
		changes: func(args json.RawMessage) []string {
			return patchPaths(args, func(f patch.File) string {
				if f.Op == patch.Delete {
					return ""
				}
				return f.Path
			})
		},
		knows: func(args json.RawMessage, _ core.Result) []string {
			return patchPaths(args, func(f patch.File) string { return f.MoveTo })
		},
	}
}

// patchPaths maps the files of a patch to paths, leaving out empty ones.
func patchPaths(args json.RawMessage, of func(patch.File) string) []string {
	var in applyPatchArgs
	if json.Unmarshal(args, &in) != nil {
		return nil // the tool reports it
	}
	p, err := patch.Parse(in.Patch)
	if err != nil {
		return nil // the tool reports it
	}
	var paths []string
	for _, f := range p.Files {
		if path := of(f); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// patchAccess lists what a patch touches, including what undoing it needs. An
// invalid patch touches nothing; Run reports it.
func patchAccess(text string) []core.Access {
	p, err := patch.Parse(text)
	if err != nil {
		return nil
	}
	var all []core.Access
	add := func(at string, scopes ...core.Scope) {
		for _, s := range scopes {
			all = append(all, core.Access{Scope: s, Resource: at})
		}
	}
	for _, f := range p.Files {
		switch {
		case f.Op == patch.Add:
			add(f.Path, core.ScopeWrite)
		case f.Op == patch.Delete:
			add(f.Path, core.ScopeRead, core.ScopeDelete, core.ScopeWrite)
		case f.MoveTo != "":
			add(f.Path, core.ScopeRead, core.ScopeDelete, core.ScopeWrite)
			add(f.MoveTo, core.ScopeWrite, core.ScopeDelete)
		default:
			add(f.Path, core.ScopeRead, core.ScopeWrite)
		}
	}
	return all
}

func runApplyPatch(ctx context.Context, call *core.Call, in applyPatchArgs) (core.Result, error) {
	p, err := patch.Parse(in.Patch)
	if err != nil {
		return invalid("Invalid patch: %v. Nothing was changed.", err)
	}
	w := &patcher{env: call.Env}
	for _, f := range p.Files {
		if refusal := w.plan(ctx, f); refusal != nil {
			refusal.Content = append(refusal.Content, model.Text{Text: "\nNothing was changed."})
			return *refusal, nil
		}
	}
	if err := w.write(ctx); err != nil {
		return failure("patch", w.failed, err), nil
	}
	result := core.TextResult("Done:\n" + strings.Join(w.done, "\n"))
	result.Meta = w.meta()
	return result, nil
}

// change is a planned change of one file.
type change struct {
	path, moveTo  string
	before, after []byte
	isNew, isGone bool
	mode          fs.FileMode
}

// patcher applies a patch.
type patcher struct {
	env     core.Environment
	changes []change
	done    []string // a line per change, for the model
	failed  string   // the path that could not be written
}

// plan checks and records the change of one file; the result is a failure.
func (w *patcher) plan(ctx context.Context, f patch.File) *core.Result {
	switch f.Op {
	case patch.Add:
		if refusal := w.mustBeNew(ctx, f.Path); refusal != nil {
			return refusal
		}
		w.changes = append(w.changes, change{path: f.Path, after: []byte(f.Content), isNew: true})
		w.done = append(w.done, "A "+f.Path)
		return nil
	case patch.Delete:
		c, refusal := w.load(ctx, f.Path, true)
		if refusal != nil {
			return refusal
		}
		c.isGone = true
		w.changes = append(w.changes, c)
		w.done = append(w.done, "D "+f.Path)
		return nil
	}
	return w.planUpdate(ctx, f)
}

func (w *patcher) planUpdate(ctx context.Context, f patch.File) *core.Result {
	again := slices.IndexFunc(w.changes, func(c change) bool { return c.path == f.Path })
	var c change
	var refusal *core.Result
	if again >= 0 {
		c = w.changes[again] // a second section for the file
	} else if c, refusal = w.load(ctx, f.Path, f.MoveTo != ""); refusal != nil {
		return refusal
	}
	text := c.before
	if again >= 0 {
		text = c.after
	}
	after, notes, err := f.Apply(string(text))
	if err != nil {
		r := core.Failf(core.CodeValidation, "%v\nRead the file and write a new patch.", err)
		return &r
	}
	c.after = []byte(after)
	line := "M " + f.Path
	if f.MoveTo != "" {
		if refusal := w.mustBeNew(ctx, f.MoveTo); refusal != nil {
			return refusal
		}
		c.moveTo, line = f.MoveTo, "R "+f.Path+" → "+f.MoveTo
	}
	for _, n := range notes {
		line += fmt.Sprintf("\n  (the change at line %d of the patch: %s; check the result)", n.Line, n.Tolerance)
	}
	if again >= 0 {
		w.changes[again] = c
		return nil
	}
	w.changes, w.done = append(w.changes, c), append(w.done, line)
	return nil
}

// load reads an existing file. One that will be removed must not be reached
// through a symbolic link, or the link's target would be removed.
func (w *patcher) load(ctx context.Context, at string, removed bool) (change, *core.Result) {
	data, refusal := readForEdit(ctx, w.env, at)
	if refusal != nil {
		return change{}, refusal
	}
	info, err := w.env.Files().Stat(ctx, at)
	if err != nil {
		r := failure("patch", at, err)
		return change{}, &r
	}
	if to, err := w.env.Resolve(ctx, at); err == nil && removed && to.Path != absolute(w.env.Info(), at) {
		r := core.Failf(core.CodeIO, "%s goes through a symbolic link to %s: name the file itself.", at, to.Path)
		return change{}, &r
	}
	return change{path: at, before: data, mode: info.Mode().Perm()}, nil
}

// absolute joins a path to the working directory without resolving links.
func absolute(info core.EnvInfo, at string) string {
	if info.OS == "windows" {
		if !filepath.IsAbs(at) {
			at = filepath.Join(info.Dir, at)
		}
		return filepath.Clean(at)
	}
	if !path.IsAbs(at) {
		at = path.Join(info.Dir, at)
	}
	return path.Clean(at)
}

// mustBeNew returns a failure if a file cannot be created at a path.
func (w *patcher) mustBeNew(ctx context.Context, at string) *core.Result {
	_, err := w.env.Files().Stat(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, c := range w.changes {
		if c.path == at && (c.isGone || c.moveTo != "") {
			return nil // removed before the write
		}
	}
	r := core.Failf(core.CodeValidation, "%s exists already: change it with *** Update File.", at)
	if err != nil {
		r = failure("patch", at, err)
	}
	return &r
}

// write applies the planned changes: removals first, so that other files can
// take their place, and new files last, because removing them again may not be
// permitted. After a failure it undoes what it did.
func (w *patcher) write(ctx context.Context) error {
	var undo []func(context.Context) error
	files := w.env.Files()
	do := func(at string, act, back func(context.Context) error) error {
		if err := act(ctx); err != nil {
			w.failed = at
			return w.rollback(ctx, undo, err)
		}
		undo = append(undo, back)
		return nil
	}
	put := func(at string, data []byte, mode fs.FileMode) func(context.Context) error {
		return func(ctx context.Context) error { return files.Write(ctx, at, bytes.NewReader(data), mode) }
	}
	remove := func(at string) func(context.Context) error {
		return func(ctx context.Context) error { return files.Remove(ctx, at) }
	}
	for _, c := range w.changes {
		if c.isGone || c.moveTo != "" {
			if err := do(c.path, remove(c.path), put(c.path, c.before, c.mode)); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(w.changes, func(a, b change) int {
		switch {
		case a.isNew == b.isNew:
			return 0
		case a.isNew:
			return 1
		}
		return -1
	})
	for _, c := range w.changes {
		to, back := c.path, put(c.path, c.before, c.mode)
		switch {
		case c.isGone:
			continue
		case c.moveTo != "":
			to, back = c.moveTo, remove(c.moveTo)
		case c.isNew:
			back = remove(c.path)
		}
		if err := do(to, put(to, c.after, c.mode), back); err != nil {
			return err
		}
	}
	return nil
}

// rollback runs the undo steps in reverse, even if the call was cancelled.
func (w *patcher) rollback(ctx context.Context, undo []func(context.Context) error, cause error) error {
	ctx = context.WithoutCancel(ctx)
	var failed []error
	for i := len(undo) - 1; i >= 0; i-- {
		if err := undo[i](ctx); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w; not all changes could be undone: %w", cause, errors.Join(failed...))
	}
	return fmt.Errorf("%w; all other files are unchanged", cause)
}

// meta returns the changes of all files as a unified diff, for interfaces.
func (w *patcher) meta() map[string]json.RawMessage {
	var all strings.Builder
	for _, c := range w.changes {
		name := c.path
		if c.moveTo != "" {
			name = c.moveTo
		}
		var one string
		if json.Unmarshal(diffMeta(name, c.before, c.after)["diff"], &one) == nil {
			all.WriteString(one)
		}
	}
	text, err := json.Marshal(all.String())
	if err != nil || all.Len() == 0 || all.Len() > maxDiffSize {
		return nil
	}
	return map[string]json.RawMessage{"diff": text}
}
