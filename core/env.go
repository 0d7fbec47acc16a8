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
	// that it started is ended: asked to at first, killed after two seconds.
	Start(ctx context.Context, cmd Command) (Process, error)
	// Resolve makes a path absolute against the working directory and resolves
	// the symbolic links of its longest existing prefix. A path that does not
	// exist resolves too.
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
	// Write replaces the file's content with what it reads, or creates the
	// file and its parents: wholly or not at all. Mode 0 keeps that of the
	// file, or means 0644.
	Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error
	// Rename replaces a file that is there, but no directory.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file or an empty directory. As everywhere, a symbolic
	// link stands for what it leads to.
	Remove(ctx context.Context, path string) error
}

// ExactFiler is an environment that can hold its files to paths as Resolve
// returned them: a symbolic link that somebody put into one since is refused,
// not followed. Restrict uses it where it is there.
type ExactFiler interface {
	ExactFiles() FS
}

// File is an open file for reading.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Resolved is where a path leads.
type Resolved struct {
	Path   string // absolute, symbolic links resolved
	Inside bool   // in the workspace: the working directory or an added one
}

// Command is what to start: either Script or Argv.
type Command struct {
	Script string   // for the environment's shell
	Argv   []string // a program and its arguments, without a shell
	Dir    string   // empty = the working directory
	Env    []string // "NAME=value", on top of the filtered environment
	// Minimal leaves of that what programs need to find their way, where an
	// environment can.
	Minimal bool
	Stdin   io.Reader
	// Terminal gives the command a terminal, to which nobody types, in the place
	// of stdin, stdout and stderr; what it prints goes to Stdout. Where there
	// is none to give, Start fails with errors.ErrUnsupported.
	Terminal bool
	// Grants are those of the call that starts the command. An environment
	// with a sandbox makes it of them: the one for the command says whether it
	// is Unconfined, the others what it may write and reach. Only Restrict
	// sets them; what the host starts by itself has none and is not confined.
	Grants []Grant
	// Stdout and Stderr take the output; nil discards it. If both are the same
	// writer, it gets the bytes as they came, and no two writes at once.
	Stdout, Stderr io.Writer
}

// Process is a started command.
type Process interface {
	// Wait waits for the end. It must be called once. The error is that of ctx
	// if the command was ended for it; a command that fails by itself is no
	// error but an Exit.
	Wait() (Exit, error)
}

// Exit is how a process ended.
type Exit struct {
	Code     int // -1 when a signal ended it
	Signal   string
	Duration time.Duration
	Left     int // processes that it left behind and that were ended
	// Sandbox is the level of the sandbox that it ran in, such as "namespace",
	// or "none"; empty where the environment has no sandbox of ours to tell of.
	Sandbox string
}

// EnvInfo describes an environment.
type EnvInfo struct {
	OS              string // as runtime.GOOS
	OSVersion, Home string
	Dir             string   // working directory, absolute, links resolved
	Roots           []string // the workspace: Dir and what was added
	Shell           string   // dialect of Command.Script: "bash", "sh", "cmd"; empty = no shell
}

// Exec runs a command to its end and returns what it printed, stdout and
// stderr together as they came.
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
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, ErrTooLarge
	}
	return data, nil
}

// ErrTooLarge is returned when a file is larger than the caller can take.
var ErrTooLarge = errors.New("file is too large")
