//go:build unix

package envtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
)

// TestTerminal tests commands on a terminal.
func TestTerminal(t *testing.T, factory func(t *testing.T) core.Environment) {
	e := factory(t)
	defer e.Close()
	for _, c := range []struct {
		cmd  core.Command
		want string
		code int
	}{
		{core.Command{Script: "test -t 0 && test -t 1 && test -t 2 && echo three; stty size; cat; echo end; exit 3"}, "three\n40 120\nend\n", 3},
		{core.Command{Script: "stty size", Rows: 7, Cols: 33}, "7 33\n", 0},
		{core.Command{Script: "echo to the terminal >/dev/tty"}, "to the terminal\n", 0},
		{core.Command{Script: "read -r a; echo got $a; read -r b; echo got $b; cat", Stdin: strings.NewReader("one\ntwo\nrest\n")}, "got one\ngot two\nrest\n", 0},
		{core.Command{Script: `printf '%s' "$ODD"`, Env: []string{"ODD=a\r\n\x03\x04\x11'" + strings.Repeat("long ", 2000)}}, "a\r\n\x03\x04\x11'" + strings.Repeat("long ", 2000), 0},
		{core.Command{Argv: []string{"sh", "-c", "kill -TERM $$"}}, "", -1},
	} {
		c.cmd.Terminal = true
		out, exit, err := core.Exec(t.Context(), e, c.cmd)
		if err != nil || string(out) != c.want || exit.Code != c.code {
			t.Errorf("%q: %q, %+v, %v, want %q and code %d", c.cmd.Script, out, exit, err, c.want, c.code)
		}
	}
	testTyping(t, e)
}

// testTyping tests keys, an interrupt and a cancel while a command runs.
func testTyping(t *testing.T, e core.Environment) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := func(cmd core.Command) (core.Process, *bufio.Reader) {
		out, stdout := io.Pipe()
		cmd.Stdout, cmd.Terminal = stdout, true
		p, err := e.Start(ctx, cmd)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q: %q, %v", cmd.Script, line, err)
		}
		return p, lines
	}

	const keys = "\x10\x11\x1e\x1f\x03\r\x04q" // with those that leave a container
	stdin, keyboard := io.Pipe()
	p, out := start(core.Command{Script: "stty -icanon -isig -ixon -icrnl; echo ready; dd bs=1 count=8 2>/dev/null", Stdin: stdin})
	if _, err := io.WriteString(keyboard, keys); err != nil {
		t.Error(err)
	}
	seen := make([]byte, len(keys))
	if _, err := io.ReadFull(out, seen); err != nil || string(seen) != keys {
		t.Errorf("the keys %q arrive as %q, %v", keys, seen, err)
	}
	keyboard.Close()
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		t.Errorf("after the keys: %+v, %v", exit, err)
	}

	interrupt := make(chan struct{})
	p, out = start(core.Command{Script: "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 1; done", Interrupt: interrupt})
	close(interrupt)
	if line, err := out.ReadString('\n'); err != nil || line != "interrupted\n" {
		t.Errorf("after an interrupt: %q, %v", line, err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 5 {
		t.Errorf("after an interrupt: %+v, %v", exit, err)
	}

	p, _ = start(core.Command{Script: "echo ready; sleep 300"})
	cancel()
	if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
}
