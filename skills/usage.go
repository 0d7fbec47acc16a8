package skills

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// Usage remembers in a file when skills were used, so that of two that fit
// equally well the one in use goes first. It is read when it is wanted first
// and written by Flush. A nil Usage remembers nothing. It is safe for concurrent
// use.
type Usage struct {
	file string

	mu    sync.Mutex
	read  bool
	dirty bool
	used  map[string]Used
}

// Used is how a skill was used.
type Used struct {
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
}

// NewUsage returns the usage that is kept in a file.
func NewUsage(file string) *Usage { return &Usage{file: file, used: map[string]Used{}} }

// Last tells when a skill was used last; the zero time for never.
func (u *Usage) Last(name string) time.Time { return u.Of(name).Last }

// Of tells how a skill was used.
func (u *Usage) Of(name string) Used {
	if u == nil {
		return Used{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.load()
	return u.used[name]
}

// Note notes that a skill is used.
func (u *Usage) Note(name string, now time.Time) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.load()
	u.used[name] = Used{now.UTC().Truncate(time.Second), u.used[name].Count + 1}
	u.dirty = true
}

// maxUsage bounds the file, in bytes.
const maxUsage = 1 << 20

// load reads the file, once. One that cannot be read is begun anew: it only
// breaks ties.
func (u *Usage) load() {
	if u.read {
		return
	}
	u.read = true
	data, err := os.ReadFile(u.file)
	if err != nil || len(data) > maxUsage {
		return
	}
	used := map[string]Used{}
	if json.Unmarshal(data, &used) == nil {
		u.used = used
	}
}

// Flush writes what was noted, wholly or not at all.
func (u *Usage) Flush() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.dirty {
		return nil
	}
	data, err := json.MarshalIndent(u.used, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(u.file), 0o700); err != nil {
		return fmt.Errorf("usage of skills: %w", err)
	}
	if err := atomicfile.Write(u.file, data, 0o600); err != nil {
		return fmt.Errorf("usage of skills: %w", err)
	}
	u.dirty = false
	return nil
}
