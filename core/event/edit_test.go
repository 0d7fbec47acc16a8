package event_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
)

func TestEditsOf(t *testing.T) {
	t.Parallel()
	diff := "diff a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n@@ -10,2 +10,3 @@\n ten\n-end\n\\ No newline at end of file\n+end\n+more\n\\ No newline at end of file\n"
	want := []event.Edit{
		{Path: "/w/x", Line: 1, Kind: "modify", Old: "one\ntwo\nthree\n", New: "one\nzwei\nthree\n"},
		{Path: "/w/x", Line: 10, Kind: "modify", Old: "ten\nend", New: "ten\nend\nmore"},
	}
	if got := event.EditsOf("/w/x", "modify", diff); !slices.Equal(got, want) {
		t.Errorf("edits %+v", got)
	}
	meta := map[string]json.RawMessage{}
	event.EditsMeta(meta, want)
	if got := (&event.ToolResult{Meta: meta}).Edits(); !slices.Equal(got, want) {
		t.Errorf("edits of a result %+v", got)
	}
	if got := event.EditsOf("x", "create", ""); got != nil {
		t.Errorf("edits of nothing %+v", got)
	}
}
