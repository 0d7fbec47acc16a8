package posix

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// gatherSize is how much of a file's content is kept in memory.
const gatherSize = 1 << 20

// content is the complete content to write.
type content struct {
	io.Reader
	size int64
	temp *os.File // nil if in memory
}

// gather reads all of r, long content into a temporary file. It fails once ctx
// is done, but does not interrupt a Read in progress.
func gather(ctx context.Context, r io.Reader) (*content, error) {
	if known, ok := r.(interface {
		io.Reader
		Len() int
	}); ok {
		return &content{Reader: known, size: int64(known.Len())}, nil
	}
	r = &contextReader{ctx: ctx, r: r}
	var start bytes.Buffer
	if _, err := io.CopyN(&start, r, gatherSize); errors.Is(err, io.EOF) {
		return &content{Reader: &start, size: int64(start.Len())}, nil
	} else if err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp("", "agent-write-")
	if err != nil {
		return nil, err
	}
	c := &content{temp: temp}
	if c.size, err = io.Copy(temp, io.MultiReader(&start, r)); err == nil {
		_, err = temp.Seek(0, io.SeekStart)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	c.Reader = temp
	return c, nil
}

// close removes the temporary file.
func (c *content) close() {
	if c.temp != nil {
		c.temp.Close()
		_ = os.Remove(c.temp.Name())
	}
}

// contextReader fails once ctx is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
