package ssh

import (
	"bytes"
	"io"
)

// mark separates what the login shell prints, as some start-up files do, from the
// program's output.
const mark = "\x00agent starts\n"

// printMark is the shell code that prints it to stdout and stderr.
const printMark = `printf "\000agent starts\n"; printf "\000agent starts\n" >&2; `

// afterMark passes on what comes after the mark.
type afterMark struct {
	to    io.Writer // nil discards
	seen  bool
	early []byte
}

// Write implements io.Writer.
func (a *afterMark) Write(p []byte) (int, error) {
	if a.to == nil {
		return len(p), nil
	}
	if a.seen {
		return a.to.Write(p)
	}
	a.early = append(a.early, p...)
	_, rest, ok := bytes.Cut(a.early, []byte(mark))
	if !ok {
		return len(p), nil
	}
	a.seen, a.early = true, nil
	if len(rest) > 0 {
		if _, err := a.to.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// flush passes on what came instead of the mark: it says why there is none.
func (a *afterMark) flush() {
	if !a.seen && a.to != nil && len(a.early) > 0 {
		_, _ = a.to.Write(a.early) // there is another error
	}
}
