package env

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// Within returns env with a directory of its workspace as the working directory
// and the whole workspace: relative paths and commands start there, and what is
// outside it is outside the workspace. It does not own env: Close does nothing.
func Within(ctx context.Context, env core.Environment, dir string) (core.Environment, error) {
	to, err := env.Resolve(ctx, dir)
	if err != nil {
		return nil, err
	}
	info, err := env.Files().Stat(ctx, to.Path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%q is not a directory", dir)
	case !to.Inside:
		return nil, fmt.Errorf("%q leads out of the workspace, to %s", dir, to.Path)
	}
	return within{env, to.Path}, nil
}

type within struct {
	core.Environment
	dir string
}

// abs makes a path absolute, unless it begins with the home directory or, on
// Windows, with a drive.
func (w within) abs(path string) string {
	windows := w.Environment.Info().OS == "windows"
	first, _, _ := strings.Cut(path, "/")
	if windows {
		first, _, _ = strings.Cut(first, `\`)
	}
	switch {
	case path == "":
		return w.dir
	case first == "", first == "~", windows && strings.Contains(first, ":"):
		return path
	}
	return w.dir + w.separator() + path
}

func (w within) separator() string {
	if w.Environment.Info().OS == "windows" {
		return `\`
	}
	return "/"
}

// Resolve implements [core.Environment].
func (w within) Resolve(ctx context.Context, path string) (core.Resolved, error) {
	to, err := w.Environment.Resolve(ctx, w.abs(path))
	to.Inside = to.Inside && (to.Path == w.dir || strings.HasPrefix(to.Path, strings.TrimSuffix(w.dir, w.separator())+w.separator()))
	return to, err
}

// Start implements [core.Environment].
func (w within) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	cmd.Dir = w.abs(cmd.Dir)
	return w.Environment.Start(ctx, cmd)
}

// Info implements [core.Environment].
func (w within) Info() core.EnvInfo {
	info := w.Environment.Info()
	info.Dir, info.Roots = w.dir, []string{w.dir}
	return info
}

// Close implements [core.Environment].
func (within) Close() error { return nil }

// Files implements [core.Environment].
func (w within) Files() core.FS { return withinFS{w.Environment.Files(), w} }

// ExactFiles implements [core.ExactFiler].
func (w within) ExactFiles() core.FS { return withinFS{exactFiles(w.Environment), w} }

type withinFS struct {
	files core.FS
	env   within
}

// Open implements [core.FS].
func (f withinFS) Open(ctx context.Context, path string) (core.File, error) {
	return f.files.Open(ctx, f.env.abs(path))
}

// Stat implements [core.FS].
func (f withinFS) Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	return f.files.Stat(ctx, f.env.abs(path))
}

// ReadDir implements [core.FS].
func (f withinFS) ReadDir(ctx context.Context, path string) ([]fs.DirEntry, error) {
	return f.files.ReadDir(ctx, f.env.abs(path))
}

// Write implements [core.FS].
func (f withinFS) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	return f.files.Write(ctx, f.env.abs(path), content, mode)
}

// Rename implements [core.FS].
func (f withinFS) Rename(ctx context.Context, from, to string) error {
	return f.files.Rename(ctx, f.env.abs(from), f.env.abs(to))
}

// Remove implements [core.FS].
func (f withinFS) Remove(ctx context.Context, path string) error {
	return f.files.Remove(ctx, f.env.abs(path))
}
