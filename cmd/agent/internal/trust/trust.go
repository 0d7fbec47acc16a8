package trust

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/core/jsonpos"
)

const version = 1

// covered returns the files below a directory that trust covers, besides skills:
// settings, hooks, instructions for a model, and the manifests of plugins, which contain
// the checksums of their files.
func covered(dir string) []string {
	names := []string{".agent/settings.json"}
	for _, sub := range []string{".agent/agents", ".agent/commands", ".claude/agents", ".claude/commands"} {
		top := os.DirFS(filepath.Join(dir, filepath.FromSlash(path.Dir(sub))))
		_ = fs.WalkDir(top, path.Base(sub), func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(name, ".md") {
				names = append(names, path.Dir(sub)+"/"+name)
			}
			return nil // nothing is used of what cannot be read
		})
	}
	names = append(names, hookFiles(dir)...)
	plugins, err := os.ReadDir(filepath.Join(dir, ".agent", "plugins"))
	if err != nil {
		return names
	}
	for _, e := range plugins {
		if e.IsDir() {
			names = append(names, ".agent/plugins/"+e.Name()+"/plugin.json")
		}
	}
	return names
}

// hookFiles returns the settings of Claude Code with hooks, and the files in the
// directories that hooks are kept in.
func hookFiles(dir string) (names []string) {
	for _, name := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		if data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil && bytes.Contains(data, []byte(`"hooks"`)) {
			names = append(names, name)
		}
	}
	for _, sub := range []string{".agent/hooks", ".claude/hooks"} {
		top := os.DirFS(filepath.Join(dir, filepath.FromSlash(path.Dir(sub))))
		_ = fs.WalkDir(top, path.Base(sub), func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				names = append(names, path.Dir(sub)+"/"+name)
			}
			return nil // trust in what cannot be read fails later
		})
	}
	return names
}

// Store is the file of trusted directories. It is safe for concurrent use, by
// several processes too.
type Store struct{ home, path string }

// Open returns the store in the agent's directory, which need not exist.
func Open(home string) *Store { return &Store{home, filepath.Join(home, "trust.json")} }

// Status is the trust status of a directory.
type Status string

// The statuses.
const (
	Nothing   Status = "nothing"   // it has no files to trust, and the user did not trust it
	Untrusted Status = "untrusted" // the user did not trust it
	Changed   Status = "changed"   // its files changed since the user trusted it
	Trusted   Status = "trusted"
)

// State describes a directory's trust.
type State struct {
	Dir     string
	Status  Status
	Files   []string          // existing files that trust covers, relative to Dir, with slashes
	Sums    map[string]string // SHA-256 of each of Files, hex
	Since   time.Time         // when the user trusted it; zero if never
	Changes []string          // differences since then, such as ".agent/settings.json has changed"
}

// Check returns the state of a directory, whose path is absolute and has no
// symbolic links. If a file cannot be read, it returns an error, and the
// directory must not be trusted.
func (s *Store) Check(dir string) (State, error) {
	found, err := s.hash(dir)
	if err != nil {
		return State{Dir: dir, Status: Untrusted}, err
	}
	state := State{Dir: dir, Status: Untrusted, Files: slices.Sorted(maps.Keys(found)), Sums: found}
	record, err := s.read()
	if err != nil {
		return state, err
	}
	entry, ok := record.Directories[dir]
	if len(found) == 0 && (!ok || len(entry.Files) > 0 || !isDir(dir)) {
		state.Status = Nothing
		return state, nil
	}
	if !ok {
		return state, nil
	}
	state.Since, state.Changes = entry.Time, entry.changes(found)
	if state.Status = Trusted; len(state.Changes) > 0 {
		state.Status = Changed
	}
	return state, nil
}

// Trust records that the user trusts a directory with its current files, if any.
func (s *Store) Trust(ctx context.Context, dir string, now time.Time) (State, error) {
	var state State
	err := s.update(ctx, func(record *record) error {
		found, err := s.hash(dir)
		if err != nil {
			return err
		}
		state = State{Dir: dir, Status: Trusted, Files: slices.Sorted(maps.Keys(found)), Sums: found, Since: now}
		record.Directories[dir] = entry{Time: now.UTC().Truncate(time.Second), Files: found}
		return nil
	})
	return state, err
}

