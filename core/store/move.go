package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/atomicfile"
)

const movedSuffix = ".moved" // instead of fileSuffix

// ErrMoved is a session that continues elsewhere; see [MovedError].
var ErrMoved = errors.New("session was moved")

// Move says where a session went. Its log stays, and can be read and forked, but not
// be opened.
type Move struct {
	To    string    `json:"to"` // the address of the service
	Begun time.Time `json:"begun"`
	// Done is set when the service has the session. Until then that is not known.
	Done bool `json:"done,omitempty"`
}

// MovedError is an [ErrMoved].
type MovedError struct {
	ID string
	Move
}

// Error implements error.
func (e *MovedError) Error() string {
	if !e.Done {
		return fmt.Sprintf("session %s is being moved to %s, and may be there already: to complete that, run agent sessions move %[1]s --to %[2]s; to continue with a copy here: agent sessions fork %[1]s", e.ID, e.To)
	}
	return fmt.Sprintf("session %s was moved to %s; to continue it: agent --on %[2]s --resume %[1]s; to continue with a copy here: agent sessions fork %[1]s", e.ID, e.To)
}

// Is makes errors.Is(err, ErrMoved) true.
func (e *MovedError) Is(target error) bool { return target == ErrMoved }

// Moving is a session that nobody else can open while it is moved. The caller closes it.
type Moving struct {
	*Journal
	file string
	move *Move
}

// Hold opens a session to move it, also one whose move was interrupted. Errors are
// those of [Open].
func Hold(dir, id string) (*Moving, error) {
	if err := checkLog(dir, id); err != nil {
		return nil, err
	}
	j, err := open(dir, id, 0, Options{})
	if err != nil {
		return nil, err
	}
	m := &Moving{Journal: j, file: filepath.Join(dir, id+movedSuffix)}
	if m.move, err = moveOf(dir, id); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return m, nil
}

// Move returns the move that was marked; nil without one.
func (m *Moving) Move() *Move { return m.move }

// Mark notes where the session goes: from now on only [Hold] opens it.
func (m *Moving) Mark(to Move) error {
	data, err := json.Marshal(to)
	if err == nil {
		err = atomicfile.Write(m.file, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("session %s: note its move: %w", m.id, err)
	}
	m.move = &to
	return nil
}

// Unmark forgets a move that did not happen.
func (m *Moving) Unmark() error {
	if err := os.Remove(m.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %s: forget its move: %w", m.id, err)
	}
	m.move = nil
	return nil
}

// moveOf returns the mark of a session; nil without one.
func moveOf(dir, id string) (*Move, error) {
	file := filepath.Join(dir, id+movedSuffix)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := &Move{}
	if err == nil {
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %s, which says where it was moved: %w", id, file, err)
	}
	return m, nil
}

// Output is a stored output or image of a session.
type Output struct {
	ID   string // the handle, or the SHA-256 of an image
	Path string
}

// Outputs returns the stored outputs and images of a session, with those that a fork
// has of its origins.
func (d Dirs) Outputs(id string) (list []Output, err error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	dir := filepath.Join(d.Contexts, id)
	add := func(dir string, idOf func(name string) (string, bool)) {
		entries, failed := os.ReadDir(dir)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		for _, e := range entries {
			if id, ok := idOf(e.Name()); ok && e.Type().IsRegular() {
				list = append(list, Output{id, filepath.Join(dir, e.Name())})
			}
		}
	}
	outputs := func(session string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			name, ok := strings.CutSuffix(name, outputSuffix)
			return core.HandlePrefix + session + "/" + name, ok
		}
	}
	add(dir, outputs(id))
	origins, failed := os.ReadDir(filepath.Join(dir, originDir))
	if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	for _, o := range origins {
		add(filepath.Join(dir, originDir, o.Name()), outputs(o.Name()))
	}
	add(filepath.Join(dir, blobDir), func(name string) (string, bool) { return name, isBlob(name) })
	return list, err
}
