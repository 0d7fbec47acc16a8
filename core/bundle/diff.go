package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// ChangeKind is the kind of a change of a file.
type ChangeKind string

// The kinds of change.
const (
	Added    ChangeKind = "added"
	Removed  ChangeKind = "removed"
	Modified ChangeKind = "modified"
	Mode     ChangeKind = "mode" // only whether it is executable
)

// Change is the difference of a file between two trees.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Old  *File      `json:"old,omitempty"` // nil if it is added
	New  *File      `json:"new,omitempty"` // nil if it is removed
}

// Compare returns the changes between two trees, by path.
func Compare(before, after Tree) []Change {
	old := make(map[string]File, len(before.Files))
	for _, f := range before.Files {
		old[f.Path] = f
	}
	var list []Change
	for _, f := range after.Files {
		was, known := old[f.Path]
		delete(old, f.Path)
		switch {
		case !known:
			list = append(list, Change{f.Path, Added, nil, &f})
		case was.SHA256 != f.SHA256:
			list = append(list, Change{f.Path, Modified, &was, &f})
		case was.Executable != f.Executable:
			list = append(list, Change{f.Path, Mode, &was, &f})
		}
	}
	for _, f := range old {
		list = append(list, Change{f.Path, Removed, &f, nil})
	}
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// maxDiff is the size of the largest file of which [Diff] shows changes.
const maxDiff = 64 << 10

// Diff returns a change of a file as a unified diff, between the folder that it
// was in and the one that it is in. It is "" for files that are not text, or
// larger than 64 KiB. The text is not trusted: remove control characters before
// showing it on a terminal.
func Diff(ctx context.Context, before, after string, c Change) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	old, oldText, err := readText(before, c.Old)
	if err != nil {
		return "", err
	}
	now, nowText, err := readText(after, c.New)
	if err != nil || !oldText || !nowText {
		return "", err
	}
	return string(diff.Diff("a/"+c.Path, old, "b/"+c.Path, now)), nil
}

// readText returns the content of a file, nil without one, and whether it is
// text that can be shown.
func readText(dir string, f *File) (data []byte, text bool, err error) {
	if f == nil {
		return nil, true, nil
	}
	if f.Size > maxDiff {
		return nil, false, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false, fmt.Errorf("bundle: %w", err)
	}
	defer root.Close()
	if data, err = root.ReadFile(filepath.FromSlash(f.Path)); err != nil {
		return nil, false, fmt.Errorf("bundle: %w", err)
	}
	return data, utf8.Valid(data) && !bytes.ContainsRune(data, 0), nil
}
