package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/redact"
)

const (
	fileSuffix = ".jsonl"
	tornSuffix = ".torn" // on top of fileSuffix
	maxLine    = 64 << 20
)

// Options are a journal's settings.
type Options struct {
	// Secrets are replaced by "[redacted]" in all records; those shorter than
	// 8 bytes are ignored. What looks like a key of a well-known service is
	// replaced too.
	Secrets []string
	// Hidden takes what Hide learns; nil is a new one for this journal.
	Hidden *Hidden
}

// Journal is the log of a session, a core.Journal. It is safe for concurrent
// use.
type Journal struct {
	id, path string
	lock     *lock
	redact   *redact.Redactor
	hidden   *Hidden
	repair   *Repair
	maxLine  int

	mu     sync.Mutex
	file   logFile
	size   int64 // of the complete records
	closed bool
	broken error // why nothing more can be appended

	syncMu    sync.Mutex // held during a sync, so that others wait for its outcome
	synced    int64
	dirSynced bool
}

var (
	_ core.Journal = (*Journal)(nil)
	_ core.Hider   = (*Journal)(nil)
)

// logFile is what a journal does with its file.
type logFile interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// Create creates the log of a new session in dir, and dir itself. The error is
// an fs.ErrExist if the id is taken, an [ErrLocked] if the session is in use.
func Create(dir, id string, opts Options) (*Journal, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create session %s: %w", id, err)
	}
	return open(dir, id, os.O_CREATE|os.O_EXCL, opts)
}

// Open opens the log of an earlier session, and removes an incomplete last
// record; see [Journal.Repaired]. The error is an fs.ErrNotExist if there is no
// such session, an [ErrLocked] if it is in use, an [ErrMoved] if it was moved.
func Open(dir, id string, opts Options) (*Journal, error) {
	if err := checkLog(dir, id); err != nil {
		return nil, err
	}
	j, err := open(dir, id, 0, opts)
	if err != nil {
		return nil, err
	}
	move, err := moveOf(dir, id)
	if err == nil && move != nil {
		err = &MovedError{id, *move}
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func checkLog(dir, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, id+fileSuffix)); err != nil {
		return fmt.Errorf("open session %s: %w", id, err)
	}
	return nil
}

func open(dir, id string, flag int, opts Options) (*Journal, error) {
	l, err := acquire(id, filepath.Join(dir, id+lockSuffix))
	if err != nil {
		return nil, err
	}
	j := &Journal{id: id, path: filepath.Join(dir, id+fileSuffix), lock: l, redact: redact.New(opts.Secrets), hidden: opts.Hidden, maxLine: maxLine}
	if j.hidden == nil {
		j.hidden = &Hidden{}
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), l.release())
	}
	j.file = f
	if j.size, j.repair, err = repair(f, j.path); err != nil {
		return nil, errors.Join(fmt.Errorf("repair session %s: %w", id, err), f.Close(), l.release())
	}
	return j, nil
}

// Advertise tells processes that find the session in use where it is served, such as on
// a socket; see [LockedError].
func (j *Journal) Advertise(address string) error { return j.lock.advertise(address) }

// Path returns the log's file.
func (j *Journal) Path() string { return j.path }

// Repaired returns what [Open] cut off, or nil.
func (j *Journal) Repaired() *Repair { return j.repair }

// Hide implements core.Hider: the secrets of a text, which are values that look
// like passwords and keys, are redacted in all later records.
func (j *Journal) Hide(text string) { j.hidden.Hide(text) }

// Append implements core.Journal: one line, in one write. It ignores ctx, since
// a cancellation must be recorded as well.
//
// After a failure the file is truncated to its last complete record. If that
// fails too, every later Append fails.
func (j *Journal) Append(_ context.Context, e event.Event) error {
	line, err := encode(e)
	if err != nil {
		return fmt.Errorf("session %s: %w", j.id, err)
	}
	line = append(j.hidden.record(j.redact.Record(line)), '\n')
	if len(line) > j.maxLine {
		return fmt.Errorf("session %s: %w: %s has %d bytes, the limit is %d", j.id, ErrTooLarge, e.Body.Type(), len(line), j.maxLine)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return fmt.Errorf("session log %s: %w", j.path, fs.ErrClosed)
	case j.broken != nil:
		return j.broken
	}
	if _, err = j.file.WriteAt(line, j.size); err == nil {
		j.size += int64(len(line))
		return nil
	}
	err = fmt.Errorf("write session log %s: %w", j.path, cause(err))
	// The number of written bytes is unreliable: a file that fails in the
	// middle of a write reports 0.
	if cut := j.file.Truncate(j.size); cut != nil {
		j.broken = fmt.Errorf("%w; a part of the record may remain: %w", err, cause(cut))
		return j.broken
	}
	return err
}

// cause drops the operation and the path, which the caller names.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// encode returns an event as one line, without the line end.
func encode(e event.Event) ([]byte, error) {
	line, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if _, unknown := e.Body.(event.Unknown); !unknown {
		return line, nil
	}
	var one bytes.Buffer // another version's JSON: it may be invalid or on several lines
	if err := json.Compact(&one, line); err != nil {
		return nil, fmt.Errorf("event of unknown type %q: %w", e.Body.Type(), err)
	}
	return one.Bytes(), nil
}

// Sync implements core.Journal. Without new records it does nothing; calls
// during a sync share the next one.
func (j *Journal) Sync(context.Context) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	return j.sync()
}

func (j *Journal) sync() error {
	j.mu.Lock()
	size, closed := j.size, j.closed
	j.mu.Unlock()
	if size == j.synced {
		return nil
	}
	if closed {
		return fmt.Errorf("session log %s: %w", j.path, fs.ErrClosed)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync session log %s: %w", j.path, cause(err))
	}
	if !j.dirSynced {
		if err := atomicfile.SyncDir(filepath.Dir(j.path)); err != nil {
			return fmt.Errorf("sync session log %s: %w", j.path, err)
		}
		j.dirSynced = true
	}
	j.synced = size
	return nil
}

// Close syncs and closes the log and releases its lock. A second Close does
// nothing.
func (j *Journal) Close() error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return nil
	}
	err := j.sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	return errors.Join(err, j.file.Close(), j.lock.release())
}

// Replay implements core.Journal. It yields the records that were written when
// it started, even while others are appended and after Close. Errors are a
// [CorruptError], an [UnknownRecordError], that of ctx, or a read error; the
// sequence ends with it.
func (j *Journal) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		j.mu.Lock()
		size := j.size
		j.mu.Unlock()
		f, err := os.Open(j.path)
		if err != nil {
			yield(event.Event{}, fmt.Errorf("read session %s: %w", j.id, err))
			return
		}
		defer f.Close()
		for e, err := range records(ctx, j.path, io.NewSectionReader(f, 0, size), after) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
