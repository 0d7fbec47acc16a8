package tools_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

func TestWriteFile(t *testing.T) {
	where := env.NewMemory("", map[string]string{"old.txt": "before", "dir/": ""})
	check(t, tools.WriteFile(), where, args{"file_path": "a/b/new.txt", "content": "café\n"}, "", "Created a/b/new.txt: 6 bytes written.")
	check(t, tools.WriteFile(), where, args{"file_path": "old.txt", "content": "x"}, "", "Overwrote old.txt: 1 byte written.")
	check(t, tools.WriteFile(), where, args{"file_path": "empty.txt", "content": ""}, "", "Created empty.txt: 0 bytes written.")
	for path, want := range map[string]string{"a/b/new.txt": "café\n", "old.txt": "x", "empty.txt": ""} {
		if got := content(t, where, path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	checkHas(t, tools.WriteFile(), where, args{"file_path": "dir", "content": ""}, core.CodeIO, "is a directory")
	checkHas(t, tools.WriteFile(), where, args{"file_path": "", "content": ""}, core.CodeValidation, "file_path is empty")
	checkHas(t, tools.WriteFile(), where, args{"file_path": "context:1", "content": ""}, core.CodeValidation, "stored output")
	checkHas(t, tools.WriteFile(), where, args{"file_path": "old.txt/x", "content": ""}, core.CodeIO, "not a directory")
}

// brokenEnv is an environment whose file operations fail, or whose files are not
// regular.
type brokenEnv struct {
	core.Environment
	write error
	mode  fs.FileMode // of every file, if it is not 0
}

func (e brokenEnv) Files() core.FS { return brokenFS{e.Environment.Files(), e} }

type brokenFS struct {
	core.FS
	env brokenEnv
}

func (f brokenFS) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	if f.env.write != nil {
		return &fs.PathError{Op: "write", Path: path, Err: f.env.write}
	}
	return f.FS.Write(ctx, path, content, mode)
}

func (f brokenFS) Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	info, err := f.FS.Stat(ctx, path)
	if err == nil && f.env.mode != 0 {
		info = oddFile{info, f.env.mode}
	}
	return info, err
}

type oddFile struct {
	fs.FileInfo
	mode fs.FileMode
}

func (f oddFile) Mode() fs.FileMode { return f.mode }
func (f oddFile) IsDir() bool       { return f.mode.IsDir() }

func TestWriteFailures(t *testing.T) {
	tests := map[string]struct {
		err  error
		code core.ErrorCode
		want string
	}{
		"disk full":  {errors.New("no space left on device"), core.CodeIO, "the disk is full"},
		"permission": {fs.ErrPermission, core.CodePermission, "permission denied"},
		"other":      {errors.New("input/output error"), core.CodeIO, "input/output error"},
		"timeout":    {context.DeadlineExceeded, core.CodeTimeout, "timed out"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			where := brokenEnv{Environment: env.NewMemory("", map[string]string{"f": "a"}), write: tt.err}
			checkHas(t, tools.WriteFile(), where, args{"file_path": "f", "content": "b"}, tt.code, tt.want)
			checkHas(t, tools.EditFile(), where, args{"file_path": "f", "old_string": "a", "new_string": "b"}, tt.code, tt.want)
			if got := content(t, where, "f"); got != "a" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// Only regular files are opened: reading a pipe would block, and replacing a
// device would break it.
func TestSpecialFiles(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		fs.ModeNamedPipe: "a named pipe", fs.ModeSocket: "a socket", fs.ModeDevice: "a device", fs.ModeIrregular: "a special file",
	} {
		t.Run(want, func(t *testing.T) {
			where := brokenEnv{Environment: env.NewMemory("", map[string]string{"f": "a"}), mode: mode}
			checkHas(t, tools.ReadFile(), where, args{"file_path": "f"}, core.CodeIO, want)
			checkHas(t, tools.WriteFile(), where, args{"file_path": "f", "content": "b"}, core.CodeIO, want)
			checkHas(t, tools.EditFile(), where, args{"file_path": "f", "old_string": "a", "new_string": "b"}, core.CodeIO, want)
			checkHas(t, tools.Grep(), where, args{"path": "f", "pattern": "a"}, core.CodeIO, want)
		})
	}
}
