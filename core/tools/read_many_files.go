package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// Bounds of one call.
const (
	maxManyFiles = 30
	manyLines    = 500 // of each file
)

//go:embed read_many_files.md
var readManyFilesDoc string

type readManyFilesArgs struct {
	Paths []string `json:"paths" jsonschema:"files or glob patterns"`
}

// ReadManyFiles returns the tool read_many_files, which reads several text
// files in one call. The result of a file that cannot be read is its failure.
func ReadManyFiles() core.Tool { return fileReader{}.many() }

// many returns the tool that reads several files.
func (fr fileReader) many() core.Tool {
	tool := core.NewTool(core.ToolDefinition{
		Name:        "read_many_files",
		Description: strings.TrimSpace(readManyFilesDoc),
		ReadOnly:    true,
		Repeatable:  true,
		Scopes:      []core.Scope{core.ScopeRead},
		Output:      core.OutputLimit{MaxChars: 100_000, Mode: core.HeadTail},
		Profiles:    []string{"gemini"},
	}, func(_ context.Context, _ *core.Call, in readManyFilesArgs) ([]core.Access, error) {
		var all []core.Access
		for _, p := range in.Paths {
			if isPattern(p) {
				all = append(all, fileAccess(core.ScopeRead, orHere(fixedPart(p)), true)...)
			} else {
				all = append(all, fileAccess(core.ScopeRead, p, false)...)
			}
		}
		return all, nil
	}, fr.readMany)
	return fileTool{Tool: tool, knows: func(_ json.RawMessage, r core.Result) []string {
		var read manyRead
		_ = json.Unmarshal(r.Structured, &read) // written by readMany, or empty
		return read.Files
	}}
}

func isPattern(p string) bool { return strings.ContainsAny(p, "*?[{") }

// fixedPart returns the directory that contains all possible matches of a
// pattern.
func fixedPart(pattern string) string {
	base, _ := doublestar.SplitPattern(pattern)
	if base == "." {
		return ""
	}
	return base
}

func (fr fileReader) readMany(ctx context.Context, call *core.Call, in readManyFilesArgs) (core.Result, error) {
	if len(in.Paths) == 0 {
		return invalid("paths is empty. Give file paths, or patterns such as src/**/*.go.")
	}
	var files []string
	for _, p := range in.Paths {
		found := []string{p}
		if isPattern(p) {
			var refusal *core.Result
			if found, refusal = expandPattern(ctx, call.Env, p); refusal != nil {
				return *refusal, nil
			}
		}
		for _, f := range found {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	if len(files) == 0 {
		return core.TextResult("No files match."), nil
	}
	var out strings.Builder
	var read manyRead
	for i, f := range files {
		if i == maxManyFiles {
			fmt.Fprintf(&out, "\n(%d more files match; name those that you need.)", len(files)-i)
			break
		}
		result, err := fr.read(ctx, call, readFileArgs{FilePath: f, Limit: manyLines})
		if err != nil {
			return core.Result{}, err
		}
		if ctx.Err() != nil {
			return failure("read", f, ctx.Err()), nil
		}
		fmt.Fprintf(&out, "=== %s\n%s\n", f, model.Parts(result.Content).Text())
		if result.Code == "" {
			read.Files = append(read.Files, f)
		}
	}
	result := core.TextResult(strings.TrimSuffix(out.String(), "\n"))
	var err error
	result.Structured, err = json.Marshal(read)
	return result, err
}

// manyRead is the structured result: the files that were read.
type manyRead struct {
	Files []string `json:"files"`
}

// expandPattern returns the files that a pattern matches, by name.
func expandPattern(ctx context.Context, env core.Environment, pattern string) ([]string, *core.Result) {
	refuse := func(r core.Result) ([]string, *core.Result) { return nil, &r }
	if !doublestar.ValidatePattern(pattern) {
		return refuse(core.Failf(core.CodeValidation, "pattern %q is not a valid glob pattern: a bracket or brace is not closed.", pattern))
	}
	base := fixedPart(pattern)
	rest := strings.TrimPrefix(path.Clean(strings.TrimPrefix(pattern, base)), "/")
	if refusal := wantDir(ctx, env, orHere(base), "search", "Give the path of the file itself."); refusal != nil {
		return nil, refusal
	}
	w := &walker{env: env, base: base, enter: func(rel string) bool { return mayContain(rest, rel) }}
	found, err := globFiles(ctx, w, rest)
	if err != nil {
		return refuse(failure("search", orHere(base), err))
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = joinPath(base, f.rel)
	}
	slices.Sort(names)
	return names, nil
}
