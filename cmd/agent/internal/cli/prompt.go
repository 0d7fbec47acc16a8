package cli

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

// errInputEnded is what a question gets when nobody answers any more.
var errInputEnded = errors.New("the input ended before all questions were answered")

// prompter asks a person for lines: on a terminal, or piped in.
type prompter struct {
	*streams
	lines *bufio.Scanner
}

func newPrompter(s *streams) *prompter {
	lines := bufio.NewScanner(s.in)
	lines.Buffer(nil, 64<<10)
	return &prompter{streams: s, lines: lines}
}

// say prints a line.
func (p *prompter) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// line asks a question and returns the answer without space around it, or def
// for an empty one. The error is errInputEnded, or the cause of ctx's end.
func (p *prompter) line(ctx context.Context, question, def string) (string, error) {
	text, err := p.ask(ctx, question, def, p.readLine)
	if text == "" {
		text = def
	}
	return text, err
}

// secret is line without a default and, on a terminal, without an echo. At the
// end of ctx, too, the terminal is as it was.
func (p *prompter) secret(ctx context.Context, question, hint string) (string, error) {
	f, ok := p.in.(*os.File)
	if !ok || !p.inTTY {
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
			err = errInputEnded
		}
		return string(line), err
	})
	p.say("") // the line end was not echoed either
	return text, err
}

// ask prints a question with what an empty answer means, and reads the answer.
func (p *prompter) ask(ctx context.Context, question, def string, read func() (string, error)) (string, error) {
	if def != "" {
		question += " [" + def + "]"
	}
	fmt.Fprint(p.out, question+": ")
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
		if !p.inTTY {
			p.say("")
		}
		return a.text, a.err
	case <-ctx.Done():
		p.say("")
		return "", context.Cause(ctx)
	}
}

func (p *prompter) readLine() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	if err := p.lines.Err(); err != nil {
		return "", fmt.Errorf("the answer cannot be read: %w", err)
	}
	return "", errInputEnded
}

// option asks for a text of which some are offered by number.
func (p *prompter) option(ctx context.Context, question string, offered []string, def string) (string, error) {
	text, err := p.line(ctx, question, def)
	if n, numErr := strconv.Atoi(text); numErr == nil && n >= 1 && n <= len(offered) {
		text = offered[n-1]
	}
	return text, err
}

// yes asks a question that is answered with yes or no.
func (p *prompter) yes(ctx context.Context, question string, def bool) (bool, error) {
	shown := map[bool]string{true: "yes", false: "no"}
	for {
		text, err := p.line(ctx, question+" (yes or no)", shown[def])
		switch strings.ToLower(text) {
		case "y", "yes":
			return err == nil, err
		case "n", "no":
			return false, err
		}
		if err != nil {
			return false, err
		}
		p.say("Please answer yes or no.")
	}
}
