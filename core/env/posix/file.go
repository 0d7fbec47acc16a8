package posix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

const (
	smallFile = 1 << 20  // files up to this size are read whole when opened
	blockSize = 64 << 10 // unit of the script for larger files
	window    = 32       // blocks fetched at once
)

// file is an open file. A small one is in memory; for a larger one, the script
// that opened it keeps running and sends blocks until Close.
type file struct {
	*dialog
	name string
	info *fileInfo

	mu     sync.Mutex
	whole  bool   // data is the whole file
	data   []byte // of the file, from start
	start  int64
	size   int64 // the last that is known
	offset int64 // of Read
	closed bool
}

// Open implements [core.FS]. It refuses anything but a regular file: reading a
// device or a named pipe may never end. ctx is only for opening.
func (f files) Open(ctx context.Context, name string) (core.File, error) {
	abs, err := f.env.abs(name)
	if err != nil {
		return nil, err
	}
	if f.exact != "" && abs != name {
		return nil, pathError("open", name, errChanged)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The script outlives ctx, unless ctx ends before the file is open.
	d, err := f.env.dialog(context.WithoutCancel(ctx), openScript, f.exact, abs, strconv.Itoa(smallFile))
	if err != nil {
		return nil, pathError("open", name, err)
	}
	o := &file{dialog: d, name: name}
	detach := context.AfterFunc(ctx, o.stop)
	err = o.receive()
	if !detach() || err != nil {
		o.end()
		<-o.ran
		return nil, pathError("open", name, o.why(ctx, err))
	}
	return o, nil
}

// receive reads the start of the script's output: the resolved path, the output
// of stat, and the content of a small file.
func (o *file) receive() error {
	to, err := o.from.ReadString(0)
	if err != nil {
		return err
	}
	line, err := o.from.ReadString('\n')
	if err != nil {
		return err
	}
	o.info, err = parseInfo(path.Base(strings.TrimSuffix(to, "\x00")), strings.TrimSuffix(line, "\n"))
	if err != nil {
		return err
	}
	o.size = o.info.size
	if o.size > smallFile {
		return nil
	}
	if o.data, err = io.ReadAll(o.from); err != nil {
		return err
	}
	<-o.ran
	if err := outcome(context.Background(), o.runErr, o.stderr.text()); err != nil {
		return err
	}
	o.whole, o.size = true, int64(len(o.data))
	return nil
}

// Close implements [core.File]. It waits for the script to end.
func (o *file) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return &fs.PathError{Op: "close", Path: o.name, Err: fs.ErrClosed}
	}
	o.closed = true
	o.end()
	<-o.ran
	return nil
}

// Stat implements [core.File]: the file as it was when it was opened.
func (o *file) Stat() (fs.FileInfo, error) { return o.info, nil }

// Read implements io.Reader.
func (o *file) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.readAt(p, o.offset)
	o.offset += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (o *file) ReadAt(p []byte, off int64) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fmt.Errorf("the offset %d is negative: %w", off, fs.ErrInvalid)}
	}
	for n < len(p) {
		m, err := o.readAt(p[n:], off+int64(n))
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readAt reads from memory, or fetches blocks.
func (o *file) readAt(p []byte, off int64) (int, error) {
	if o.closed {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrClosed}
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !o.holds(off) {
		if o.whole {
			return 0, io.EOF
		}
		if err := o.fetch(off); err != nil {
			return 0, &fs.PathError{Op: "read", Path: o.name, Err: err}
		}
		if !o.holds(off) {
			return 0, io.EOF
		}
	}
	return copy(p, o.data[off-o.start:]), nil
}

func (o *file) holds(off int64) bool {
	return off >= o.start && off-o.start < int64(len(o.data))
}

// fetch fetches blocks, starting with the one that contains the offset.
func (o *file) fetch(off int64) error {
	block := off / blockSize
	if _, err := fmt.Fprintf(o.in, "%d %d\n", block, window); err != nil {
		return o.broken(err)
	}
	if o.data == nil {
		o.data = make([]byte, window*blockSize)
	}
	o.data = o.data[:cap(o.data)]
	o.start = block * blockSize
	_, err := io.ReadFull(o.from, o.data)
	line := ""
	if err == nil {
		line, err = o.from.ReadString('\n')
	}
	if err == nil {
		o.size, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	}
	if err != nil {
		o.data = o.data[:0]
		return o.broken(err)
	}
	// After the end of the file there is only the zero padding.
	o.data = o.data[:max(0, min(int64(len(o.data)), o.size-o.start))]
	return nil
}

// broken returns why the script no longer answers.
func (o *file) broken(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return fs.ErrClosed
	}
	return fmt.Errorf("lost the connection to the open file: %w", err)
}
