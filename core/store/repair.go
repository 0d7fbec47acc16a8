package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Repair describes what was cut off the end of a log.
type Repair struct {
	Bytes int64  // that were cut off
	Saved string // the file that they were moved to
}

// repair makes the file end with a complete record and returns its size. An
// incomplete last line is moved to another file; a missing line end is added.
func repair(f *os.File, path string) (int64, *Repair, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	size := info.Size()
	if size == 0 {
		return 0, nil, nil
	}
	start, err := lastLine(f, size)
	if err != nil {
		return 0, nil, err
	}
	whole, ended, err := inspect(f, start, size)
	switch {
	case err != nil:
		return 0, nil, err
	case whole && ended:
		return size, nil, nil
	case whole:
		_, err := f.WriteAt([]byte{'\n'}, size)
		return size + 1, nil, err
	}
	cut, err := cutAt(f, path, start, size)
	return start, cut, err
}

// cutAt moves everything from an offset on to the file for torn records.
func cutAt(f *os.File, path string, at, size int64) (*Repair, error) {
	saved := path + tornSuffix
	if err := save(saved, io.NewSectionReader(f, at, size-at)); err != nil {
		return nil, fmt.Errorf("save the damaged end: %w", err)
	}
	if err := errors.Join(f.Truncate(at), f.Sync()); err != nil {
		return nil, fmt.Errorf("truncate the log: %w", err)
	}
	return &Repair{Bytes: size - at, Saved: saved}, nil
}

// lastLine returns where the last line begins, with or without a line end.
func lastLine(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size - 1; end > 0; { // the last byte ends the line, if anything
		n := min(end, int64(len(buf)))
		if _, err := r.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// inspect reports whether a line holds a complete JSON object and has a line
// end.
func inspect(r io.ReaderAt, start, size int64) (whole, ended bool, err error) {
	if size-start > maxLine {
		return false, false, nil
	}
	line := make([]byte, size-start)
	if _, err := r.ReadAt(line, start); err != nil {
		return false, false, err
	}
	line, ended = bytes.CutSuffix(line, []byte{'\n'})
	return bytes.HasPrefix(line, []byte{'{'}) && json.Valid(line), ended, nil
}

func save(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}
