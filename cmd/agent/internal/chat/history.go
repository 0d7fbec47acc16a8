package chat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// maxHistory is how many entries the interactive session remembers.
const maxHistory = 1000

// history is the file of inputs in interactive sessions: one JSON string per line,
// since inputs may have several lines.
type history struct{ path string }

// load returns the entries, oldest first, without duplicates. Invalid lines are
// skipped.
func (h history) load() []string {
	f, err := os.Open(h.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var entries []string
	lines := bufio.NewReader(f)
	for err == nil {
		var line []byte
		line, err = lines.ReadBytes('\n')
		var e string
		if json.Unmarshal(line, &e) != nil || e == "" {
			continue
		}
		if i := slices.Index(entries, e); i >= 0 {
			entries = slices.Delete(entries, i, i+1)
		}
		entries = append(entries, e)
	}
	return entries[max(0, len(entries)-maxHistory):]
}

// add appends an entry. A line that was written only in part stays one line.
func (h history) add(entry string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	line, err := json.Marshal(entry)
	if err == nil {
		if info, serr := f.Stat(); serr == nil && info.Size() > 0 {
			last := []byte{0}
			if _, rerr := f.ReadAt(last, info.Size()-1); rerr == nil && last[0] != '\n' {
				line = append([]byte{'\n'}, line...)
			}
		}
		_, err = f.Write(append(line, '\n'))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}
