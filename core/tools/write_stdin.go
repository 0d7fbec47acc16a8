package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
)

const (
	stdinQuiet = 500 * time.Millisecond // the default of quiet_ms
	stdinLimit = 10 * time.Second       // the default of timeout_ms
	maxStdin   = 64 << 10               // of text in one call
)

//go:embed write_stdin.md
var writeStdinDoc string

type writeStdinArgs struct {
	ID        string   `json:"id"`
	Text      string   `json:"text,omitempty"`
	Keys      []string `json:"keys,omitempty" jsonschema:"enter, up, escape, ctrl-c, eof …"`
	WaitFor   string   `json:"wait_for,omitempty" jsonschema:"regular expression"`
	QuietMS   int64    `json:"quiet_ms,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"`
}

// keyBytes is what a terminal sends for a key.
var keyBytes = map[string]string{
	"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "space": " ", "eof": "\x04",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
	"home": "\x1b[H", "end": "\x1b[F", "page-up": "\x1b[5~", "page-down": "\x1b[6~",
}

// writeStdin returns the tool write_stdin.
func (s *jobs) writeStdin() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        "write_stdin",
		Description: strings.TrimSpace(writeStdinDoc),
		Scopes:      []core.Scope{core.ScopeShell},
		Output:      core.OutputLimit{MaxChars: 30_000, MaxLines: 256, Mode: core.Tail},
	}, s.stdinAccess, s.runStdin)
}

// stdinAccess returns what a call amounts to: the command that is typed into a
// shell, or the job's command with that input. Interrupting a program and ending
// its input needs no permission.
func (s *jobs) stdinAccess(_ context.Context, call *core.Call, in writeStdinArgs) ([]core.Access, error) {
	input, err := in.input()
	j := s.find(call.Session.ID, in.ID)
	if err != nil || j == nil || strings.Trim(input, "\x03\x04") == "" {
		return nil, nil // Run reports what is wrong
	}
	if len(j.typed)+len(input) > maxStdin {
		return nil, fmt.Errorf("more than %s was typed into %s: start another shell", byteSize(maxStdin), j.id)
	}
	access := core.Access{Scope: core.ScopeShell, Resource: j.script(input), Unconfined: j.unsandboxed}
	if j.isShell {
		access.Argv, _ = plainArgv(access.Resource)
	}
	return []core.Access{access}, nil
}

// input returns what is to be typed.
func (in writeStdinArgs) input() (string, error) {
	input := in.Text
	for _, k := range in.Keys {
		name := strings.ToLower(k)
		b, ok := keyBytes[name]
		if letter, ctrl := strings.CutPrefix(name, "ctrl-"); ctrl && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z' {
			b, ok = string(letter[0]&0x1f), true
		}
		if !ok {
			names := slices.Sorted(maps.Keys(keyBytes))
			return "", fmt.Errorf("key %q is unknown. Use %s, or ctrl- and a letter", k, strings.Join(names, ", "))
		}
		input += b
	}
	if len(input) > maxStdin {
		return "", fmt.Errorf("the text has more than %s. Write it to a file", byteSize(maxStdin))
	}
	return input, nil
}

// shells are the programs whose input is commands in the language that the
// policy reads.
var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}

// runsShell reports whether a command line only starts a shell that reads its
// input.
func runsShell(command string) bool {
	argv, ok := plainArgv(strings.TrimSpace(command))
	if ok && len(argv) > 1 && argv[0] == "env" {
		argv = argv[1:]
	}
	return ok && slices.Contains(shells, path.Base(argv[0])) &&
		!slices.ContainsFunc(argv[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "-c") })
}

// script returns the shell script that new input amounts to. In a shell, that is
// all that was typed: a line may depend on those before it, such as a cd, half a
// command, or another program that now reads the input.
func (j *job) script(input string) string {
	typed := strings.ReplaceAll(input, "\r", "\n")
	if j.isShell {
		return strings.TrimRight(j.typed+typed, "\n")
	}
	return j.command + " <<'END_OF_INPUT'\n" + strings.TrimRight(typed, "\n") + "\nEND_OF_INPUT"
}

