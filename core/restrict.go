package core

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/tracecontext"
)

// Restrict returns env restricted to the given grants: every path is resolved
// again when it is used and compared with what was granted, and a command must
// be the granted one; it starts with the grants and their environment
// variables. Handles of store are always readable. The store may be nil.
func Restrict(env Environment, grants []Grant, store ContextStore) Environment {
	return &restricted{Environment: env, grants: grants, store: store}
}

// DeniedError is the error of an access that was not granted. It is an
// fs.ErrPermission.
type DeniedError struct{ Access Access }

// Error implements error.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s of %q was not granted to this call", e.Access.Scope, e.Access.Resource)
}

// Is makes errors.Is(err, fs.ErrPermission) true.
func (e *DeniedError) Is(target error) bool { return target == fs.ErrPermission }

type restricted struct {
	Environment
	grants []Grant
	store  ContextStore
}

func (r *restricted) Files() FS {
	if e, ok := r.Environment.(ExactFiler); ok {
		return restrictedFS{r, e.ExactFiles(), true}
	}
	return restrictedFS{r, r.Environment.Files(), false}
}

// Close does nothing: a call does not own its environment.
func (r *restricted) Close() error { return nil }

// Start implements [Environment].
func (r *restricted) Start(ctx context.Context, cmd Command) (Process, error) {
	line := cmp.Or(cmd.Script, strings.Join(cmd.Argv, " "))
	for _, g := range r.grants {
		if (g.Scope == ScopeShell || g.Scope == ScopeSkillScript) && g.Resource == line {
			cmd.Grants, cmd.Env = r.grants, slices.Concat(cmd.Env, g.Env, tracecontext.Environ(ctx))
			return r.Environment.Start(ctx, cmd)
		}
	}
	return nil, &DeniedError{Access{Scope: ScopeShell, Resource: line}}
}

// Resolve implements [Environment]. A handle resolves to itself.
func (r *restricted) Resolve(ctx context.Context, path string) (Resolved, error) {
	if strings.HasPrefix(path, HandlePrefix) && r.store != nil {
		return Resolved{Path: path, Inside: true}, nil
	}
	return r.Environment.Resolve(ctx, path)
}

type restrictedFS struct {
	*restricted
	files FS
	exact bool // files are those of an ExactFiler
}

// check resolves a path and returns it if one of the scopes was granted for it.
func (f restrictedFS) check(ctx context.Context, path string, scopes ...Scope) (string, error) {
	to, err := f.Environment.Resolve(ctx, path)
	if err == nil && !granted(f.grants, to.Path, scopes...) {
		err = &DeniedError{Access{Scope: scopes[0], Resource: to.Path, Inside: to.Inside}}
	}
	return to.Path, err
}

// granted reports whether one of the scopes was granted for a resolved path.
func granted(grants []Grant, path string, scopes ...Scope) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool { return slices.Contains(scopes, g.Scope) && g.covers(path) })
}

// covers reports whether the grant includes the resolved path.
func (g Grant) covers(path string) bool {
	if path == g.Resource || !g.Recursive {
		return path == g.Resource
	}
	rel, err := filepath.Rel(g.Resource, path)
	return err == nil && filepath.IsLocal(rel) && (g.Except == nil || !g.Except(path))
}

func (f restrictedFS) Open(ctx context.Context, path string) (File, error) {
	if strings.HasPrefix(path, HandlePrefix) && f.store != nil {
		return f.store.Open(ctx, path)
	}
	return readGranted(ctx, f, path, f.files.Open)
}

// readGranted reads what was granted. A path that may be resolved already is tried
// as it is, as exact files refuse it otherwise: that saves resolving it twice.
func readGranted[T any](ctx context.Context, f restrictedFS, path string, read func(context.Context, string) (T, error)) (T, error) {
	if f.exact && filepath.IsAbs(path) && filepath.Clean(path) == path && granted(f.grants, path, ScopeRead) {
		if got, err := read(ctx, path); err == nil {
			return got, nil
		}
	}
	to, err := f.check(ctx, path, ScopeRead)
	if err != nil {
		return *new(T), err
	}
	return read(ctx, to)
}

func (f restrictedFS) Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	if strings.HasPrefix(path, HandlePrefix) && f.store != nil {
		h, err := f.store.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		return h.Stat()
	}
	to, err := f.check(ctx, path, ScopeRead, ScopeWrite, ScopeDelete)
	if err != nil {
		return nil, err
	}
	return f.files.Stat(ctx, to)
}

func (f restrictedFS) ReadDir(ctx context.Context, path string) ([]fs.DirEntry, error) {
	return readGranted(ctx, f, path, f.files.ReadDir)
}

// Batch implements [Batcher]; the batch is nil if the files have none.
func (f restrictedFS) Batch(ctx context.Context) (Batch, error) {
	b, ok := f.files.(Batcher)
	if !ok {
		return nil, nil
	}
	inner, err := b.Batch(ctx)
	if inner == nil || err != nil {
		return nil, err
	}
	return restrictedBatch{inner, f.grants}, nil
}

type restrictedBatch struct {
	Batch
	grants []Grant
}

// allowed returns which paths were granted; the batch refuses those that are not
// resolved.
func (b restrictedBatch) allowed(paths []string, denied func(i int, err error)) (open []string, indexes []int) {
	for i, path := range paths {
		if granted(b.grants, path, ScopeRead) {
			open, indexes = append(open, path), append(indexes, i)
		} else {
			denied(i, &DeniedError{Access{Scope: ScopeRead, Resource: path}})
		}
	}
	return open, indexes
}

func (b restrictedBatch) ReadDirs(paths []string) ([]BatchResult, error) {
	results := make([]BatchResult, len(paths))
	open, indexes := b.allowed(paths, func(i int, err error) { results[i].Err = err })
	some, err := b.Batch.ReadDirs(open)
	for i, r := range some {
		results[indexes[i]] = r
	}
	return results, err
}

func (b restrictedBatch) ReadFiles(paths []string, limit int, visit func(i int, data []byte, err error)) error {
	open, indexes := b.allowed(paths, func(i int, err error) { visit(i, nil, err) })
	return b.Batch.ReadFiles(open, limit, func(i int, data []byte, err error) { visit(indexes[i], data, err) })
}

func (f restrictedFS) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	to, err := f.check(ctx, path, ScopeWrite)
	if err != nil {
		return err
	}
	return f.files.Write(ctx, to, content, mode)
}

func (f restrictedFS) Rename(ctx context.Context, from, to string) error {
	src, err := f.check(ctx, from, ScopeDelete)
	if err != nil {
		return err
	}
	dst, err := f.check(ctx, to, ScopeWrite)
	if err != nil {
		return err
	}
	return f.files.Rename(ctx, src, dst)
}

func (f restrictedFS) Remove(ctx context.Context, path string) error {
	to, err := f.check(ctx, path, ScopeDelete)
	if err != nil {
		return err
	}
	return f.files.Remove(ctx, to)
}
