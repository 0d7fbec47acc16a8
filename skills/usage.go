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

// Usage records in a file when skills were used, to break ties between equally
// good matches. The file is read on first use and written by Flush. A nil Usage
// records nothing. It is safe for concurrent use.
type Usage struct {
	file string

	mu    sync.Mutex
	read  bool
	dirty bool
	used  map[string]Used
}

// Used is the usage of one skill.
type Used struct {
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
}

// NewUsage returns the usage stored in a file.
func NewUsage(file string) *Usage { return &Usage{file: file, used: map[string]Used{}} }

// Last returns when a skill was last used; the zero time means never.
func (u *Usage) Last(name string) time.Time { return u.Of(name).Last }

// Of returns the usage of a skill.
func (u *Usage) Of(name string) Used {
	if u == nil {
		return Used{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.load()
	return u.used[name]
}

// Note records a use of a skill.
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

// load reads the file, once. An unreadable file is replaced: it only breaks
// ties.
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

// Flush writes the changes, atomically.
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
