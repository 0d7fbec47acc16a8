package posix

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
)

//go:embed scripts/lib.sh
var lib string

// lib is prepended to the file scripts.
var (
	//go:embed scripts/probe.sh
	probeScript string
	//go:embed scripts/resolve.sh
	resolveScript string
	//go:embed scripts/stat.sh
	statScript string
	//go:embed scripts/readdir.sh
	readDirScript string
	//go:embed scripts/open.sh
	openScript string
	//go:embed scripts/write.sh
	writeScript string
	//go:embed scripts/rename.sh
	renameScript string
	//go:embed scripts/remove.sh
	removeScript string
)

// argv returns the command line of a file script.
func argv(script string, args []string) []string {
	return append([]string{"sh", "-c", lib + script, "sh"}, args...)
}

// script runs a file script and returns what it printed.
func (e *Env) script(ctx context.Context, script string, stdin io.Reader, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	stderr := &tail{}
	err := e.runner.Run(ctx, argv(script, args), stdin, &out, stderr)
	if err := outcome(ctx, err, stderr.text()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// outcome returns the error of a script: it failed if its status, after the NUL
// byte in stderr, is not 0; without a status it did not run to its end.
func outcome(ctx context.Context, err error, stderr string) error {
	status := -1
	i := strings.LastIndexByte(stderr, 0)
	if i >= 0 {
		if _, err := fmt.Sscanf(stderr[i+1:], "%d\n", &status); err != nil {
			status = -1
		}
	}
	switch {
	case status == 0 && err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case status < 0:
		return connectionError(err, stderr)
	case status == 0:
		return err
	default:
		return failure(strings.TrimSpace(stderr[:i]))
	}
}

var errChanged = fmt.Errorf("the path changed after it was checked: %w", fs.ErrPermission)

// failures maps the ends of error messages, in the C locale, to errors. Shells
// have their own wordings.
var failures = []struct {
	end string
	err error
}{
	{"No such file or directory", syscall.ENOENT},
	{"No such file", syscall.ENOENT},
	{"nonexistent directory", syscall.ENOENT},
	{"Directory nonexistent", syscall.ENOENT},
	{"Permission denied", syscall.EACCES},
	{"Operation not permitted", syscall.EPERM},
	{"Read-only file system", syscall.EROFS},
	{"File exists", syscall.EEXIST},
	{"Is a directory", syscall.EISDIR},
	{"Not a directory", syscall.ENOTDIR},
	{"Directory not empty", syscall.ENOTEMPTY},
	{"No space left on device", syscall.ENOSPC},
	{"Disk quota exceeded", syscall.EDQUOT},
	{"File name too long", syscall.ENAMETOOLONG},
	{"Too many levels of symbolic links", syscall.ELOOP},
	{"Symbolic link loop", syscall.ELOOP},
	{"The path changed after it was checked", errChanged},
	{"not a regular file", fs.ErrInvalid},
}

// failure returns the error for a script's last message.
func failure(message string) error {
	last := message[strings.LastIndexByte(message, '\n')+1:]
	for _, f := range failures {
		if !strings.HasSuffix(last, f.end) {
			continue
		}
		if last == f.end || errors.Is(f.err, errChanged) {
			return f.err
		}
		return &scriptError{message: last, err: f.err}
	}
	if last == "" {
		last = "it failed without a message"
	}
	return errors.New(last)
}

// scriptError is a program's message with its meaning.
type scriptError struct {
	message string
	err     error
}

func (e *scriptError) Error() string { return e.message }
func (e *scriptError) Unwrap() error { return e.err }

// pathError adds the path to an error that does not name it.
func pathError(op, name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// tail keeps the end of what is written to it.
type tail struct{ data []byte }

const tailSize = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - tailSize; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string { return string(t.data) }
