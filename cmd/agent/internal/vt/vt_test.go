package vt_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
)

func TestTerminal(t *testing.T) {
	for _, tt := range []struct{ name, in, screen, all string }{
		{"lines", "one\r\ntwo", "one\ntwo", "one\ntwo"},
		{"a line that is too long", "12345678901", "1234567890\n1", "1234567890\n1"},
		{"scrolling", "1\r\n2\r\n3\r\n4", "2\n3\n4", "1\n2\n3\n4"},
		{"writing over", "abc\rX", "Xbc", "Xbc"},
		{"wide characters", "世界x\x1b[1A", "世界x", "世界x"},
		{"moving and erasing", "one\r\ntwo\x1b[1A\r\x1b[KX\x1b[1B", "X\ntwo", "X\ntwo"},
		{"erasing below", "one\r\ntwo\x1b[1A\r\x1b[J", "", ""},
		{"erasing all", "one\r\ntwo\x1b[H\x1b[2Jx", "x", "x"},
		{"a title", "\x1b]2;my title\ax", "x", "x"},
	} {
		for _, size := range []int{1, 2, len(tt.in)} { // sequences come in pieces, too
			term := vt.New(10, 3)
			for rest := tt.in; rest != ""; {
				n := min(size, len(rest))
				term.Write(rest[:n])
				rest = rest[n:]
			}
			if got := term.Screen(); got != tt.screen {
				t.Errorf("%s, in pieces of %d: the screen shows %q, want %q", tt.name, size, got, tt.screen)
			}
			if got := term.All(); got != tt.all {
				t.Errorf("%s, in pieces of %d: all is %q, want %q", tt.name, size, got, tt.all)
			}
			if len(term.Unknown) > 0 {
				t.Errorf("%s: unknown %q", tt.name, term.Unknown)
			}
		}
	}
}

func TestStyleAndState(t *testing.T) {
	term := vt.New(10, 2)
	term.Write("\x1b[?25l\x1b[?2004h\a\x1b]9;look\a\x1b]0;title\a\x1b[1m\x1b[31ma\x1b[0mb\x1b[5Zc")
	cells := term.Lines()[0]
	if cells[0] != (vt.Cell{Text: "a", Style: "1;31"}) || cells[1] != (vt.Cell{Text: "b"}) {
		t.Errorf("cells %+v", cells)
	}
	if !term.Hidden || !term.Paste || term.Bells != 1 || term.Title != "title" || !term.Styled ||
		len(term.Notices) != 1 || term.Notices[0] != "look" || len(term.Unknown) != 1 {
		t.Errorf("state %+v", term)
	}
}

func TestLive(t *testing.T) {
	live := vt.NewLive(10, 2)
	go func() {
		for _, part := range []string{"one\r\n", "two\r\nth", "\x1b[1m", "ree\x1b[m"} {
			_, _ = live.Write([]byte(part))
		}
	}()
	if err := live.Wait(t.Context(), "one", "three"); err != nil { // the first line is in the scrollback
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := live.Wait(ended, "four"); err == nil || !strings.Contains(err.Error(), `"four"`) || !strings.Contains(err.Error(), "three") {
		t.Errorf("error %v", err)
	}
}
