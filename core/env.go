package core

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Environment is where tools work: this machine, a container, a remote host.
// It is safe for concurrent use. Close ends what it started.
type Environment interface {
	Files() FS
	// Start starts a command. When ctx is done, the command and everything
	// that it started is told to end, and killed after two seconds.
	Start(ctx context.Context, cmd Command) (Process, error)
	// Resolve makes a path absolute, relative to the working directory, and
	// resolves the symbolic links of its longest existing prefix. The path need
	// not exist.
	Resolve(ctx context.Context, path string) (Resolved, error)
	Info() EnvInfo
	Close() error
}

// FS is an environment's files. Paths are as Resolve takes them. Errors satisfy
// errors.Is with fs.ErrNotExist, fs.ErrPermission, fs.ErrExist where they apply.
type FS interface {
	Open(ctx context.Context, path string) (File, error)
	// Stat follows symbolic links.
	Stat(ctx context.Context, path string) (fs.FileInfo, error)
	// ReadDir returns the entries sorted by name, symbolic links as such.
	ReadDir(ctx context.Context, path string) ([]fs.DirEntry, error)
	// Write atomically replaces the file's content, or creates the file and
	// its parents. Mode 0 keeps that of the file, 0644 for a new one.
	Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error
	// Rename replaces an existing file, but not a directory.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file or an empty directory. As everywhere, symbolic
	// links are followed.
	Remove(ctx context.Context, path string) error
}

// ExactFiler is an environment whose files can be opened by exactly the path
// that Resolve returned: a symbolic link put into it since then is an error, not
// followed. Restrict uses it if it is implemented.
type ExactFiler interface {
	ExactFiles() FS
}

// Batcher is an FS whose operations are slow one by one, as each goes to another
// machine. The caller must close the batch.
type Batcher interface {
	Batch(ctx context.Context) (Batch, error)
}

// Batch reads many directories and files in few round trips. Paths are absolute
// and resolved, as for ExactFiler. It is not safe for concurrent use. Its errors
// are those of the connection; those of a path are in its result.
type Batch interface {
	// ReadDirs reads directories as ReadDir does.
	ReadDirs(paths []string) ([]BatchResult, error)
	// ReadFiles visits each file once, in any order, with at most limit bytes of
	// its content.
	ReadFiles(paths []string, limit int, visit func(i int, data []byte, err error)) error
	Close() error
}

// BatchResult is the outcome for a directory.
type BatchResult struct {
	Entries []fs.DirEntry
	Err     error
}

// File is an open file for reading.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Resolved is a resolved path.
type Resolved struct {
	Path   string // absolute, symbolic links resolved
	Inside bool   // in the workspace: the working directory or an added one
}

// Command is a command to start: either Script or Argv.
type Command struct {
	Script string   // for the environment's shell
	Argv   []string // a program and its arguments, without a shell
	Dir    string   // empty = the working directory
	Env    []string // "NAME=value", on top of the filtered environment
	// Minimal reduces that environment to the variables that programs need,
	// where an environment can.
	Minimal bool
	Stdin   io.Reader
	// Terminal gives the command a terminal as stdin, stdout and stderr. What
	// Stdin has is typed there; its output goes to Stdout. Where there are no
	// terminals, Start fails with errors.ErrUnsupported.
	Terminal   bool
	Rows, Cols int // of the terminal; 0 = 40 and 120
	// Interrupt, once closed, interrupts the command as Ctrl-C on a terminal
	// does: it gets SIGINT, and may clean up or go on. Windows has no such
	// signal.
	Interrupt <-chan struct{}
	// Grants are those of the call that starts the command. They define the
	// sandbox of an environment that has one: the grant of the command says
	// whether it is Unconfined, the others what it may write and reach. Only
	// Restrict sets them; commands of the host have none and are not confined.
	Grants []Grant
	// Stdout and Stderr take the output; nil discards it. If both are the same
	// writer, it gets the bytes in order, and never two writes at once.
	Stdout, Stderr io.Writer
}

// Process is a started command.
type Process interface {
	// Wait waits for the end. It must be called once. The error is that of ctx
	// if it ended the command; a command that fails is not an error, but an
	// Exit.
	Wait() (Exit, error)
}

// Exit is how a process ended.
type Exit struct {
	Code     int // -1 when a signal ended it
	Signal   string
	Duration time.Duration
	Left     int // processes that it left behind and that were ended
	// Sandbox is the sandbox level that it ran at, such as "namespace", or
	// "none"; empty if the environment has no sandbox of its own.
	Sandbox string
}

// EnvInfo describes an environment.
type EnvInfo struct {
	OS, OSVersion, Home string   // OS as runtime.GOOS
	Dir                 string   // working directory, absolute, links resolved
	Roots               []string // the workspace: Dir and added directories
	// Ignore has the user's own rules for git, of all repositories. Shell is the
	// dialect of Command.Script: "bash", "sh", "cmd"; empty = no shell.
	Ignore, Shell string
}

// Exec runs a command to its end and returns its output, stdout and stderr
// combined.
func Exec(ctx context.Context, env Environment, cmd Command) ([]byte, Exit, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := env.Start(ctx, cmd)
	if err != nil {
		return nil, Exit{}, err
	}
	exit, err := p.Wait()
	return out.Bytes(), exit, err
}

// ReadFile reads a whole file of at most limit bytes.
func ReadFile(ctx context.Context, files FS, path string, limit int64) ([]byte, error) {
	f, err := files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		data, err = nil, ErrTooLarge
	}
	return data, err
}

// ErrTooLarge is the error of a file that is larger than the limit.
var ErrTooLarge = errors.New("file is too large")
