package posix

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// Files implements [core.Environment].
func (e *Env) Files() core.FS { return files{env: e} }

// ExactFiles implements [core.ExactFiler]. Each operation first verifies that the
// path is still resolved.
func (e *Env) ExactFiles() core.FS { return files{env: e, exact: "exact"} }

type files struct {
	env   *Env
	exact string // if not empty, refuse paths that are not resolved
}

// run runs a script with a path and further arguments.
func (f files) run(ctx context.Context, op, name, script string, stdin io.Reader, args ...string) ([]byte, error) {
	abs, err := f.env.abs(name)
	if err != nil {
		return nil, err
	}
	if f.exact != "" && abs != name {
		return nil, pathError(op, name, errChanged)
	}
	out, err := f.env.script(ctx, script, stdin, append([]string{f.exact, abs}, args...)...)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return out, nil
}

// Stat implements [core.FS].
func (f files) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	out, err := f.run(ctx, "stat", name, statScript, nil)
	if err != nil {
		return nil, err
	}
	line, to, _ := strings.Cut(string(out), "\n")
	info, err := parseInfo(path.Base(to), line)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

// ReadDir implements [core.FS].
func (f files) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	out, err := f.run(ctx, "readdir", name, readDirScript, nil)
	if err != nil {
		return nil, err
	}
	entries, err := parseList(out)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	sortEntries(entries)
	return entries, nil
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

// parseList parses batches of names and their output of stat.
func parseList(out []byte) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	for len(out) > 0 {
		names, rest, ok := bytes.Cut(out, []byte("\x00\x00"))
		lines, next, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 {
			return nil, errors.New("truncated list")
		}
		for given := range strings.SplitSeq(string(names), "\x00") {
			var meta string
			meta, lines, ok = cutLine(lines, given)
			if !ok { // removed meanwhile
				continue
			}
			info, err := parseInfo(strings.TrimPrefix(given, "./"), meta)
			if err != nil {
				return nil, err
			}
			entries = append(entries, fs.FileInfoToDirEntry(info))
		}
		out = next
	}
	return entries, nil
}

// cutLine returns the text before the name in the first line, if that line ends
// with the name, which may contain newlines.
func cutLine(lines []byte, name string) (meta string, rest []byte, ok bool) {
	i := bytes.Index(lines, []byte(" ./"))
	if i < 0 || !bytes.HasPrefix(lines[i+1:], []byte(name+"\n")) {
		return "", lines, false
	}
	return string(lines[:i]), lines[i+len(name)+2:], true
}

// Write implements [core.FS]: it writes a new file in the same directory and
// renames it over the old one. Content of unknown length is read in full first,
// so that a partial write is detected.
func (f files) Write(ctx context.Context, name string, content io.Reader, mode fs.FileMode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, err := gather(ctx, content)
	if err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	defer whole.close()
	perm := ""
	if mode != 0 {
		perm = unixMode(mode)
	}
	temp := ".agent-" + rand.Text() + ".tmp"
	_, err = f.run(ctx, "write", name, writeScript, whole, perm, strconv.FormatInt(whole.size, 10), temp)
	return err
}

// Rename implements [core.FS]. A file at the new path is replaced.
func (f files) Rename(ctx context.Context, from, to string) error {
	src, err := f.env.abs(from)
	if err != nil {
		return err
	}
	dst, err := f.env.abs(to)
	if err != nil {
		return err
	}
	if f.exact != "" && (src != from || dst != to) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: errChanged}
	}
	_, err = f.env.script(ctx, renameScript, nil, append([]string{f.exact, src, dst}, f.env.info.Roots...)...)
	if err != nil && ctx.Err() == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return err
}

// Remove implements [core.FS].
func (f files) Remove(ctx context.Context, name string) error {
	_, err := f.run(ctx, "remove", name, removeScript, nil, f.env.info.Roots...)
	return err
}

// unixMode returns the permission bits of a mode in the form for chmod.
func unixMode(mode fs.FileMode) string {
	bits := uint32(mode.Perm())
	for _, special := range specialBits {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

var specialBits = []struct {
	mode fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}
