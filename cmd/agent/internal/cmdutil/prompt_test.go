package cmdutil

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestConfirm checks what a yes/no question prints and returns.
func TestConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		stdin     string
		assumeYes bool
		noStdin   bool
		noStderr  bool
		yes       bool
		asks      int
		code      int
	}{
		"yes":               {stdin: "Yes\n", yes: true, asks: 1},
		"y without a line":  {stdin: "y", yes: true, asks: 1},
		"no":                {stdin: "n\n", asks: 1},
		"empty":             {stdin: "\n", asks: 1},
		"unclear, then yes": {stdin: "maybe\n y \n", yes: true, asks: 2},
		"unclear, then end": {stdin: "maybe\n", asks: 2},
		"end of input":      {asks: 1},
		"--yes":             {assumeYes: true, noStdin: true, yes: true},
		"stdin is a pipe":   {stdin: "y\n", noStdin: true, code: ExitUsage},
		"stderr is a file":  {stdin: "y\n", noStderr: true, code: ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			s := &IO{In: strings.NewReader(test.stdin), Out: &out, Err: &errs, InTTY: !test.noStdin, ErrTTY: !test.noStderr}
			yes, err := s.Confirm(t.Context(), "Delete it?", test.assumeYes)
			if yes != test.yes || ExitCode(err) != test.code {
				t.Errorf("answer %v, error %v", yes, err)
			}
			if err != nil && err.Error() != `cannot ask "Delete it?": not running interactively: pass --yes to go ahead` {
				t.Errorf("error %v", err)
			}
			if got := strings.Count(errs.String(), "Delete it? [y/N] "); got != test.asks || out.Len() > 0 {
				t.Errorf("asked %d times, want %d: %q, stdout %q", got, test.asks, &errs, &out)
			}
			if strings.HasSuffix(name, "end of input") && !strings.HasSuffix(errs.String(), "\n") {
				t.Errorf("no line end after the question: %q", &errs)
			}
		})
	}
}

// TestConfirmCancelled checks that a question ends with its context.
func TestConfirmCancelled(t *testing.T) {
	in, typed := io.Pipe()
	t.Cleanup(func() { typed.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrTerminated)
	var errs bytes.Buffer
	s := &IO{In: in, Err: &errs, InTTY: true, ErrTTY: true}
	if yes, err := s.Confirm(ctx, "Delete it?", false); yes || ExitCode(err) != ExitSIGTERM || !strings.HasSuffix(errs.String(), "[y/N] \n") {
		t.Errorf("answer %v, error %v, printed %q", yes, err, &errs)
	}
}

// TestPrompter checks piped answers: one line each, numbers of offered ones, and
// the error at their end.
func TestPrompter(t *testing.T) {
	var out bytes.Buffer
	p := NewPrompter(&IO{In: strings.NewReader(" 2 \n7\n\nsecret\n"), Out: &out})
	ask := func(answer string, err error, want string) {
		t.Helper()
		if err != nil || answer != want {
			t.Errorf("answer %q, error %v, want %q", answer, err, want)
		}
	}
	offered := []string{"one", "two"}
	a, err := p.Select(t.Context(), "Number", offered, "one")
	ask(a, err, "two")
	a, err = p.Select(t.Context(), "Number", offered, "one")
	ask(a, err, "7")
	a, err = p.Line(t.Context(), "Name", "me")
	ask(a, err, "me")
	a, err = p.Secret(t.Context(), "Key", "")
	ask(a, err, "secret")
	if _, err := p.Line(t.Context(), "More", ""); !errors.Is(err, ErrInputEnded) {
		t.Errorf("error %v at the end", err)
	}
	if want := "Number [one]: \nNumber [one]: \nName [me]: \nKey: \nMore: \n"; out.String() != want {
		t.Errorf("printed %q, want %q", &out, want)
	}
}
