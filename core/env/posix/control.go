package posix

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// control parses a witness's stderr. It separates the witness's messages, which
// are a NUL byte, the token and words up to the end of the line, from the
// command's own stderr, which it passes on from the command's start to its end.
type control struct {
	to    io.Writer // nil discards
	token string

	mu      sync.Mutex
	pending []byte // possible start of a message
	early   tail   // output before the start
	late    tail   // output after the start that has no other reader, such as the runner's own
	begun   chan struct{}
	ended   chan struct{}
	start   []string // the words of "started" or "refused", set when begun is closed
	end     []string // the words of "ended", set when ended is closed
}

func newControl(to io.Writer, token string) *control {
	return &control{to: to, token: token, begun: make(chan struct{}), ended: make(chan struct{})}
}

// Write implements io.Writer. The error is that of the command's stderr.
func (c *control) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, p...)
	intro := []byte("\x00" + c.token + " ")
	for {
		i := bytes.Index(c.pending, intro)
		if i < 0 {
			break
		}
		end := bytes.IndexByte(c.pending[i+len(intro):], '\n')
		if end < 0 { // the rest of the line is still to come
			return len(p), c.pass(i)
		}
		if err := c.pass(i); err != nil {
			return 0, err
		}
		end += len(intro)
		c.message(strings.Fields(string(c.pending[len(intro):end])))
		c.pending = append(c.pending[:0], c.pending[end+1:]...)
	}
	if err := c.pass(len(c.pending) - overlap(c.pending, intro)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// overlap returns the length of the longest suffix of data that is a prefix of
// intro.
func overlap(data, intro []byte) int {
	for n := min(len(data), len(intro)-1); n > 0; n-- {
		if bytes.HasSuffix(data, intro[:n]) {
			return n
		}
	}
	return 0
}

// pass passes on the first n pending bytes.
func (c *control) pass(n int) error {
	if n == 0 {
		return nil
	}
	var err error
	switch {
	case c.start == nil:
		_, _ = c.early.Write(c.pending[:n]) // never fails
	case c.end == nil && c.to != nil:
		_, err = c.to.Write(c.pending[:n])
	case c.end == nil:
		_, _ = c.late.Write(c.pending[:n])
	}
	c.pending = append(c.pending[:0], c.pending[n:]...)
	return err
}

// message handles a message. Repeated and invalid ones are ignored.
func (c *control) message(words []string) {
	switch {
	case len(words) >= 2 && (words[0] == "started" || words[0] == "refused") && c.start == nil:
		c.start = words
		close(c.begun)
	case len(words) == 3 && words[0] == "ended" && c.start != nil && c.end == nil:
		c.end = words
		close(c.ended)
	}
}

// flush passes on what did not become a message.
func (c *control) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pass(len(c.pending))
}

// status returns the exit status and how many processes the command left
// running.
func (c *control) status() (status, left int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		return 0, 0, false
	}
	_, err := fmt.Sscan(strings.Join(c.end[1:], " "), &status, &left)
	return status, left, err == nil
}

// text returns the output before the start, from what failed to start it.
func (c *control) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.early.text()
}

// rest returns the output after the start that nobody reads.
func (c *control) rest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.late.text()
}
