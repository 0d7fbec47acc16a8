package posix

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// fileInfo is the output of stat for a file.
type fileInfo struct {
	name  string
	size  int64
	links uint64
	mode  fs.FileMode
	mod   time.Time
}

var _ fs.FileInfo = (*fileInfo)(nil)

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.size }
func (i *fileInfo) Mode() fs.FileMode  { return i.mode }
func (i *fileInfo) ModTime() time.Time { return i.mod }
func (i *fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i *fileInfo) Sys() any           { return nil }

// Links is the number of hard links of the file.
func (i *fileInfo) Links() uint64 { return i.links }

// fileTypes are the type bits of a Unix mode.
var fileTypes = map[uint64]fs.FileMode{
	0x1000: fs.ModeNamedPipe,
	0x2000: fs.ModeDevice | fs.ModeCharDevice,
	0x4000: fs.ModeDir,
	0x6000: fs.ModeDevice,
	0x8000: 0,
	0xa000: fs.ModeSymlink,
	0xc000: fs.ModeSocket,
}

// parseInfo parses "mode size links seconds time", the mode in hexadecimal, as
// printed by stat -c '%f %s %h %Y %y'.
func parseInfo(name, line string) (*fileInfo, error) {
	fields := strings.SplitN(line, " ", 5)
	if len(fields) < 5 {
		return nil, fmt.Errorf("invalid output of stat %q: expected mode, size, number of links and times", line)
	}
	mode, err := strconv.ParseUint(fields[0], 16, 32)
	if err != nil {
		return nil, fmt.Errorf("invalid mode %q from stat: %w", fields[0], err)
	}
	size, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid size %q from stat: %w", fields[1], err)
	}
	links, err := strconv.ParseUint(fields[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid number of links %q from stat: %w", fields[2], err)
	}
	seconds, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid time %q from stat: %w", fields[3], err)
	}
	info := &fileInfo{name: name, size: size, links: links, mod: time.Unix(seconds, 0)}
	// Sub-second precision distinguishes changes within a second.
	if exact, err := time.Parse("2006-01-02 15:04:05.999999999 -0700", strings.TrimSpace(fields[4])); err == nil {
		info.mod = exact.Local()
	}
	info.mode = fs.FileMode(mode&0o777) | fileType(mode)
	for _, special := range specialBits {
		if mode&uint64(special.bit) != 0 {
			info.mode |= special.mode
		}
	}
	return info, nil
}

func fileType(mode uint64) fs.FileMode {
	kind, ok := fileTypes[mode&0xf000]
	if !ok {
		return fs.ModeIrregular
	}
	return kind
}
