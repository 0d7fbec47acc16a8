package cmdutil

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// ErrInputEnded is what a question returns when stdin ends before an answer.
var ErrInputEnded = errors.New("the input ended before all questions were answered")

// Prompter asks the user for lines, on a terminal or piped in.
type Prompter struct {
	*IO
	questions io.Writer
	lines     *bufio.Scanner
}

// NewPrompter returns a Prompter that asks on stdout and reads answers from
// stdin, terminal or not.
func NewPrompter(s *IO) *Prompter {
	lines := bufio.NewScanner(s.In)
	lines.Buffer(nil, 64<<10)
	return &Prompter{IO: s, questions: s.Out, lines: lines}
}

// Printf prints a line to the stream of the questions.
func (p *Prompter) Printf(format string, args ...any) {
	fmt.Fprintf(p.questions, format+"\n", args...)
}

// Line asks a question and returns the answer without surrounding space, or def
// for an empty one. The error is ErrInputEnded or the cause of ctx's end.
func (p *Prompter) Line(ctx context.Context, question, def string) (string, error) {
	text, err := p.ask(ctx, prompt(question, def), p.readLine)
	if text == "" {
		text = def
	}
	return text, err
}

// Secret is Line without a default and, on a terminal, without echo. The terminal
// is restored also when ctx ends.
func (p *Prompter) Secret(ctx context.Context, question, hint string) (string, error) {
	f, ok := p.In.(*os.File)
	if !ok || !p.InTTY {
		return p.ask(ctx, prompt(question, hint), p.readLine)
	}
	fd := int(f.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("cannot hide what is typed: %w; pipe the answer to stdin instead", err)
	}
	defer func() { _ = term.Restore(fd, state) }() // after a cancelled read; else it is restored already
	text, err := p.ask(ctx, prompt(question, hint), func() (string, error) {
		line, err := term.ReadPassword(fd)
		if errors.Is(err, io.EOF) {
			err = ErrInputEnded
		}
		return string(line), err
	})
	if err == nil {
		p.Printf("") // the line end was not echoed either
	}
	return text, err
}

// Select is Line, where a number from 1 chooses one of the offered answers.
func (p *Prompter) Select(ctx context.Context, question string, offered []string, def string) (string, error) {
	text, err := p.Line(ctx, question, def)
	if n, numErr := strconv.Atoi(text); numErr == nil && n >= 1 && n <= len(offered) {
		text = offered[n-1]
	}
	return text, err
}

// Confirm asks a yes/no question until it is answered; an empty answer is def.
func (p *Prompter) Confirm(ctx context.Context, question string, def bool) (bool, error) {
	choices := " [y/N] "
	if def {
		choices = " [Y/n] "
	}
	for {
		text, err := p.ask(ctx, question+choices, p.readLine)
		switch strings.ToLower(text) {
		case "":
			return def && err == nil, err
		case "y", "yes":
			return err == nil, err
		case "n", "no":
			return false, err
		}
		if err != nil {
			return false, err
		}
		p.Printf("Please answer yes or no.")
	}
}

// Confirm asks a yes/no question on stderr. No is the default, and the answer if
// stdin ends. With assumeYes, which --yes sets, it does not ask. It fails with a
// usage error if it cannot ask, and with ErrInterrupted on Ctrl-C.
func (s *IO) Confirm(ctx context.Context, question string, assumeYes bool) (bool, error) {
	switch {
	case assumeYes:
		return true, nil
	case !s.InTTY || !s.ErrTTY:
		return false, Usagef("cannot ask %q: not running interactively: pass --yes to go ahead", question)
	}
	p := NewPrompter(s)
	p.questions = s.Err
	yes := false
	err := Interruptible(ctx, func(ctx context.Context) (err error) {
		yes, err = p.Confirm(ctx, question, false)
		return err
	})
	if errors.Is(err, ErrInputEnded) {
		return false, nil
	}
	return yes && err == nil, err
}

// prompt adds to a question what an empty answer stands for.
func prompt(question, def string) string {
	if def != "" {
		question += " [" + def + "]"
	}
	return question + ": "
}

// ask prints a question and reads the answer.
func (p *Prompter) ask(ctx context.Context, question string, read func() (string, error)) (string, error) {
	fmt.Fprint(p.questions, question)
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() { // ends with an answer, or with the process
		text, err := read()
		done <- answer{strings.TrimSpace(text), err}
	}()
	select {
	case a := <-done:
		if !p.InTTY || a.err != nil { // no terminal echoed a line end
			p.Printf("")
		}
		return a.text, a.err
	case <-ctx.Done():
		p.Printf("")
		return "", context.Cause(ctx)
	}
}

func (p *Prompter) readLine() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	if err := p.lines.Err(); err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return "", ErrInputEnded
}
