package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/lazy"
)

const (
	lockVersion = 1
	maxLockFile = 64 << 20 // bytes
)

// Entry is the lock file's entry of an installed bundle.
type Entry struct {
	Name      string    `json:"-"`
	Source    Source    `json:"source"`
	Installed time.Time `json:"installed"` // or updated
	Tree      string    `json:"tree"`      // see HashFiles
	Files     []File    `json:"files"`     // by path
	Consent   *Consent  `json:"consent,omitempty"`
	Sum       string    `json:"sum"` // checksum of the name and all above, hex
}

// Source is where a bundle came from.
type Source struct {
	Kind     string `json:"kind"`             // folder, archive, git …, as the caller calls it
	Location string `json:"location"`         // path or URL, without credentials
	Path     string `json:"path,omitempty"`   // of the installed folder in it, with slashes
	Ref      string `json:"ref,omitempty"`    // requested branch or tag
	Commit   string `json:"commit,omitempty"` // its commit: 40 hex digits
}

// Consent is what the user approved.
type Consent struct {
	Tree  string          `json:"tree"` // the approved files, those of no other tree
	Given time.Time       `json:"given"`
	Terms json.RawMessage `json:"terms,omitempty"` // what else was approved, in the caller's format
}

// normal returns the consent with its time in the lock file's precision.
func (c *Consent) normal() *Consent {
	if c == nil {
		return nil
	}
	return &Consent{Tree: c.Tree, Given: c.Given.UTC().Truncate(time.Second), Terms: c.Terms}
}

// Consented reports whether the user approved exactly the files of the entry.
func (e Entry) Consented() bool { return e.Consent != nil && e.Consent.Tree == e.Tree }

// EditedError is an entry of a lock file that was edited. It is not used.
type EditedError struct {
	Name string
	Err  error // with file, line and column
}

// Error implements error.
func (e *EditedError) Error() string { return e.Err.Error() }

// Unwrap returns the error with the position.
func (e *EditedError) Unwrap() error { return e.Err }

// lockFile is the JSON of a lock file, with entries sorted by name.
type lockFile struct {
	Version int              `json:"version"`
	Entries map[string]Entry `json:"entries"`
}

// sum returns the checksum of an entry.
func (e Entry) sum() (string, error) {
	e.Sum = ""
	data, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("bundle: entry %q: %w", e.Name, err)
	}
	buf := binary.BigEndian.AppendUint64([]byte("agent lock entry 1\n"), uint64(len(e.Name)))
	sum := sha256.Sum256(append(append(buf, e.Name...), data...))
	return hex.EncodeToString(sum[:]), nil
}

var commitForm = lazy.Regexp(`^[0-9a-f]{40}$`)

// check validates an entry before it is written.
func (e Entry) check() error {
	switch {
	case e.Source.Kind == "" || e.Source.Location == "":
		return errors.New("bundle: an entry needs a source with a kind and a location")
	case e.Source.Commit != "" && !commitForm().MatchString(e.Source.Commit):
		return fmt.Errorf("bundle: commit %q of %s: expected 40 hexadecimal digits", e.Source.Commit, e.Source.Location)
	case e.Consent != nil && e.Consent.Tree != e.Tree:
		return fmt.Errorf("bundle: the consent to %q is for other files", e.Name)
	case !utf8.ValidString(e.Source.Kind + e.Source.Location + e.Source.Path + e.Source.Ref):
		return fmt.Errorf("bundle: the source of %q is not valid UTF-8", e.Name)
	}
	if e.Consent != nil && e.Consent.Terms != nil {
		if _, err := jsonpos.Parse("terms", e.Consent.Terms); err != nil {
			return fmt.Errorf("bundle: the consent to %q: %w", e.Name, err)
		}
	}
	return nil
}

// readLock reads the lock file. Edited entries are included, and listed as
// EditedErrors; err is about the file as a whole. A file that is as it was
// written is decoded once, and again when its bytes change.
func (s *Store) readLock() (file lockFile, edited []*EditedError, err error) {
	data, err := readRegular(s.LockFile(), maxLockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return lockFile{Version: lockVersion, Entries: map[string]Entry{}}, nil, nil
	}
	if err != nil {
		return lockFile{}, nil, fmt.Errorf("bundle: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil || !bytes.Equal(data, s.read) {
		if file, ok := decodeIntact(data); ok {
			s.read, s.file = data, file
		} else {
			return s.explainLock(data)
		}
	}
	return lockFile{s.file.Version, maps.Clone(s.file.Entries)}, nil, nil
}

// decodeIntact decodes a lock file if all of its entries are as they were
// written.
func decodeIntact(data []byte) (file lockFile, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if dec.Decode(&file) != nil || file.Version != lockVersion || file.Entries == nil {
		return lockFile{}, false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return lockFile{}, false
	}
	for name, entry := range file.Entries {
		entry.Name = name
		file.Entries[name] = entry
		if !entry.intact() {
			return lockFile{}, false
		}
	}
	return file, true
}

// intact reports whether an entry is as it was written.
func (e Entry) intact() bool {
	sum, err := e.sum()
	return err == nil && sum == e.Sum && HashFiles(e.Files) == e.Tree && checkName(e.Name) == nil
}

// explainLock decodes a lock file of which some part was edited, and says which,
// and where.
func (s *Store) explainLock(data []byte) (file lockFile, edited []*EditedError, err error) {
	path := s.LockFile()
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err == nil && head.Version > lockVersion {
		return file, nil, fmt.Errorf("%s has the unknown version %d: update agent", path, head.Version)
	}
	doc, err := jsonpos.Parse(path, data)
	if err == nil {
		err = doc.Decode(&file)
	}
	if err != nil {
		return file, nil, fmt.Errorf("%w; restore the file, or remove it and reinstall what it lists", err)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Entries)) {
		entry := file.Entries[name]
		entry.Name = name
		file.Entries[name] = entry
		if !entry.intact() {
			edited = append(edited, &EditedError{name, doc.Errorf("/entries/"+name,
				"undo the change, or reinstall it", "the entry of %q was edited", name)})
		}
	}
	return file, edited, nil
}

// readRegular reads a regular file of at most so many bytes.
func readRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return os.ReadFile(path)
}

// writeLock replaces the lock file atomically.
func (s *Store) writeLock(file lockFile) error {
	file.Version = lockVersion
	data, err := encode(file)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.LockFile(), data, 0o644)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}
