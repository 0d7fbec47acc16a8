package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/patch"
	"github.com/seed-009c0928/agent/core/preview"
)

// patcher applies a patch: plan checks all sections, then write changes files.
// Files are compared by resolved path, so that a file with two names is one.
type patcher struct {
	env       core.Environment
	changes   []*change
	originals map[string]original // by resolved path: what is there before the patch
	failed    string              // the path that could not be written
}

// original is the state of a path before the patch.
type original struct {
	exists bool
	large  bool // too large to be kept in memory
	data   []byte
	mode   fs.FileMode
}

// change is the planned change of one file.
type change struct {
	path, key   string // as in the patch, and resolved
	to, toKey   string // where it will be
	after       []byte
	isNew, gone bool
	line        int // of its section
	notes       []string
}

func (c *change) moved() bool { return c.key != c.toKey }

// from returns the change of the file that was at a path before the patch.
func (w *patcher) from(key string) *change {
	for _, c := range w.changes {
		if c.key == key && !c.isNew {
			return c
		}
	}
	return nil
}

// at returns the change whose file will be at a path.
func (w *patcher) at(key string) *change {
	for _, c := range w.changes {
		if c.toKey == key && !c.gone {
			return c
		}
	}
	return nil
}

// plan checks and records one section; the result is a failure.
func (w *patcher) plan(ctx context.Context, f patch.File) *core.Result {
	key, refusal := w.resolve(ctx, f.Path)
	if refusal != nil {
		return refusal
	}
	switch f.Op {
	case patch.Add:
		return w.planAdd(ctx, f, key)
	case patch.Delete:
		if c := w.at(key); c != nil {
			return clash("%s is changed at line %d of the patch and deleted at line %d: leave out one of them.", f.Path, c.line, f.Line)
		}
		c, refusal := w.take(ctx, f, key, true)
		if refusal == nil {
			c.gone = true
		}
		return refusal
	}
	return w.planUpdate(ctx, f, key)
}

func (w *patcher) resolve(ctx context.Context, at string) (string, *core.Result) {
	to, err := w.env.Resolve(ctx, at)
	if err != nil {
		r := failure("patch", at, err)
		return "", &r
	}
	return to.Path, nil
}

func clash(format string, args ...any) *core.Result {
	r := core.Failf(core.CodeValidation, format, args...)
	return &r
}

// planAdd plans a new file, which may replace one.
func (w *patcher) planAdd(ctx context.Context, f patch.File, key string) *core.Result {
	if c := w.at(key); c != nil {
		return clash("%s has sections at lines %d and %d of the patch: put all changes of a file into one section.", f.Path, c.line, f.Line)
	}
	old, refusal := w.load(ctx, f.Path, key)
	if refusal != nil {
		return refusal
	}
	if refusal := omission(f.Path, f.Content, string(utf8Text(old.data))); refusal != nil {
		return refusal
	}
	c := &change{path: f.Path, key: key, to: f.Path, toKey: key, after: []byte(f.Content), isNew: true, line: f.Line}
	if w.replaces(key) {
		var err error
		if c.after, c.notes, err = keepStyle(old.data, f.Content); err != nil {
			return clash("%s cannot be written: %v.", f.Path, err)
		}
	}
	w.changes = append(w.changes, c)
	return nil
}

// replaces reports whether a file is at a path that no section takes away.
func (w *patcher) replaces(key string) bool { return w.originals[key].exists && w.from(key) == nil }

// take plans something for a file that exists before the patch.
func (w *patcher) take(ctx context.Context, f patch.File, key string, removed bool) (*change, *core.Result) {
	if c := w.from(key); c != nil {
		what := "moved"
		if c.gone {
			what = "deleted"
		}
		return nil, clash("%s is %s at line %d of the patch, and used again at line %d.", f.Path, what, c.line, f.Line)
	}
	if refusal := checkFile(ctx, w.env, f.Path); refusal != nil {
		return nil, refusal
	}
	if removed && key != absolute(w.env.Info(), f.Path) { // the link's target would be removed
		r := core.Failf(core.CodeIO, "%s goes through a symbolic link to %s: name the file itself.", f.Path, key)
		return nil, &r
	}
	old, refusal := w.load(ctx, f.Path, key)
	if refusal != nil {
		return nil, refusal
	}
	c := &change{path: f.Path, key: key, to: f.Path, toKey: key, after: old.data, line: f.Line}
	w.changes = append(w.changes, c)
	return c, nil
}

func (w *patcher) planUpdate(ctx context.Context, f patch.File, key string) *core.Result {
	toKey := key
	var refusal *core.Result
	if f.MoveTo != "" {
		if toKey, refusal = w.resolve(ctx, f.MoveTo); refusal != nil {
			return refusal
		}
	}
	c := w.at(key)
	if c != nil && c.key != key && f.MoveTo != "" && w.replaces(key) {
		c = nil // the file that makes room for a moved one, as when two are swapped
	}
	if c == nil {
		if c, refusal = w.take(ctx, f, key, toKey != key); refusal != nil {
			return refusal
		}
	}
	if len(f.Hunks) > 0 {
		if refusal := w.apply(f, c); refusal != nil {
			return refusal
		}
	}
	if toKey == key {
		return nil
	}
	if other := w.at(toKey); other != nil {
		return clash("%s has sections at lines %d and %d of the patch, one of which would be lost.", f.MoveTo, other.line, f.Line)
	}
	if _, refusal := w.load(ctx, f.MoveTo, toKey); refusal != nil {
		return refusal
	}
	c.to, c.toKey = f.MoveTo, toKey
	return nil
}

