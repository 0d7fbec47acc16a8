package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// run runs a line of the user's settings in the system's shell and returns
// its stdout. The command gets the whole environment, since a password manager
// may need its own keys. Its stderr is dropped: it may contain secrets.
func run(ctx context.Context, line string) ([]byte, error) {
	out := &limitedBuffer{left: maxCommandOut}
	cmd := shellCommand(ctx, line)
	cmd.Stdout = out
	cmd.WaitDelay = 500 * time.Millisecond
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case out.left < 0:
		return nil, errors.New("the output is too long for a key")
	case errors.As(err, &exit):
		return nil, errors.New(exit.ProcessState.String())
	case err != nil:
		return nil, err
	}
	return out.buf.Bytes(), nil
}

// maxFilterOut limits the output of [Filter], in bytes.
const maxFilterOut = 64 << 10

// Filter runs a line of the user's settings in the system's shell with an input, and
// returns its output. It ends with ctx.
func Filter(ctx context.Context, line string, in io.Reader) (string, error) {
	out := &limitedBuffer{left: maxFilterOut}
	cmd := shellCommand(ctx, line)
	cmd.Stdin, cmd.Stdout = in, out
	cmd.WaitDelay = 500 * time.Millisecond
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("it does not end: %w", context.Cause(ctx))
	}
	return out.buf.String(), err
}

// limitedBuffer keeps a limited number of bytes and drops the rest. The buffer
// is not embedded: its ReadFrom would bypass the limit.
type limitedBuffer struct {
	buf  bytes.Buffer
	left int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left >= 0 {
		return b.buf.Write(p)
	}
	return len(p), nil
}
