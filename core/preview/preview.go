package preview

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/charset"
	"github.com/seed-009c0928/agent/core/model"
)

// Change is what a call does to one file.
type Change struct {
	Path   string // as in the call's arguments
	At     string // absolute, symbolic links resolved
	Before []byte // nil: the file is new
	After  []byte // nil: the file is deleted
}

// Diff returns the change as a unified diff. Text in other encodings is shown in
// UTF-8.
func (c Change) Diff() string {
	name := strings.TrimPrefix(filepath.ToSlash(c.Path), "/")
	return string(diff.Diff("a/"+name, utf8Text(c.Before), "b/"+name, utf8Text(c.After)))
}

// Edits returns the change as edits.
func (c Change) Edits() []event.Edit { return c.EditsOf(c.Diff()) }

// EditsOf is Edits with the Diff at hand.
func (c Change) EditsOf(diff string) []event.Edit {
	kind := "modify"
	switch {
	case c.Before == nil:
		kind = "create"
	case c.After == nil:
		kind = "delete"
	}
	return event.EditsOf(c.Path, kind, diff)
}

const (
	maxDiffFile = 1 << 20  // largest file that gets a diff
	maxDiffSize = 64 << 10 // largest diff
)

// Meta returns changes for the Meta of a result: as a unified diff, and as edits. It
// is nil if they are large.
func Meta(changes ...Change) map[string]json.RawMessage {
	var unified strings.Builder
	var edits []event.Edit
	for _, c := range changes {
		if len(c.Before) > maxDiffFile || len(c.After) > maxDiffFile || unified.Len() > maxDiffSize {
			return nil
		}
		diff := c.Diff()
		unified.WriteString(diff)
		edits = append(edits, c.EditsOf(diff)...)
	}
	text, err := json.Marshal(unified.String())
	if err != nil || unified.Len() == 0 || unified.Len() > maxDiffSize {
		return nil
	}
	meta := map[string]json.RawMessage{"diff": text}
	event.EditsMeta(meta, edits)
	return meta
}

func utf8Text(data []byte) []byte {
	e, _ := charset.Detect(data)
	return e.Decode(data)
}

// Previewer is a tool that can tell what a call would change.
type Previewer interface {
	// Preview returns the changes, and makes none. If the call would fail, it
	// returns no changes, and a [Failure] if it knows why. It reads through
	// call.Env, asks nothing, and is safe for concurrent use.
	Preview(ctx context.Context, call *core.Call) ([]Change, error)
}

// Failure is the error of a preview whose call would fail.
type Failure struct {
	Text string // as the model would see it
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// Run returns the changes that run would make through call.Env: it gets a copy of
// the call whose files can be changed without any effect. A command that it starts
// fails.
func Run(ctx context.Context, call *core.Call, run func(ctx context.Context, call *core.Call) (core.Result, error)) ([]Change, error) {
	files := &overlay{FS: call.Env.Files(), env: call.Env, changed: map[string]*file{}}
	dry := *call
	dry.Env = dryEnv{call.Env, files}
	result, err := run(ctx, &dry)
	switch {
	case err != nil:
		return nil, err
	case result.Code != "" && files.limited: // the call itself may succeed
		return nil, nil
	case result.Code != "":
		return nil, &Failure{model.Parts(result.Content).Text()}
	}
	return files.changes(ctx)
}
