package store

import (
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/core/event"
)

var (
	// ErrUnknownRecord is a required record of an unknown type; see
	// [UnknownRecordError].
	ErrUnknownRecord = errors.New("unknown required record")
	// ErrCorrupt is a record that cannot be read; see [CorruptError].
	ErrCorrupt = errors.New("corrupt record")
	// ErrLocked is a session that is open elsewhere; see [LockedError].
	ErrLocked = errors.New("session is in use")
	// ErrTooLarge is a record that is longer than 64 MiB.
	ErrTooLarge = errors.New("record is too large")
	// ErrFull is a context store that has reached its size limit.
	ErrFull = errors.New("context store is full")
)

// UnknownRecordError is an [ErrUnknownRecord]: the session cannot be resumed
// without the record.
type UnknownRecordError struct {
	File    string
	Line    int // from 1
	Type    string
	Version int // of the record's format
}

// Error implements error.
func (e *UnknownRecordError) Error() string {
	return fmt.Sprintf("%s:%d: the session needs a record of type %q (format version %d), which is unknown to this program (format version %d); resume it with the newer version that wrote it",
		e.File, e.Line, e.Type, e.Version, event.Version)
}

// Is makes errors.Is(err, ErrUnknownRecord) true.
func (e *UnknownRecordError) Is(target error) bool { return target == ErrUnknownRecord }

// CorruptError is an [ErrCorrupt]: a line that is not an event. An incomplete
// last line is not an error, it is repaired.
type CorruptError struct {
	File string
	Line int // from 1
	Err  error
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s:%d: the record cannot be read: %v; the file was damaged or edited: restore it, or start a new session", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// LockedError is an [ErrLocked].
type LockedError struct {
	ID   string
	File string // the lock
	PID  int    // of the owner; 0 = not known
	// Address is where the owner serves the session; empty = nowhere.
	Address string
}

// Error implements error.
func (e *LockedError) Error() string {
	owner := "another process"
	if e.PID > 0 {
		owner = fmt.Sprintf("process %d", e.PID)
	}
	if e.Address != "" {
		return fmt.Sprintf("session %s is in use by %s, which serves it on the socket %s; to attach: agent serve --stdio --resume %[1]s; or end that process, or start a new session", e.ID, owner, e.Address)
	}
	return fmt.Sprintf("session %s is in use by %s (lock %s); end that process, or start a new session", e.ID, owner, e.File)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
