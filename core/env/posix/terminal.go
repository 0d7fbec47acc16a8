package posix

import (
	"context"
	"io"
	"slices"
	"strings"
)

// The size of terminals.
const (
	terminalRows = 40
	terminalCols = 120
)

// endOfFile is the character that ends a terminal's input.
const endOfFile = "\x04"

// runTerminal runs a witness and its command on a terminal, which carries the
// witness's messages too.
func (p *process) runTerminal(ctx context.Context, witness, argv []string, header string, stdin io.Reader) {
	defer close(p.ran)
	var typed io.Reader = strings.NewReader(endOfFile)
	if stdin != nil {
		typed = io.MultiReader(stdin, typed)
	}
	input := io.MultiReader(strings.NewReader(header), &whenBegun{p, typed})
	runner := p.env.runner.(TerminalRunner) // Start has checked it
	p.runErr = runner.RunTerminal(ctx, slices.Concat(witness, argv), terminalRows, terminalCols, input, p.control)
	if err := p.control.flush(); p.runErr == nil {
		p.runErr = err
	}
}

// whenBegun reads from a reader once the command has started, and the terminal
// processes its input.
type whenBegun struct {
	*process
	from io.Reader
}

// Read implements io.Reader.
func (w *whenBegun) Read(b []byte) (int, error) {
	select {
	case <-w.control.begun:
		return w.from.Read(b)
	case <-w.ran:
		return 0, io.EOF
	}
}
