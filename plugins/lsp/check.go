package lsp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// File is a file that a server is asked about.
type File struct {
	Path string `json:"path"` // absolute
	// Text is what is in it, where that differs from the disk, such as in an editor;
	// nil = what is on disk.
	Text *string `json:"text,omitempty"`
}

// Check is a request for the problems of files that were changed.
type Check struct {
	Files  []File `json:"files,omitempty"`
	WaitMS int    `json:"wait_ms,omitempty"` // at most
}

// Report is what is new since the last report for the session.
type Report struct {
	Text    string `json:"text,omitempty"` // for the model; empty if there is nothing
	Pending bool   `json:"pending"`        // more will be known later
}

// session is what one session was told.
type session struct {
	mu       sync.Mutex
	pending  map[string]*edited
	reported map[string]string // by file
	clients  map[*client]int   // up to where its messages were looked at
	used     time.Time
}

// edited is a file whose problems are not known yet.
type edited struct {
	file           File
	slot           *slot
	since          time.Time
	client         *client // that was told of it
	version, place int
}

const (
	pendingFor  = 30 * time.Second // until problems are no longer waited for
	maxSessions = 100
	others      = 30 * time.Millisecond // for the problems of files that use an edited one
	maxLines    = 30                    // of a report
	maxPerFile  = 15
	maxMessage  = 300 // characters
)

// session returns what a session was told.
func (s *servers) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sessions[id]
	if at == nil {
		if len(s.sessions) >= maxSessions {
			oldest := ""
			for id, other := range s.sessions {
				if oldest == "" || other.used.Before(s.sessions[oldest].used) {
					oldest = id
				}
			}
			delete(s.sessions, oldest)
		}
		at = &session{pending: map[string]*edited{}, reported: map[string]string{}, clients: map[*client]int{}}
		s.sessions[id] = at
	}
	at.used = time.Now()
	return at
}

// check tells the servers of changed files, waits a moment for their problems, and
// reports what is known. What is not comes with a later check.
func (s *servers) check(ctx context.Context, id, dir string, in Check) Report {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.WaitMS)*time.Millisecond)
	defer cancel()
	at := s.session(id)
	at.mu.Lock()
	defer at.mu.Unlock()
	for _, f := range in.Files {
		slot, err := s.slotOf(f.Path)
		if err != nil {
			continue // no server is for it
		}
		at.pending[f.Path] = &edited{file: f, slot: slot, since: time.Now()}
	}
	done := map[string]*client{}
	for {
		news := s.changed()
		wait := at.look(done)
		if len(at.pending) == 0 || !sleep(ctx, news, wait) {
			break
		}
	}
	if len(done) > 0 {
		sleep(ctx, nil, others)
	}
	at.look(done)
	return Report{at.report(dir, done), len(at.pending) > 0}
}

// sleep waits for news, at most d unless that is 0. It reports whether ctx lasts.
func sleep(ctx context.Context, news <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-news:
	case <-timer:
	case <-ctx.Done():
		return false
	}
	return true
}

// look moves the files whose problems are known from those that are pending to done.
// It returns how long to wait for more, 0 for no certain time.
func (at *session) look(done map[string]*client) (wait time.Duration) {
	for path, e := range at.pending {
		if time.Since(e.since) > pendingFor {
			delete(at.pending, path)
			continue
		}
		c, err := e.slot.ready()
		switch {
		case err != nil:
			delete(at.pending, path) // a query says why
			continue
		case c == nil:
			continue // it starts
		case e.client != c && !at.tell(c, e):
			delete(at.pending, path)
			continue
		}
		ok, later := c.diagnosed(path, e.version, e.place)
		if ok {
			delete(at.pending, path)
			done[path] = c
		} else if later > 0 && (wait == 0 || later < wait) {
			wait = later
		}
	}
	return wait
}

// tell tells a server of a changed file. It reports whether the file has problems to
// wait for.
func (at *session) tell(c *client, e *edited) bool {
	if _, known := at.clients[c]; !known {
		at.clients[c] = 0
	}
	_, e.place = c.changedSince(0)
	e.client = c
	if _, err := os.Stat(e.file.Path); errors.Is(err, fs.ErrNotExist) && e.file.Text == nil {
		c.changed(e.file.Path)
		delete(at.reported, e.file.Path)
		return false
	}
	c.changed(e.file.Path)
	doc, err := c.open(e.file)
	if err != nil {
		return false
	}
	e.version = doc.version
	c.pull(e.file.Path, doc.version)
	return true
}

// report formats what is new: all problems of edited files, and errors in others that
// changed.
func (at *session) report(dir string, done map[string]*client) string {
	var b strings.Builder
	lines := 0
	add := func(path string, c *client, edited bool) {
		list := c.list(path, edited)
		text := problemLines(c, dir, path, list)
		was := at.reported[path]
		at.reported[path] = text
		switch {
		case text == "" && was != "" && edited:
			text = relative(dir, path) + ": no problems left\n"
		case text == was && !edited:
			return
		}
		if n := strings.Count(text, "\n"); lines < maxLines {
			b.WriteString(text)
			lines += n
		}
	}
	paths := sortedKeys(done)
	for _, path := range paths {
		add(path, done[path], true)
	}
	for c, place := range at.clients {
		select {
		case <-c.ended:
			delete(at.clients, c)
			continue
		default:
		}
		if len(done) == 0 {
			continue
		}
		changed, now := c.changedSince(place)
		at.clients[c] = now
		for _, path := range changed {
			if done[path] == nil && at.pending[path] == nil {
				add(path, c, false)
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// problemLines formats the problems of a file, a line each.
func problemLines(c *client, dir, path string, list []diagnostic) string {
	if len(list) == 0 {
		return ""
	}
	doc := c.document(path)
	var b strings.Builder
	for i, d := range list {
		if i == maxPerFile {
			fmt.Fprintf(&b, "%s: %d more\n", relative(dir, path), len(list)-i)
			break
		}
		kind := "error"
		if d.Severity == 2 {
			kind = "warning"
		}
		line, column := d.Range.Start.Line+1, d.Range.Start.Character+1
		if doc != nil {
			if at, err := offset(doc.text, doc.starts, d.Range.Start, c.caps.Encoding); err == nil {
				column = positionOf(doc.text, doc.starts, at, utf32Units).Character + 1
			}
		}
		message := []rune(strings.Join(strings.Fields(d.Message), " "))
		if len(message) > maxMessage {
			message = append(message[:maxMessage], '…')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s (%s)\n", relative(dir, path), line, column, kind, string(message), cmp.Or(d.Source, c.spec.Name))
	}
	return b.String()
}

// relative returns a path as it is shown in a directory.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}
