package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shortID is the least length of shortened ids.
const shortID = 8

// ErrAmbiguous is a prefix of several sessions' ids; see [AmbiguousError].
var ErrAmbiguous = errors.New("ambiguous session id")

// AmbiguousError is an [ErrAmbiguous].
type AmbiguousError struct {
	Prefix string
	IDs    []string // in order
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	const most = 8
	ids, more := e.IDs, ""
	if n := len(ids); n > most {
		ids, more = ids[:most], fmt.Sprintf(" and %d more", n-most)
	}
	return fmt.Sprintf("%q matches several sessions: %s%s; use a longer prefix", e.Prefix, strings.Join(ids, ", "), more)
}

// Is makes errors.Is(err, ErrAmbiguous) true.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// missingError is an fs.ErrNotExist with a message about sessions.
type missingError struct{ prefix, dir string }

// Error implements error.
func (e *missingError) Error() string {
	return fmt.Sprintf("there is no session %q in %s", e.prefix, e.dir)
}

// Is makes errors.Is(err, fs.ErrNotExist) true.
func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// Find returns the id of the session in dir whose id equals the prefix, or is
// the only one that begins with it. The error is an fs.ErrNotExist if there is
// none, an [ErrAmbiguous] if there are several, an fs.ErrInvalid if the prefix
// is not a valid id.
func Find(dir, prefix string) (string, error) {
	if err := CheckID(prefix); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, prefix+fileSuffix)); err == nil {
		return prefix, nil
	}
	files, err := logs(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, f := range files {
		if strings.HasPrefix(f.id, prefix) {
			found = append(found, f.id)
		}
	}
	switch len(found) {
	case 0:
		return "", &missingError{prefix, dir}
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	return "", &AmbiguousError{Prefix: prefix, IDs: found}
}

// shorten sets the short id of each log.
func shorten(files []logInfo) {
	sorted := make([]*logInfo, len(files))
	for i := range files {
		sorted[i] = &files[i]
	}
	slices.SortFunc(sorted, func(a, b *logInfo) int { return strings.Compare(a.id, b.id) })
	for i, f := range sorted {
		n := shortID
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < len(sorted) {
				n = max(n, common(f.id, sorted[j].id)+1)
			}
		}
		if n < len(f.id) && f.id[n-1] == '-' {
			n++
		}
		f.short = f.id[:min(n, len(f.id))]
	}
}

// common returns the length of the common prefix.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
