package lsp

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// watchedFiles are the files of a project as a server knows them. Servers rely on
// being told what changes in files that are not open.
type watchedFiles struct {
	seen map[string]stamp
	last time.Time
}

type stamp struct {
	size     int64
	modified time.Time
}

const (
	maxWatched = 50_000
	watchEvery = 200 * time.Millisecond
)

// The kinds of changes, as in the protocol.
const (
	fileCreated = iota + 1
	fileChanged
	fileDeleted
)

type fileEvent struct {
	URI  string `json:"uri"`
	Type int    `json:"type"`
}

// projectFiles are files besides the sources that servers read.
var projectFiles = []string{"go.sum", "Cargo.lock", "tsconfig.json", "jsconfig.json", "package.json", "compile_flags.txt", "pyrightconfig.json", "pyproject.toml"}

func (c *client) watches(path string) bool {
	name := filepath.Base(path)
	return c.spec.Extensions[strings.ToLower(filepath.Ext(name))] != "" || slices.Contains(c.spec.Markers, name) || slices.Contains(projectFiles, name)
}

// rescan tells the server what changed in the project, by anyone.
func (c *client) rescan() {
	c.syncing.Lock()
	if time.Since(c.files.last) < watchEvery {
		c.syncing.Unlock()
		return
	}
	c.mu.Lock()
	folders := slices.Clone(c.folders)
	c.mu.Unlock()
	now := map[string]stamp{}
	for _, dir := range folders {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // not readable
			case len(now) >= maxWatched:
				return filepath.SkipAll
			case d.IsDir() && path != dir && skipped(d.Name()):
				return filepath.SkipDir
			case d.Type().IsRegular() && c.watches(path):
				if info, err := d.Info(); err == nil {
					now[path] = stamp{info.Size(), info.ModTime()}
				}
			}
			return nil
		})
	}
	var events []fileEvent
	if c.files.seen != nil {
		for path, s := range now {
			if old, ok := c.files.seen[path]; !ok {
				events = append(events, fileEvent{uriOf(path), fileCreated})
			} else if old != s {
				events = append(events, fileEvent{uriOf(path), fileChanged})
			}
		}
		for path := range c.files.seen {
			if _, ok := now[path]; !ok {
				events = append(events, fileEvent{uriOf(path), fileDeleted})
			}
		}
	}
	c.files.seen, c.files.last = now, time.Now()
	c.syncing.Unlock()
	c.tell(events)
}

// changed tells the server of one file that was changed.
func (c *client) changed(path string) {
	info, err := os.Stat(path)
	c.syncing.Lock()
	_, known := c.files.seen[path]
	e := fileEvent{uriOf(path), fileChanged}
	switch {
	case err != nil:
		e.Type = fileDeleted
		delete(c.files.seen, path)
	case !known:
		e.Type = fileCreated
	}
	if err == nil && c.files.seen != nil {
		c.files.seen[path] = stamp{info.Size(), info.ModTime()}
	}
	c.syncing.Unlock()
	c.tell([]fileEvent{e})
}

// tell sends changes, and makes open documents what their files are.
func (c *client) tell(events []fileEvent) {
	for _, e := range events {
		path := pathOf(e.URI)
		doc := c.document(path)
		switch {
		case doc == nil:
		case e.Type == fileDeleted:
			c.close(path)
		default:
			_, _ = c.open(File{Path: path}) // one that cannot be read stays as it was
		}
	}
	if len(events) > 0 {
		_ = c.conn.Notify("workspace/didChangeWatchedFiles", map[string]any{"changes": events})
	}
}
