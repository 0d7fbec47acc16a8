package coretest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// errNoEnv is the error of an environment when ToolsetOptions.Env is not set.
var errNoEnv = errors.New("the suite has no environment for this toolset: set ToolsetOptions.Env")

// refusingEnv is an environment that refuses everything.
type refusingEnv struct{}

var (
	_ core.Environment = refusingEnv{}
	_ core.FS          = refusingFS{}
)

func (refusingEnv) Files() core.FS { return refusingFS{} }

func (refusingEnv) Start(context.Context, core.Command) (core.Process, error) { return nil, errNoEnv }

func (refusingEnv) Resolve(_ context.Context, path string) (core.Resolved, error) {
	return core.Resolved{Path: filepath.Clean(path)}, nil
}

func (refusingEnv) Info() core.EnvInfo { return core.EnvInfo{OS: "none", Dir: "/"} }
func (refusingEnv) Close() error       { return nil }

type refusingFS struct{}

func (refusingFS) Open(context.Context, string) (core.File, error) { return nil, errNoEnv }

func (refusingFS) Stat(context.Context, string) (fs.FileInfo, error) { return nil, errNoEnv }

func (refusingFS) ReadDir(context.Context, string) ([]fs.DirEntry, error)      { return nil, errNoEnv }
func (refusingFS) Write(context.Context, string, io.Reader, fs.FileMode) error { return errNoEnv }
func (refusingFS) Rename(ctx context.Context, from, to string) error           { return errNoEnv }
func (refusingFS) Remove(context.Context, string) error                        { return errNoEnv }

// watchedEnv records calls that change something.
type watchedEnv struct {
	core.Environment

	mu   sync.Mutex
	done []string
}

func (e *watchedEnv) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = append(e.done, what)
}

func (e *watchedEnv) changes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.done...)
}

func (e *watchedEnv) Files() core.FS { return &watchedFS{e.Environment.Files(), e} }

func (e *watchedEnv) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	e.note("Start")
	return e.Environment.Start(ctx, cmd)
}

type watchedFS struct {
	core.FS
	env *watchedEnv
}

func (f *watchedFS) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	f.env.note("Write " + path)
	return f.FS.Write(ctx, path, content, mode)
}

func (f *watchedFS) Rename(ctx context.Context, from, to string) error {
	f.env.note("Rename " + from)
	return f.FS.Rename(ctx, from, to)
}

func (f *watchedFS) Remove(ctx context.Context, path string) error {
	f.env.note("Remove " + path)
	return f.FS.Remove(ctx, path)
}
