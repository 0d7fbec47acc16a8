package gitindex

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errFormat = errors.New("unsupported index format")

// Entry is a file that git tracks, as it was when git saw it last.
type Entry struct {
	Path      string    // relative to the working tree
	Size      uint32    // the lower bits
	ModTime   [2]uint32 // seconds and nanoseconds
	Submodule bool
}

// Read returns the entries of an index of git. The format is in Git's
// gitformat-index(5).
func Read(index []byte) ([]Entry, error) {
	const header, fixed, timeAt, modeAt, sizeAt, flagsAt, extended = 12, 62, 8, 24, 36, 60, 0x4000
	if len(index) < header || !bytes.HasPrefix(index, []byte("DIRC")) {
		return nil, errFormat
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return nil, errFormat
	}
	var entries []Entry
	name, rest := []byte(nil), index[header:]
	for ; count > 0; count-- {
		if len(rest) < fixed+2 {
			return nil, errFormat
		}
		mode, size := binary.BigEndian.Uint32(rest[modeAt:]), fixed
		if version > 2 && binary.BigEndian.Uint16(rest[flagsAt:])&extended != 0 {
			size += 2
		}
		text := rest[size:]
		if version == 4 {
			strip, n := varint(text)
			if n == 0 || strip > len(name) {
				return nil, errFormat
			}
			text, size = text[n:], size+n
			name = name[:len(name)-strip]
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(text, 0)
		if end < 0 {
			return nil, errFormat
		}
		name = append(name, text[:end]...)
		if size += end + 1; version < 4 {
			size = (size + 7) &^ 7 // padded by 1 to 8 NULs
		}
		if size > len(rest) {
			return nil, errFormat
		}
		entries = append(entries, Entry{
			Path: string(name), Size: binary.BigEndian.Uint32(rest[sizeAt:]), Submodule: mode == 0o160000,
			ModTime: [2]uint32{binary.BigEndian.Uint32(rest[timeAt:]), binary.BigEndian.Uint32(rest[timeAt+4:])},
		})
		rest = rest[size:]
	}
	return entries, checkExtensions(rest)
}

// checkExtensions looks for the extension that puts entries in another file.
func checkExtensions(rest []byte) error {
	const header, checksum = 8, 20
	for len(rest) > checksum {
		if len(rest) < header+checksum || bytes.HasPrefix(rest, []byte("link")) {
			return errors.New("split indexes are not supported")
		}
		size := binary.BigEndian.Uint32(rest[4:])
		if uint64(size) > uint64(len(rest)-header-checksum) {
			return errFormat
		}
		rest = rest[header+int(size):]
	}
	return nil
}

// varint reads a number in the encoding of index version 4, and returns its
// length in bytes, 0 if it is incomplete.
func varint(b []byte) (value, n int) {
	for i, c := range b[:min(len(b), 4)] {
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}
