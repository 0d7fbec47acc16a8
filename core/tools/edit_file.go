package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/charset"
	"github.com/seed-009c0928/agent/core/internal/textedit"
	"github.com/seed-009c0928/agent/core/preview"
)

const maxEditSize = 10 << 20

//go:embed edit_file.md
var editFileDoc string

type editFileArgs struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// EditFile returns the tool edit_file, which replaces text in a file. If the
// exact text is not found, lines that differ only in white space or punctuation
// match too, provided there is exactly one such place.
func EditFile() core.Tool {
	tool := core.NewTool(core.ToolDefinition{
		Name:        "edit_file",
		Description: strings.TrimSpace(editFileDoc),
		Scopes:      []core.Scope{core.ScopeRead, core.ScopeWrite},
		Output:      core.OutputLimit{MaxChars: 10_000, Mode: core.Tail},
		Profiles:    []string{"default", "anthropic", "gemini"},
	}, func(_ context.Context, _ *core.Call, in editFileArgs) ([]core.Access, error) {
		return []core.Access{
			{Scope: core.ScopeRead, Resource: in.FilePath},
			{Scope: core.ScopeWrite, Resource: in.FilePath},
		}, nil
	}, runEditFile)
	return fileTool{Tool: tool, changes: filePath}
}

func runEditFile(ctx context.Context, call *core.Call, in editFileArgs) (core.Result, error) {
	switch {
	case in.FilePath == "":
		return invalid("file_path is empty. Give the path of a file.")
	case strings.HasPrefix(in.FilePath, core.HandlePrefix):
		return invalid("%q is a stored output, which cannot be changed. Give the path of a file.", in.FilePath)
	case in.OldString == "":
		return invalid("old_string is empty. To create or replace a whole file use write_file; to insert text, " +
			"give the neighbouring text as old_string and repeat it in new_string.")
	case in.OldString == in.NewString:
		return invalid("old_string and new_string are the same: nothing would change. Give the changed text in new_string.")
	}
	data, refusal := readForEdit(ctx, call.Env, in.FilePath)
	if refusal != nil {
		return *refusal, nil
	}
	doc, refusal := newDocument(in.FilePath, data)
	if refusal == nil {
		refusal = omission(in.FilePath, in.NewString, doc.text)
	}
	if refusal != nil {
		return *refusal, nil
	}
	text, report, err := doc.replace(in)
	if err != nil {
		return core.Failf(core.CodeValidation, "%s was not changed: %v.", in.FilePath, err), nil
	}
	after, err := doc.encode(text)
	if err != nil {
		return core.Failf(core.CodeValidation, "%s was not changed: %v.", in.FilePath, err), nil
	}
	if bytes.Equal(after, data) {
		return invalid("%s was not changed: with the file's own white space and line endings, old_string and new_string are the same. Copy the exact text; use shell to change line endings.", in.FilePath)
	}
	if err := call.Env.Files().Write(ctx, in.FilePath, bytes.NewReader(after), 0); err != nil {
		return failure("edit", in.FilePath, err), nil
	}
	result := core.TextResult(fmt.Sprintf("Edited %s: %s%s", in.FilePath, report, sentences(doc.notes())))
	result.Meta = preview.Meta(preview.Change{Path: in.FilePath, Before: data, After: after})
	return result, nil
}

// replace returns the edited text, and what was done. In a notebook the text of
// a cell is replaced, or else that of the file.
func (d document) replace(in editFileArgs) (text, report string, err error) {
	opts := editOptions(in.FilePath, in.ReplaceAll)
	if d.json {
		if text, report, found, err := replaceInNotebook(d.text, in.OldString, in.NewString, opts); found || err != nil {
			return text, report, err
		}
	}
	res, err := textedit.Parse(d.text).Replace(in.OldString, in.NewString, opts)
	switch {
	case err != nil && d.json:
		return "", "", errors.New("no cell has old_string, nor does the file. Read it again and copy the text of one cell exactly, without the line numbers")
	case err != nil:
		return "", "", err
	}
	return res.Text, res.String(), nil
}

// editOptions returns what the language of a file needs.
func editOptions(path string, all bool) textedit.Options {
	o := textedit.Options{All: all}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".py", ".ipynb", ".pyi", ".pyx", ".nim":
		o.Offside, o.Blocks = true, true
	case ".yaml", ".yml", ".coffee", ".haml", ".sass", ".pug":
		o.Offside = true
	}
	return o
}

// readForEdit reads a file, or returns a failure if it cannot be edited.
func readForEdit(ctx context.Context, env core.Environment, path string) ([]byte, *core.Result) {
	if refusal := checkFile(ctx, env, path); refusal != nil {
		return nil, refusal
	}
	data, err := core.ReadFile(ctx, env.Files(), path, maxEditSize)
	if errors.Is(err, core.ErrTooLarge) {
		return nil, tooLarge(path)
	}
	if err != nil {
		r := failure("edit", path, err)
		return nil, &r
	}
	return data, nil
}

// checkFile returns a failure if a path is not that of an existing file.
func checkFile(ctx context.Context, env core.Environment, path string) *core.Result {
	refuse := func(r core.Result) *core.Result { return &r }
	info, err := env.Files().Stat(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if near := nearNames(ctx, env, path); len(near) > 0 {
			return refuse(core.Failf(core.CodeNotFound, "File not found: %q. Did you mean %s? To create it use write_file.", path, strings.Join(near, ", ")))
		}
		return refuse(core.Failf(core.CodeNotFound, "File not found: %q. To create it use write_file; to find another one, glob.", path))
	case err != nil:
		return refuse(failure("edit", path, err))
	}
	return regular(path, info)
}

// regular returns a failure for what is not a file.
func regular(path string, info fs.FileInfo) *core.Result {
	var r core.Result
	switch {
	case info.IsDir():
		r = core.Failf(core.CodeIO, "Cannot edit %q: it is a directory. Give the path of a file in it.", path)
	case !info.Mode().IsRegular():
		r = core.Failf(core.CodeIO, "Cannot edit %q: it is %s, not a regular file.", path, special(info.Mode()))
	default:
		return nil
	}
	return &r
}

func tooLarge(path string) *core.Result {
	r := core.Failf(core.CodeIO, "Cannot edit %q: it is more than %s. Change it with shell, for example with sed.", path, byteSize(maxEditSize))
	return &r
}

// utf8Text returns a file's text in UTF-8.
func utf8Text(data []byte) []byte {
	e, _ := charset.Detect(data)
	return e.Decode(data)
}

// sentences turns notes into sentences.
func sentences(notes []string) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString(" " + strings.ToUpper(n[:1]) + n[1:] + ".")
	}
	return b.String()
}
