package preview

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// maxFile limits the files of a preview.
const maxFile = 10 << 20

// dryEnv is an environment whose files are an overlay.
type dryEnv struct {
	core.Environment
	files *overlay
}

func (e dryEnv) Files() core.FS { return e.files }

func (e dryEnv) Start(context.Context, core.Command) (core.Process, error) {
	e.files.limited = true
	return nil, errors.New("a preview starts no commands")
}

// overlay keeps changes of files in memory. It is used by one call.
type overlay struct {
	core.FS
	env     core.Environment
	changed map[string]*file // by resolved path
	order   []string
	limited bool // by what a preview cannot do
}

// file is a changed file.
type file struct {
	path string // as it was named
	data []byte
	gone bool
	mode fs.FileMode
}

func (o *overlay) at(ctx context.Context, name string) (string, *file, error) {
	to, err := o.env.Resolve(ctx, name)
	if err != nil {
		return "", nil, err
	}
	return to.Path, o.changed[to.Path], nil
}

func (o *overlay) set(at string, f *file) {
	if !slices.Contains(o.order, at) {
		o.order = append(o.order, at)
	}
	o.changed[at] = f
}

// Open implements core.FS.
func (o *overlay) Open(ctx context.Context, name string) (core.File, error) {
	switch _, f, err := o.at(ctx, name); {
	case err != nil:
		return nil, err
	case f == nil:
		return o.FS.Open(ctx, name)
	case f.gone:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	default:
		return opened{bytes.NewReader(f.data), f}, nil
	}
}

// Stat implements core.FS.
func (o *overlay) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	switch _, f, err := o.at(ctx, name); {
	case err != nil:
		return nil, err
	case f == nil:
		return o.FS.Stat(ctx, name)
	case f.gone:
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	default:
		return f, nil
	}
}

// Write implements core.FS.
func (o *overlay) Write(ctx context.Context, name string, content io.Reader, mode fs.FileMode) error {
	at, _, err := o.at(ctx, name)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(content, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = core.ErrTooLarge
	}
	if err == nil {
		o.set(at, &file{path: name, data: data, mode: mode})
	}
	return err
}

// Rename implements core.FS.
func (o *overlay) Rename(ctx context.Context, from, to string) error {
	data, err := core.ReadFile(ctx, o, from, maxFile)
	if err != nil {
		return err
	}
	if err := o.Write(ctx, to, bytes.NewReader(data), 0); err != nil {
		return err
	}
	return o.Remove(ctx, from)
}

// Remove implements core.FS.
func (o *overlay) Remove(ctx context.Context, name string) error {
	at, _, err := o.at(ctx, name)
	if err == nil {
		o.set(at, &file{path: name, gone: true})
	}
	return err
}

// changes compares the overlay with what is below it.
func (o *overlay) changes(ctx context.Context) ([]Change, error) {
	var out []Change
	for _, at := range o.order {
		f := o.changed[at]
		before, err := core.ReadFile(ctx, o.FS, f.path, maxFile)
		missing := errors.Is(err, fs.ErrNotExist)
		if err != nil && !missing {
			return nil, err
		}
		c := Change{Path: f.path, At: at}
		if !missing {
			c.Before = orEmpty(before)
		}
		if !f.gone {
			c.After = orEmpty(f.data)
		}
		if c.Before == nil && c.After == nil || c.Before != nil && c.After != nil && bytes.Equal(before, f.data) {
			continue
		}
		out = append(out, c)
	}
	return out, nil
}

// orEmpty returns data that is not nil.
func orEmpty(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// opened is an open changed file.
type opened struct {
	*bytes.Reader
	info *file
}

func (o opened) Close() error               { return nil }
func (o opened) Stat() (fs.FileInfo, error) { return o.info, nil }

// Name implements fs.FileInfo, like the methods below.
func (f *file) Name() string       { return path.Base(f.path) }
func (f *file) Size() int64        { return int64(len(f.data)) }
func (f *file) Mode() fs.FileMode  { return f.mode.Perm() }
func (f *file) ModTime() time.Time { return time.Time{} }
func (f *file) IsDir() bool        { return false }
func (f *file) Sys() any           { return nil }
