package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Summary describes a session in a list.
type Summary struct {
	ID      string
	Short   string // the shortest unique prefix of the ID, of at least 8 characters
	Path    string
	Size    int64     // bytes
	Created time.Time // of the first record
	Time    time.Time // of the last change
	Cwd     string    // where the session was started
	Parent  string    // of a subagent's session, the parent session
	Origin  string    // of a fork, the session that it was forked from
	Text    string    // the beginning of the first input, one line
	Moved   bool      // it continues elsewhere, see [MovedError]
}

const (
	headBytes = 1 << 20  // of a log that are read for a summary
	headChunk = 16 << 10 // that are read at a time
	headText  = 200      // characters of a summary's text
)

// List returns the sessions in dir, the last changed first. The error names the
// files that could not be read; the other summaries are returned all the same. A
// directory that does not exist holds none, and a log without a complete record
// is left out.
func List(dir string) ([]Summary, error) {
	files, err := logs(dir)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	heads := make([]Summary, len(files))
	errs := make([]error, len(files))
	parallel(len(files), func(next iter.Seq[int]) {
		lines := newLineReaderSize(nil, headChunk)
		for i := range next {
			heads[i], errs[i] = files[i].head(lines)
		}
	})
	list := heads[:0]
	var bad []error
	for i, err := range errs {
		switch {
		case err == nil:
			list = append(list, heads[i])
		case !errors.Is(err, errNothing):
			bad = append(bad, err)
		}
	}
	return list, errors.Join(bad...)
}

// parallel runs work on all processors, each of which gets its share of the numbers
// below n: most of the time is spent in system calls.
func parallel(n int, work func(next iter.Seq[int])) {
	var taken atomic.Int64
	share := func(yield func(int) bool) {
		for {
			if i := int(taken.Add(1)) - 1; i >= n || !yield(i) {
				return
			}
		}
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() { work(share) })
	}
	workers.Wait()
}

// Latest returns the session in dir that was started in the directory cwd and
// changed last, except those of subagents. The error is an fs.ErrNotExist if
// there is none. Files that cannot be read are skipped.
func Latest(dir, cwd string) (Summary, error) {
	files, err := logs(dir)
	if err != nil {
		return Summary{}, err
	}
	lines := newLineReaderSize(nil, headChunk)
	for _, f := range files {
		if s, err := f.head(lines); err == nil && s.Cwd == cwd && s.Parent == "" {
			return s, nil
		}
	}
	return Summary{}, fmt.Errorf("no session was started in %s: %w", cwd, fs.ErrNotExist)
}

// Stat returns the summary of one session in dir. The error is an
// fs.ErrNotExist if it does not exist, a [CorruptError] if its log is damaged;
// the summary then holds what could be read.
func Stat(dir, id string) (Summary, error) {
	if err := CheckID(id); err != nil {
		return Summary{}, err
	}
	path := filepath.Join(dir, id+fileSuffix)
	info, err := os.Stat(path)
	if err != nil {
		return Summary{}, fmt.Errorf("session %s: %w", id, err)
	}
	move, err := moveOf(dir, id)
	if err != nil {
		return Summary{}, err
	}
	s, err := logInfo{id: id, short: id, path: path, info: info, moved: move != nil}.head(newLineReaderSize(nil, headChunk))
	if errors.Is(err, errNothing) {
		err = nil
	}
	return s, err
}

type logInfo struct {
	id, path string
	short    string // see [Summary]
	moved    bool
	info     fs.FileInfo
}

// logs lists the logs in dir, the last changed first.
func logs(dir string) ([]logInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var files []logInfo
	moved := map[string]bool{}
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), movedSuffix); ok {
			moved[id] = true
		}
		id, ok := strings.CutSuffix(entry.Name(), fileSuffix)
		if !ok || !validID(id) || entry.IsDir() {
			continue
		}
		files = append(files, logInfo{id: id, path: filepath.Join(dir, entry.Name())})
	}
	parallel(len(files), func(next iter.Seq[int]) {
		for i := range next {
			f := &files[i]
			f.moved = moved[f.id]
			f.info, _ = os.Lstat(f.path)
		}
	})
	files = slices.DeleteFunc(files, func(f logInfo) bool { return f.info == nil }) // removed meanwhile
	slices.SortStableFunc(files, func(a, b logInfo) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	shorten(files)
	return files, nil
}

var errNothing = errors.New("the session has no records")

// head reads the beginning of a log, up to the first input, with a reader that
// it resets.
func (l logInfo) head(lines *lineReader) (Summary, error) {
	s := Summary{ID: l.id, Short: l.short, Path: l.path, Size: l.info.Size(), Time: l.info.ModTime(), Moved: l.moved}
	f, err := openPlain(l.path)
	if err != nil {
		return s, fmt.Errorf("session %s: %w", l.id, err)
	}
	defer f.Close()
	lines.reset(io.LimitReader(f, headBytes))
	for n := 1; ; n++ {
		line, err := lines.next()
		if errors.Is(err, io.EOF) && n == 1 {
			return s, errNothing
		}
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("%s:%d: %w", l.path, n, err)
		}
		if kind, ok := quickType(line); ok && n > 1 && string(kind) != "session_start" && string(kind) != "user" {
			continue
		}
		var e event.Event
		if err := e.UnmarshalJSON(line); err != nil {
			return s, &CorruptError{File: l.path, Line: n, Err: err}
		}
		if n == 1 {
			s.Created, s.Parent = e.Time, e.Parent
			if e.Session != l.id {
				s.Origin = e.Session
			}
		}
		switch body := e.Body.(type) {
		case event.SessionStart:
			s.Cwd = body.Cwd
		case event.User:
			s.Text = firstLine(body.Content)
			return s, nil
		}
	}
}

// firstLine returns the beginning of an input, which is the first text; the
// others come from context sources.
func firstLine(content model.Parts) string {
	for _, part := range content {
		if t, ok := part.(model.Text); ok {
			line, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
			line = strings.TrimSpace(line)
			if r := []rune(line); len(r) > headText {
				return string(r[:headText-1]) + "…"
			}
			return line
		}
	}
	return ""
}
