package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/event"
)

// originDir holds, in a fork's context, the outputs of the sessions that it was
// forked from, each below the id of its session.
const originDir = "origins"

// Dirs are the directories of sessions. Its methods work on whole sessions, log
// and context.
type Dirs struct {
	Sessions string // the logs
	Contexts string // the contexts of all sessions
}

// Fork creates the session newID from the records of session id up to the number
// at; 0 takes all. The original may be open. Records are copied unchanged, so
// that a model gets the same bytes again: they name the session that they were
// written in, and so do the handles in them. The outputs of these handles are
// linked, or copied, into the new context: the fork outlives its origin.
//
// The error is an fs.ErrNotExist if session id does not exist, an fs.ErrExist if
// session newID does, a [CorruptError] or an [UnknownRecordError]. Then nothing
// was created.
func (d Dirs) Fork(ctx context.Context, id, newID string, at event.Seq) error {
	if err := d.fork(ctx, id, newID, at); err != nil {
		return fmt.Errorf("fork session %s: %w", id, err)
	}
	return nil
}

func (d Dirs) fork(ctx context.Context, id, newID string, at event.Seq) (err error) {
	if err := errors.Join(CheckID(id), CheckID(newID)); err != nil {
		return err
	}
	l, err := acquire(newID, filepath.Join(d.Sessions, newID+lockSuffix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	path := filepath.Join(d.Sessions, newID+fileSuffix)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("session %s: %w", newID, fs.ErrExist), err)
	}
	log, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := copyRecords(ctx, log, filepath.Join(d.Sessions, id+fileSuffix), at); err != nil {
		return err
	}
	// The log comes last: it is what makes a session.
	if err = d.forkContext(id, newID); err == nil {
		err = log.Commit()
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(d.Contexts, newID)))
	}
	return nil
}

// copyRecords copies the complete records of a log up to a number.
func copyRecords(ctx context.Context, to io.Writer, path string, at event.Seq) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, last := newLineReader(f), event.Seq(0)
	var sequence event.Sequence
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		e, err := decode(path, n, line)
		if err != nil {
			return err
		}
		if at > 0 && e.Seq > at {
			if last == 0 {
				return fmt.Errorf("its first record is number %d: there are none up to %d", e.Seq, at)
			}
			return nil
		}
		if err := follows(&sequence, path, n, e); err != nil {
			return err
		}
		last = e.Seq
		if _, err := to.Write(append(line, '\n')); err != nil {
			return err
		}
		if last == at { // what follows may be damaged
			return nil
		}
	}
	switch {
	case last == 0:
		return errNothing
	case at > last:
		return fmt.Errorf("there is no record %d: the last one is number %d", at, last)
	}
	return nil
}

// forkContext gives a fork the outputs and images of its origin.
func (d Dirs) forkContext(id, newID string) error {
	from, to := filepath.Join(d.Contexts, id), filepath.Join(d.Contexts, newID)
	isOutput := func(name string) bool {
		return strings.HasSuffix(name, outputSuffix) || strings.HasSuffix(name, metaSuffix)
	}
	err := linkFiles(from, filepath.Join(to, originDir, id), isOutput)
	err = errors.Join(err, linkFiles(filepath.Join(from, blobDir), filepath.Join(to, blobDir), isBlob))
	origins, readErr := os.ReadDir(filepath.Join(from, originDir))
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		return errors.Join(err, readErr)
	}
	for _, o := range origins {
		err = errors.Join(err, linkFiles(filepath.Join(from, originDir, o.Name()), filepath.Join(to, originDir, o.Name()), isOutput))
	}
	return err
}

// isBlob reports whether a file is named like an image.
func isBlob(name string) bool { return len(name) == hex.EncodedLen(sha256.Size) }

// linkFiles links files of a directory, which need not exist, into another.
func linkFiles(from, to string, want func(name string) bool) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	made := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !want(e.Name()) {
			continue
		}
		if !made {
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			made = true
		}
		if err := linkFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// linkFile makes a hard link to a file or, where the system cannot, a copy. The
// files of a context never change once they are closed.
func linkFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// Delete removes a session: its log, what was cut off from it, and its context.
// The error is an fs.ErrNotExist if there is no such session, an [ErrLocked] if
// it is open; then nothing was removed.
func (d Dirs) Delete(id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	log := filepath.Join(d.Sessions, id+fileSuffix)
	if _, err := os.Stat(log); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	l, err := acquire(id, filepath.Join(d.Sessions, id+lockSuffix))
	if err != nil {
		return err
	}
	// The log goes first: Clean removes a context without one anyway.
	err = os.Remove(log)
	if err == nil {
		for _, beside := range []string{log + tornSuffix, filepath.Join(d.Sessions, id+movedSuffix)} {
			if failed := os.Remove(beside); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.Contexts, id)))
	}
	if err = errors.Join(err, l.release()); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return nil
}
