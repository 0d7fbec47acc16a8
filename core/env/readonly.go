package env

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/seed-009c0928/agent/core"
)

// errReadOnly is the error for changes in a [ReadOnly] environment.
var errReadOnly = fmt.Errorf("this environment is read-only: files can be read but not changed: %w", fs.ErrPermission)

// ReadOnly returns env restricted to reading files and resolving paths. Writes
// and commands fail with an error that is an fs.ErrPermission. Its Info names no
// shell.
func ReadOnly(env core.Environment) core.Environment { return readOnly{env} }

type readOnly struct{ core.Environment }

// Files implements [core.Environment].
func (r readOnly) Files() core.FS { return readOnlyFS{r.Environment.Files()} }

// ExactFiles implements [core.ExactFiler].
func (r readOnly) ExactFiles() core.FS { return readOnlyFS{exactFiles(r.Environment)} }

// Start implements [core.Environment]. It fails, as any command may change
// something.
func (r readOnly) Start(context.Context, core.Command) (core.Process, error) {
	return nil, fmt.Errorf("this environment is read-only: it starts no commands: %w", fs.ErrPermission)
}

// Info implements [core.Environment].
func (r readOnly) Info() core.EnvInfo {
	info := r.Environment.Info()
	info.Shell = ""
	return info
}

type readOnlyFS struct{ core.FS }

// Write implements [core.FS].
func (readOnlyFS) Write(_ context.Context, path string, _ io.Reader, _ fs.FileMode) error {
	return &fs.PathError{Op: "write", Path: path, Err: errReadOnly}
}

// Rename implements [core.FS].
func (readOnlyFS) Rename(_ context.Context, from, _ string) error {
	return &fs.PathError{Op: "rename", Path: from, Err: errReadOnly}
}

// Remove implements [core.FS].
func (readOnlyFS) Remove(_ context.Context, path string) error {
	return &fs.PathError{Op: "remove", Path: path, Err: errReadOnly}
}
