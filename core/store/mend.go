package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-009c0928/agent/core/event"
)

// Damage is the damaged end of a log: a record that cannot be read or cannot
// follow the one before, and all that follows, since a conversation with gaps is
// useless.
type Damage struct {
	Line  int    // the first damaged line, from 1
	Lines int    // number of lines from there on
	Bytes int64  // from there on
	Torn  bool   // only the last record is incomplete, as after a crash; resuming removes it
	Saved string // the file that it was moved to; empty after [Check]
	Err   error  // why a session cannot be resumed with the line
}

var errTorn = errors.New("the record is incomplete")

// Check looks for damage in a session's log and changes nothing; nil means that
// it is intact. Errors are those of [RepairLog].
func Check(ctx context.Context, dir, id string) (*Damage, error) {
	return mend(ctx, dir, id, false)
}

// RepairLog moves the damaged end of a session's log to the end of a file with the
// suffix ".torn"; nil means that the log is intact. The error is an
// fs.ErrNotExist if there is no such session, an [ErrLocked] if it is open, an
// [UnknownRecordError] if a record was written by a newer version.
func RepairLog(ctx context.Context, dir, id string) (*Damage, error) {
	return mend(ctx, dir, id, true)
}

func mend(ctx context.Context, dir, id string, cut bool) (damage *Damage, err error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, id+fileSuffix)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("repair session %s: %w", id, err)
	}
	l, err := acquire(id, filepath.Join(dir, id+lockSuffix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("repair session %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("repair session %s: %w", id, err)
	}
	damage, err = scan(ctx, f, path, info.Size())
	switch {
	case err != nil || !cut:
		return damage, err
	case damage == nil:
		_, _, err := repair(f, path) // the line end may be missing
		return nil, err
	}
	repaired, err := cutAt(f, path, info.Size()-damage.Bytes, info.Size())
	if err != nil {
		return nil, fmt.Errorf("repair session %s: %w", id, err)
	}
	damage.Saved = repaired.Saved
	return damage, nil
}

// scan reads a log, as resuming its session does, up to the first damage.
func scan(ctx context.Context, f io.ReaderAt, path string, size int64) (*Damage, error) {
	lines, at := newLineReader(io.NewSectionReader(f, 0, size)), int64(0)
	var sequence event.Sequence
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := lines.next()
		if errors.Is(err, io.EOF) && at < size {
			whole, _, inspectErr := inspect(f, at, size)
			if inspectErr != nil {
				return nil, inspectErr
			}
			if !whole {
				return &Damage{Line: n, Lines: 1, Bytes: size - at, Torn: true, Err: errTorn}, nil
			}
			line = make([]byte, size-at) // only the line end is missing
			_, err = f.ReadAt(line, at)
		}
		if err == nil {
			err = check(&sequence, path, n, line)
		}
		corrupt := (*CorruptError)(nil)
		switch {
		case err == nil:
			at = min(at+int64(len(line))+1, size)
			continue
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.As(err, &corrupt):
			err = corrupt.Err
		case !errors.Is(err, ErrTooLarge):
			return nil, err
		}
		count, readErr := countLines(io.NewSectionReader(f, at, size-at))
		damage := &Damage{Line: n, Lines: count, Bytes: size - at, Err: err}
		if count == 1 && readErr == nil {
			whole, _, inspectErr := inspect(f, at, size)
			damage.Torn, readErr = !whole, inspectErr
		}
		return damage, readErr
	}
}

// check decodes a line and checks that it can follow the earlier ones.
func check(sequence *event.Sequence, path string, n int, line []byte) error {
	e, err := decode(path, n, line)
	if err != nil {
		return err
	}
	return follows(sequence, path, n, e)
}

// countLines counts lines, including an incomplete last one.
func countLines(r io.Reader) (int, error) {
	buf, n, open := make([]byte, 64<<10), 0, false
	for {
		read, err := r.Read(buf)
		for _, c := range buf[:read] {
			if open = c != '\n'; !open {
				n++
			}
		}
		if errors.Is(err, io.EOF) {
			if open {
				n++
			}
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
