package cmdutil

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxStdin bounds what is read from stdin, in bytes.
const maxStdin = 10 << 20

// ReadAll reads stdin to its end or until ctx is done.
func ReadAll(ctx context.Context, in io.Reader) (string, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // ends with stdin, or with the process
		data, err := io.ReadAll(io.LimitReader(in, maxStdin+1))
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil:
			return "", fmt.Errorf("stdin: %w", r.err)
		case len(r.data) > maxStdin:
			return "", Usagef("stdin is larger than %d MiB: write it to a file and name the file in the prompt", maxStdin>>20)
		}
		return string(r.data), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// ToolArguments returns the value of an --args flag: JSON, or the content of the
// file that @FILE names.
func ToolArguments(args string) (string, error) {
	file, ok := strings.CutPrefix(args, "@")
	if !ok {
		return args, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", Usagef("--args: %w", err)
	}
	return string(data), nil
}