func (s *jobs) runStdin(ctx context.Context, call *core.Call, in writeStdinArgs) (core.Result, error) {
	input, err := in.input()
	if err != nil {
		return invalid("%v.", err)
	}
	var until *regexp.Regexp
	if in.WaitFor != "" {
		if until, err = regexp.Compile("(?m)" + in.WaitFor); err != nil {
			return invalid("wait_for is not a valid regular expression: %v.", err)
		}
	}
	if in.QuietMS < 0 || in.TimeoutMS < 0 {
		return invalid("quiet_ms and timeout_ms cannot be negative.")
	}
	j := s.find(call.Session.ID, in.ID)
	if j == nil {
		return s.unknown(call.Session.ID, in.ID), nil
	}
	if input != "" && !j.running() {
		text := j.read()
		s.drop(call.Session.ID, j)
		return core.Failf(core.CodeIO, "%s[%s %s: nothing was written]", text, j.id, j.state()), nil
	}
	unread, from := j.position()
	if input == "" {
		from = unread
	}
	limit, _ := shellTimeout(cmp.Or(in.TimeoutMS, stdinLimit.Milliseconds()), call.Session)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := j.write(ctx, input); err != nil {
		return core.Failf(core.CodeIO, "Writing to %s failed: %v. Read its output, or kill it, with job.", j.id, err), nil
	}
	quiet := cmp.Or(time.Duration(in.QuietMS)*time.Millisecond, stdinQuiet)
	note := j.await(ctx, call, from, until, quiet)
	text := cmp.Or(j.read(), "(no output)\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if !j.running() {
		s.drop(call.Session.ID, j) // nothing is left to read
	}
	return core.TextResult(text + "[" + j.id + " " + j.state() + note + "]"), nil
}

// write types input. What a program does not read stays in the way of the next
// call.
func (j *job) write(ctx context.Context, input string) error {
	if input == "" {
		return nil
	}
	select {
	case j.writing <- struct{}{}:
	case <-ctx.Done():
		return errors.New("it has not read what was written before")
	}
	if j.isShell {
		j.typed += strings.ReplaceAll(input, "\r", "\n")
	}
	done := make(chan error, 1)
	go func() { // ends with the job, which closes the pipe
		defer func() { <-j.writing }()
		done <- j.send(input)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("it does not read its input")
	}
}

// send writes to the job's input. Without a terminal, the keys that are signals
// there are done here.
func (j *job) send(input string) error {
	if j.terminal {
		_, err := j.input.Write([]byte(input))
		return err
	}
	input = strings.ReplaceAll(input, "\r", "\n")
	for input != "" {
		at := strings.IndexAny(input, "\x03\x04")
		if at < 0 {
			_, err := j.input.Write([]byte(input))
			return err
		}
		if at > 0 {
			if _, err := j.input.Write([]byte(input[:at])); err != nil {
				return err
			}
		}
		if input[at] == 4 {
			return j.input.Close()
		}
		select {
		case <-j.interrupt:
			return errors.New("it was interrupted before")
		default:
			close(j.interrupt)
		}
		input = input[at+1:]
	}
	return nil
}

// await waits for output after the given position: for a match, or for quiet.
// It returns what the model should know.
func (j *job) await(ctx context.Context, call *core.Call, from int, until *regexp.Regexp, quiet time.Duration) string {
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	for {
		if until != nil && until.MatchString(j.since(from)) {
			return ""
		}
		select {
		case <-j.changed:
			silence.Reset(quiet)
		case <-silence.C:
			if until == nil {
				return ""
			}
		case <-j.done:
			return ""
		case <-call.Interrupt:
			return ", the user interrupted the wait"
		case <-ctx.Done():
			if until == nil {
				return ", still printing"
			}
			return fmt.Sprintf(", no match for %s in time", until.String()[len("(?m)"):])
		}
	}
}
