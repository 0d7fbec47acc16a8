package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/patch"
	"github.com/seed-009c0928/agent/core/model"
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
		Tool:    tool,
		changes: patchedFiles,
		moves: func(args json.RawMessage) map[string]string {
			moves := map[string]string{}
			for _, f := range patchFiles(args) {
				if f.MoveTo != "" {
					moves[f.Path] = f.MoveTo
				}
			}
			return moves
		},
	}
}

// patchFiles returns the sections of a patch; none if it is invalid, which the
// tool reports.
func patchFiles(args json.RawMessage) []patch.File {
	var in applyPatchArgs
	if json.Unmarshal(args, &in) != nil {
		return nil
	}
	p, err := patch.Parse(in.Patch)
	if err != nil {
		return nil
	}
	return p.Files
}

// patchedFiles lists the files whose content a patch changes or replaces. Moving
// and deleting a file does not need its content.
func patchedFiles(args json.RawMessage) []string {
	var paths []string
	files := patchFiles(args)
	away := map[string]bool{}
	for _, f := range files {
		if f.Op == patch.Delete || f.MoveTo != "" {
			away[path.Clean(f.Path)] = true
		}
	}
	for _, f := range files {
		if f.Op == patch.Add && !away[path.Clean(f.Path)] || len(f.Hunks) > 0 {
			paths = append(paths, f.Path)
		}
		if f.MoveTo != "" && !away[path.Clean(f.MoveTo)] {
			paths = append(paths, f.MoveTo)
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
			add(f.Path, core.ScopeRead, core.ScopeWrite)
		case f.Op == patch.Delete:
			add(f.Path, core.ScopeRead, core.ScopeDelete, core.ScopeWrite)
		case f.MoveTo != "":
			add(f.Path, core.ScopeRead, core.ScopeDelete, core.ScopeWrite)
			add(f.MoveTo, core.ScopeRead, core.ScopeWrite, core.ScopeDelete)
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
	w := &patcher{env: call.Env, originals: map[string]original{}}
	for _, f := range p.Files {
		if refusal := w.plan(ctx, f); refusal != nil {
			refusal.Content = append(refusal.Content, model.Text{Text: "\nNothing was changed."})
			return *refusal, nil
		}
	}
	if err := w.write(ctx); err != nil {
		return failure("patch", w.failed, err), nil
	}
	result := core.TextResult("Done:\n" + strings.Join(w.report(), "\n"))
	result.Meta = w.meta()
	return result, nil
}
