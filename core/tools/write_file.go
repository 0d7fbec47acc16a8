package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
)

//go:embed write_file.md
var writeFileDoc string

type writeFileArgs struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

// WriteFile returns the tool write_file, which creates or replaces a file
// atomically.
func WriteFile() core.Tool {
	tool := core.NewTool(core.ToolDefinition{
		Name:        "write_file",
		Description: strings.TrimSpace(writeFileDoc),
		Scopes:      []core.Scope{core.ScopeRead, core.ScopeWrite},
		Output:      core.OutputLimit{MaxChars: 1_000, Mode: core.Tail},
	}, func(ctx context.Context, call *core.Call, in writeFileArgs) ([]core.Access, error) {
		write := fileAccess(core.ScopeWrite, in.FilePath, false)
		if _, err := call.Env.Files().Stat(ctx, in.FilePath); errors.Is(err, fs.ErrNotExist) {
			return write, nil
		}
		return append(write, fileAccess(core.ScopeRead, in.FilePath, false)...), nil
	}, runWriteFile)
	return fileTool{Tool: tool, changes: filePath}
}

func runWriteFile(ctx context.Context, call *core.Call, in writeFileArgs) (core.Result, error) {
	switch {
	case in.FilePath == "":
		return invalid("file_path is empty. Give the path of a file.")
	case strings.HasPrefix(in.FilePath, core.HandlePrefix):
		return invalid("%q is a stored output, which cannot be written. Give the path of a file.", in.FilePath)
	}
	verb, content := "Overwrote", []byte(in.Content)
	var old []byte
	var notes []string
	files := call.Env.Files()
	switch info, err := files.Stat(ctx, in.FilePath); {
	case errors.Is(err, fs.ErrNotExist):
		verb = "Created"
	case err != nil:
		return failure("write", in.FilePath, err), nil
	case info.IsDir():
		return core.Failf(core.CodeIO, "Cannot write %q: it is a directory. Give the path of a file in it.", in.FilePath), nil
	case !info.Mode().IsRegular():
		return core.Failf(core.CodeIO, "Cannot write %q: it is %s, not a regular file. Use shell if you need it.", in.FilePath, special(info.Mode())), nil
	case info.Size() <= maxEditSize:
		if old, err = core.ReadFile(ctx, files, in.FilePath, maxEditSize); err != nil {
			return failure("write", in.FilePath, err), nil
		}
		if content, notes, err = keepStyle(old, in.Content); err != nil {
			return core.Failf(core.CodeValidation, "%s was not changed: %v.", in.FilePath, err), nil
		}
	}
	if refusal := omission(in.FilePath, in.Content, string(utf8Text(old))); refusal != nil {
		return *refusal, nil
	}
	if err := files.Write(ctx, in.FilePath, bytes.NewReader(content), 0); err != nil {
		return failure("write", in.FilePath, err), nil
	}
	result := core.TextResult(verb + " " + in.FilePath + ": " + count(len(content), "byte") + " written." + sentences(notes))
	if old != nil || verb == "Created" { // else it was too large to be read
		result.Meta = preview.Meta(preview.Change{Path: in.FilePath, Before: old, After: content})
		delete(result.Meta, "diff") // the arguments have the text
	}
	return result, nil
}
