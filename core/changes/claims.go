package changes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// Sessions that work in the same directory tell each other which files their
// edits change, so that none counts as what a command of another one did. Each
// such call has a file with its paths, which is renamed when it has ended.
const (
	claimsDir = "agent-calls"
	claimOpen = ".open"
	claimDone = ".done"
	claimMost = 10 * time.Minute // older calls were killed
	claimKept = time.Hour
)

// claim notes the files of a call that names all that it changes. What it cannot
// write is only not told.
func (t *Tracker) claim(accesses []core.Access) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var files []string
	takes, named := t.touched(accesses)
	for i, r := range t.roots {
		if !named || len(takes[i].Paths) == 0 {
			continue
		}
		text, err := json.Marshal(takes[i].Paths)
		dir := filepath.Join(Store(t.opts.Dir, r.path), claimsDir)
		if err != nil || os.MkdirAll(dir, 0o700) != nil {
			continue
		}
		f, err := os.CreateTemp(dir, t.opts.Session+".*"+claimOpen)
		if err != nil {
			continue
		}
		_, err = f.Write(text)
		if closed := f.Close(); err == nil && closed == nil {
			files = append(files, f.Name())
		}
	}
	return func() {
		for _, name := range files {
			now := time.Now()
			if os.Chtimes(name, now, now) == nil {
				_ = os.Rename(name, strings.TrimSuffix(name, claimOpen)+claimDone)
			}
		}
	}
}

// claimed lists the paths that edits of other sessions changed in a root since a
// time.
func (t *Tracker) claimed(r *root, since time.Time) (paths []string) {
	dir := filepath.Join(Store(t.opts.Dir, r.path), claimsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		info, err := e.Info()
		if session, _, _ := strings.Cut(e.Name(), "."); err != nil || session == t.opts.Session {
			continue
		}
		name, age := filepath.Join(dir, e.Name()), time.Since(info.ModTime())
		if age > claimKept {
			_ = os.Remove(name)
			continue
		}
		if open := strings.HasSuffix(name, claimOpen); open && age > claimMost || !open && info.ModTime().Before(since) {
			continue
		}
		var list []string
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &list) == nil {
			paths = append(paths, list...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
