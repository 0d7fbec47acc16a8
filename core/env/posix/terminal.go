package posix

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// The default size of terminals.
const (
	terminalRows = 40
	terminalCols = 120
)

// endOfFile is the character that ends a terminal's input.
const endOfFile = "\x04"

// answer is what the witness waits for at the end, since some engines lose the last
// output of a terminal that is closed.
const answer = "\n"

// runTerminal runs a witness and its command on a terminal, which carries the
// witness's messages too.
func (p *process) runTerminal(ctx context.Context, cmd core.Command, witness, argv []string, header string) {
	defer close(p.ran)
	var typed io.Reader = strings.NewReader(endOfFile)
	if cmd.Stdin != nil {
		typed = io.MultiReader(cmd.Stdin, typed)
	}
	// The terminal processes its input once the command has started.
	input, keyboard := io.Pipe()
	defer input.Close()
	go func() { // may outlive the command in a Read of its stdin
		_, _ = io.Copy(keyboard, io.MultiReader(strings.NewReader(header), &after{typed, p.control.begun, p.ran}))
	}()
	go func() { _, _ = io.Copy(keyboard, &after{strings.NewReader(answer), p.control.ended, p.ran}) }()
	runner := p.env.runner.(TerminalRunner) // Start has checked it
	p.runErr = runner.RunTerminal(ctx, slices.Concat(witness, argv), cmp.Or(cmd.Rows, terminalRows), cmp.Or(cmd.Cols, terminalCols), input, p.control)
	if err := p.control.flush(); p.runErr == nil {
		p.runErr = err
	}
}
