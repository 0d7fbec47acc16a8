package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/seed-009c0928/agent/core"
)

// exactFiles returns the exact files of env, or its files if it has none.
func exactFiles(env core.Environment) core.FS {
	if e, ok := env.(core.ExactFiler); ok {
		return e.ExactFiles()
	}
	return env.Files()
}

// checkName refuses what cannot be a path on any platform.
func checkName(name string) error {
	if strings.ContainsRune(name, 0) {
		return &fs.PathError{Op: "resolve", Path: name, Err: fmt.Errorf("a path cannot contain a NUL byte: %w", fs.ErrInvalid)}
	}
	return nil
}

// checkCommand refuses a command without, or with both, a Script and an Argv.
func checkCommand(cmd core.Command) error {
	switch {
	case cmd.Script == "" && len(cmd.Argv) == 0:
		return errors.New("the command is empty: set its Script or its Argv")
	case cmd.Script != "" && len(cmd.Argv) > 0:
		return errors.New("the command has both a Script and an Argv: set one of them")
	}
	return nil
}

// notAFile is the error for a path that is not a regular file.
func notAFile(op, path string, mode fs.FileMode) error {
	err := fs.ErrInvalid
	what := "a special file"
	switch {
	case mode.IsDir():
		err, what = syscall.EISDIR, "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return &fs.PathError{Op: op, Path: path, Err: &notFileError{what: what, err: err}}
}

type notFileError struct {
	what string
	err  error
}

func (e *notFileError) Error() string { return "it is " + e.what + ", not a regular file" }
func (e *notFileError) Unwrap() error { return e.err }

// withContext returns a reader of r that fails once ctx is done. It does not
// interrupt a Read in progress.
func withContext(ctx context.Context, r io.Reader) io.Reader {
	return &contextReader{ctx: ctx, r: r}
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