// apply applies the hunks of a section to the planned content of a file.
func (w *patcher) apply(f patch.File, c *change) *core.Result {
	if w.originals[c.key].large && !c.isNew {
		return tooLarge(f.Path)
	}
	doc, refusal := newDocument(f.Path, c.after)
	if refusal != nil {
		return refusal
	}
	for _, h := range f.Hunks {
		var added strings.Builder
		for _, l := range h.Lines {
			if l.Kind == '+' {
				added.WriteString(l.Text + "\n")
			}
		}
		if refusal := omission(f.Path, added.String(), doc.text); refusal != nil {
			return refusal
		}
	}
	after, notes, err := f.Apply(doc.text)
	if err != nil {
		return clash("%v\nRead the file and write a new patch.", err)
	}
	if c.after, err = doc.encode(after); err != nil {
		return clash("%s cannot be written: %v.", f.Path, err)
	}
	c.notes = append(c.notes, doc.notes()...)
	for _, n := range notes {
		c.notes = append(c.notes, fmt.Sprintf("the change at line %d of the patch: %s; check the result", n.Line, n))
	}
	return nil
}

// load records what is at a path. The failure is that of a directory or of
// something that is no file.
func (w *patcher) load(ctx context.Context, at, key string) (original, *core.Result) {
	if o, ok := w.originals[key]; ok {
		return o, nil
	}
	info, err := w.env.Files().Stat(ctx, at)
	switch {
	case errors.Is(err, fs.ErrNotExist), w.belowRemoved(key):
		w.originals[key] = original{}
		return original{}, nil
	case err != nil:
		r := failure("patch", at, err)
		return original{}, &r
	}
	if refusal := regular(at, info); refusal != nil {
		return original{}, refusal
	}
	o := original{exists: true, mode: info.Mode().Perm(), large: info.Size() > maxEditSize}
	if !o.large {
		if o.data, err = core.ReadFile(ctx, w.env.Files(), at, maxEditSize); err != nil {
			r := failure("patch", at, err)
			return original{}, &r
		}
	}
	w.originals[key] = o
	return o, nil
}

// belowRemoved reports whether a path is below that of a file which the patch
// removes.
func (w *patcher) belowRemoved(key string) bool {
	return slices.ContainsFunc(w.changes, func(c *change) bool {
		rest, below := strings.CutPrefix(key, c.key)
		return below && rest != "" && (rest[0] == '/' || rest[0] == '\\') && (c.gone || c.moved())
	})
}

// absolute joins a path to the working directory without resolving links.
func absolute(info core.EnvInfo, at string) string {
	if info.OS == "windows" {
		if !filepath.IsAbs(at) {
			at = filepath.Join(info.Dir, at)
		}
		return filepath.Clean(at)
	}
	if !path.IsAbs(at) {
		at = path.Join(info.Dir, at)
	}
	return path.Clean(at)
}

// report describes the changes, for the model.
func (w *patcher) report() []string {
	var lines []string
	for _, c := range w.changes {
		line := "M " + c.path
		switch {
		case c.gone && w.at(c.key) != nil:
			continue // replaced by a file that is reported
		case c.gone:
			line = "D " + c.path
		case c.isNew && !c.moved():
			line = "A " + c.path
		case c.isNew:
			line = "A " + c.to
		case c.moved():
			line = "R " + c.path + " → " + c.to
		}
		from := w.from(c.toKey)
		if replaced := from == nil || from.gone; !c.gone && replaced && (c.isNew || c.moved()) && w.originals[c.toKey].exists {
			line += " (replaced the existing file)"
		}
		for _, n := range c.notes {
			line += "\n  (" + n + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// meta returns the changes of all files for interfaces.
func (w *patcher) meta() map[string]json.RawMessage {
	var list []preview.Change
	for _, c := range w.changes {
		before, after := w.originals[c.key].data, c.after
		if c.gone {
			after = nil
		}
		if _, _, _, ok := sniff(before); !ok || bytes.Equal(before, after) {
			continue
		}
		list = append(list, preview.Change{Path: c.to, Before: before, After: after})
	}
	return preview.Meta(list...)
}

// targets returns the changes that write a file, new ones last, because removing
// them again may not be permitted.
func (w *patcher) targets() []*change {
	var list []*change
	for _, c := range w.changes {
		if !c.gone && !(w.originals[c.key].large && !c.isNew) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *change) int {
		switch {
		case w.originals[a.toKey].exists == w.originals[b.toKey].exists:
			return 0
		case w.originals[b.toKey].exists:
			return 1
		}
		return -1
	})
	return list
}