// Revoke revokes trust in a directory and reports whether there was any.
func (s *Store) Revoke(ctx context.Context, dir string) (bool, error) {
	found := false
	err := s.update(ctx, func(record *record) error {
		_, found = record.Directories[dir]
		delete(record.Directories, dir)
		return nil
	})
	return found, err
}

// List returns the states of all directories that the user trusted, sorted. One
// that was deleted has the status Nothing.
func (s *Store) List() ([]State, error) {
	record, err := s.read()
	if err != nil {
		return nil, err
	}
	var list []State
	for _, dir := range slices.Sorted(maps.Keys(record.Directories)) {
		state, err := s.Check(dir)
		if err != nil {
			state.Changes = []string{err.Error()}
		}
		state.Since = record.Directories[dir].Time
		list = append(list, state)
	}
	return list, nil
}

// record is the JSON of the store's file.
type record struct {
	Version     int                          `json:"version"`
	Directories map[string]entry             `json:"directories"`       // by path
	Servers     map[string]map[string]string `json:"servers,omitempty"` // hashes of MCP servers, by directory and name
}

type entry struct {
	Time  time.Time         `json:"time"`
	Files map[string]string `json:"files"` // SHA-256 by name, hex
}

// changes describes how the found files differ from the trusted ones.
func (e entry) changes(found map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		switch was, ok := e.Files[name]; {
		case !ok:
			list = append(list, name+" is new")
		case was != found[name]:
			list = append(list, name+" has changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if _, ok := found[name]; !ok {
			list = append(list, name+" was removed")
		}
	}
	return list
}

// hash returns the SHA-256 of a directory's covered files. The user's own files
// do not count, even if the directory is their home.
func (s *Store) hash(dir string) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range covered(dir) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if sameFile(path, filepath.Join(s.home, filepath.FromSlash(strings.TrimPrefix(name, ".agent/")))) {
			continue
		}
		data, err := privatefile.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("trust: %w", err)
		}
		sum := sha256.Sum256(data)
		found[name] = hex.EncodeToString(sum[:])
	}
	if err := s.addSkills(dir, found); err != nil {
		return nil, err
	}
	return found, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func (s *Store) read() (*record, error) {
	data, err := privatefile.Read(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("trust: %w", err)
	}
	return s.parse(data)
}

// parse parses the file strictly, so that an update cannot lose anything.
func (s *Store) parse(data []byte) (*record, error) {
	r := &record{Version: version, Directories: map[string]entry{}}
	if data == nil {
		return r, nil
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err == nil && head.Version > version {
		return nil, fmt.Errorf("%s: unsupported version %d: update agent", s.path, head.Version)
	}
	if err := jsonpos.Decode(s.path, data, r); err != nil {
		return nil, fmt.Errorf("%w; repair the file, or remove it to trust nothing", err)
	}
	if r.Directories == nil {
		r.Directories = map[string]entry{}
	}
	return r, nil
}

func (s *Store) update(ctx context.Context, change func(*record) error) error {
	return privatefile.Update(ctx, s.path, s.path+".lock", func(old []byte) ([]byte, error) {
		r, err := s.parse(old)
		if err != nil {
			return nil, err
		}
		before, servers := maps.Clone(r.Directories), fmt.Sprint(r.Servers)
		if err := change(r); err != nil {
			return nil, err
		}
		if servers == fmt.Sprint(r.Servers) && maps.EqualFunc(before, r.Directories, func(a, b entry) bool { return a.Time.Equal(b.Time) && maps.Equal(a.Files, b.Files) }) {
			return old, nil
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return nil, fmt.Errorf("trust: %w", err)
		}
		return b.Bytes(), nil
	})
}

// Advice tells what to do about an untrusted directory and why; it is empty for
// other states.
func (s State) Advice() string {
	switch s.Status {
	case Untrusted:
		return "read it, then run 'agent trust' to trust the directory"
	case Changed:
		return fmt.Sprintf("%s since you trusted it on %s: review it, then run 'agent trust' to trust it again",
			strings.Join(s.Changes, ", "), s.Since.Local().Format(time.DateTime))
	}
	return ""
}
