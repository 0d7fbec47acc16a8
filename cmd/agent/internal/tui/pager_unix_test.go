//go:build unix

package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

const (
	keyCtrlO = "\x0f"
	keyCtrlT = "\x14"
	keyPgDn  = "\x1b[6~"
)

// TestLinePager shows a long output on the alternate screen, and leaves the
// scrollback as it was.
func TestLinePager(t *testing.T) {
	t.Parallel()
	var output strings.Builder
	for i := range 300 {
		fmt.Fprintf(&output, "\\nline %d.", i)
	}
	s, asker := mustOpen(t, act{turns: []coretest.Turn{
		coretest.CallTools(toolCall("shell", `{"command":"make`+output.String()+`"}`)), coretest.Say("the end"),
	}})
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: s, Asker: asker})
	c.send("go\r")
	c.wait("the end", "Ctrl-O expands")
	before := c.all()
	c.send(keyCtrlO)
	c.wait("ran make", "line 0.", "1-22 of 301", "/ search · q closes")
	c.send(keyPgDn)
	c.wait("23-44 of 301", "line 40.")
	c.send("/LINE 27")
	c.wait("/LINE 27▏")
	c.send("\r")
	c.wait("line 27.", "29-50 of 301")
	c.send("n")
	c.wait("272-293 of 301", "line 270.")
	c.send("/nowhere\r")
	c.wait("not found: nowhere")
	c.resize(60, 12)
	c.wait("not found: nowhere")
	c.resize(80, 24)
	c.wait("not found: nowhere")
	c.send("q")
	c.wait("the end", "Ctrl-O expands")
	if after := c.all(); after != before {
		t.Errorf("after the pager the screen is\n%s\nbefore:\n%s", after, before)
	}
	c.send(keyCtrlT)
	c.wait("The conversation so far", "the end", "line 290.")
	c.send("g")
	c.wait("> go", "✓ shell make", "1-22 of")
	c.send("q/quit\r")
	if _, err := r.wait(t); err != nil {
		t.Error(err)
	}
	c.restored()
}

// TestPagerGolden draws the conversation in full at the usual sizes.
func TestPagerGolden(t *testing.T) {
	t.Parallel()
	events := []event.Event{
		{Body: event.User{Content: model.TextParts("Change it.")}},
		{Call: "1", Body: event.ToolUse{Name: "edit_file", Args: `{"file_path":"/w/a.go"}`}},
		{Call: "1", Body: event.ToolResult{Name: "edit_file", Content: model.TextParts("edited"), Meta: diffMeta("@@ -1,2 +1,2 @@\n context\n-old\n+new\n")}},
		{Call: "2", Body: event.ToolUse{Name: "shell", Args: `{"command":"make"}`}},
		{Call: "2", Body: event.ToolResult{Name: "shell", Content: model.TextParts("failed"), IsError: true}},
		{Body: event.Message{Content: model.TextParts("It is **changed**, and does not build.")}},
	}
	for _, size := range sizes {
		for _, theme := range []struct {
			name  string
			paint painter
		}{{"plain", painter{}}, {"colors", painter{colors: true}}} {
			s := newFakeSession()
			l := &lineScreen{driver: newDriver(newHost(t.Context(), Options{Session: s, Asker: NewAsker()}), newScene(theme.paint, size[0], "/w")), screen: &screen{out: &safeBuffer{}, width: size[0], height: size[1]}, editor: newEditor(theme.paint, nil), at: -1}
			l.openHistory(events)
			checkGolden(t, fmt.Sprintf("pager-%dx%d-%s", size[0], size[1], theme.name), l.pager.rows(theme.paint))
		}
	}
}

func diffMeta(diff string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"diff": json.RawMessage(quoted(diff))}
}
