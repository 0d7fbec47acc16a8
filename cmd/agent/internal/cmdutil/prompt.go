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

// maxStdin bounds what stdin may add to a prompt.
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
			return "", Usagef("stdin holds more than %d MiB: write it to a file and name the file in the prompt", maxStdin>>20)
		}
		return string(r.data), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// ErrInputEnded is what a question gets when nobody answers any more.
var ErrInputEnded = errors.New("the input ended before all questions were answered")

// Prompter asks a person for lines: on a terminal, or piped in.
type Prompter struct {
	*IO
	lines *bufio.Scanner
}

func NewPrompter(s *IO) *Prompter {
	lines := bufio.NewScanner(s.In)
	lines.Buffer(nil, 64<<10)
	return &Prompter{IO: s, lines: lines}
}

// Say prints a line.
func (p *Prompter) Say(format string, args ...any) { fmt.Fprintf(p.Out, format+"\n", args...) }

// Line asks a question and returns the answer without space around it, or def
// for an empty one. The error is errInputEnded, or the cause of ctx's end.
func (p *Prompter) Line(ctx context.Context, question, def string) (string, error) {
	text, err := p.ask(ctx, question, def, p.readLine)
	if text == "" {
		text = def
	}
	return text, err
}

// Secret is line without a default and, on a terminal, without an echo. At the
// end of ctx, too, the terminal is as it was.
func (p *Prompter) Secret(ctx context.Context, question, hint string) (string, error) {
	f, ok := p.In.(*os.File)
	if !ok || !p.InTTY {
		return p.ask(ctx, question, hint, p.readLine)
	}
	fd := int(f.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("the terminal's settings cannot be read, so that a key would be seen: %w", err)
	}
	defer func() { _ = term.Restore(fd, state) }() // after a cancelled read; else it is restored already
	text, err := p.ask(ctx, question, hint, func() (string, error) {
		line, err := term.ReadPassword(fd)
		if errors.Is(err, io.EOF) {
			err = ErrInputEnded
		}
		return string(line), err
	})
	p.Say("") // the line end was not echoed either
	return text, err
}

// ask prints a question with what an empty answer means, and reads the answer.
func (p *Prompter) ask(ctx context.Context, question, def string, read func() (string, error)) (string, error) {
	if def != "" {
		question += " [" + def + "]"
	}
	fmt.Fprint(p.Out, question+": ")
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
		if !p.InTTY {
			p.Say("")
		}
		return a.text, a.err
	case <-ctx.Done():
		p.Say("")
		return "", context.Cause(ctx)
	}
}

func (p *Prompter) readLine() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	if err := p.lines.Err(); err != nil {
		return "", fmt.Errorf("the answer cannot be read: %w", err)
	}
	return "", ErrInputEnded
}

// Option asks for a text of which some are offered by number.
func (p *Prompter) Option(ctx context.Context, question string, offered []string, def string) (string, error) {
	text, err := p.Line(ctx, question, def)
	if n, numErr := strconv.Atoi(text); numErr == nil && n >= 1 && n <= len(offered) {
		text = offered[n-1]
	}
	return text, err
}

// Confirm asks a question that is answered with yes or no.
func (p *Prompter) Confirm(ctx context.Context, question string, def bool) (bool, error) {
	shown := map[bool]string{true: "yes", false: "no"}
	for {
		text, err := p.Line(ctx, question+" (yes or no)", shown[def])
		switch strings.ToLower(text) {
		case "y", "yes":
			return err == nil, err
		case "n", "no":
			return false, err
		}
		if err != nil {
			return false, err
		}
		p.Say("Please answer yes or no.")
	}
}

// Confirm asks the person before something is deleted; without one at a
// terminal it is a usage error.
func (s *IO) Confirm(question string) (bool, error) {
	yes, err := s.Agrees(question)
	if err == nil && !yes {
		fmt.Fprintln(s.Err, "Nothing was deleted.")
	}
	return yes, err
}

// Agrees asks the person; without one at a terminal it is a usage error.
func (s *IO) Agrees(question string) (bool, error) {
	if !s.InTTY || !s.ErrTTY {
		return false, Usagef("nobody is there to be asked: give --yes")
	}
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("stdin: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// ToolArguments returns the arguments of --args.
func ToolArguments(args string) (string, error) {
	if file, ok := strings.CutPrefix(args, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", Usagef("--args: %w", err)
		}
		return string(data), nil
	}
	return args, nil
}
