//go:build unix

package tui

import (
	"testing"

	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// TestLineLeaveEndsWork: what ends with the session is named before it is left.
func TestLineLeaveEndsWork(t *testing.T) {
	t.Parallel()
	work := []sessions.Work{
		{ID: "job-1", Kind: "command", Title: "npm run dev", Running: true},
		{ID: "job-2", Kind: "command", Title: "make test", State: "ended with exit code 2"},
		{ID: "a1b2", Kind: "agent", Title: "explore", Running: true},
	}
	for _, tt := range []struct {
		name   string
		detach bool
		keys   []string // each after the question
		last   string
	}{
		{"Ctrl-D", false, []string{"\x04"}, "y"},
		{"Ctrl-C", false, []string{keyCtrlC + keyCtrlC}, keyCtrlC},
		{"quit", false, []string{"/quit\r"}, "\r"},
		{"a no stays", false, []string{"\x04", "n"}, "y"},
		{"a session that continues", true, nil, "\x04"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newFakeSession()
			s.work = work
			c := newConsole(t, 80, 24)
			r := c.start(t.Context(), Options{Session: s, Asker: NewAsker(), Detach: tt.detach})
			for _, keys := range tt.keys {
				if c.send(keys); keys == "n" {
					c.gone("Leave this session?")
					c.send("/quit\r")
				}
				c.wait("? Leave this session?", "It ends job-1: npm run dev", "It ends the subagent explore", "y yes")
				lacks(t, c.screen(), "make test")
			}
			c.send(tt.last)
			if next, err := r.wait(t); err != nil || next.Kind != NextQuit {
				t.Errorf("Run = %+v, %v; want quit", next, err)
			}
			c.restored()
		})
	}
}
