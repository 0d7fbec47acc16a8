package chat

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
)

func TestDiffReport(t *testing.T) {
	long := strings.Repeat("+line\n", maxDiffRows+1)
	turns := []changes.Turn{{Seq: 1, Input: "nothing"}, {Seq: 5, Input: "edit it", Changes: []changes.Change{{FilesChanged: event.FilesChanged{
		Files: []event.FileChange{
			{Path: "a.go", Kind: "modify", Added: 1, Removed: 1, Diff: "--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-```\n+b\n"}, {Path: "big.txt", Kind: "create", Added: maxDiffRows + 1, Diff: long},
		},
	}}}}}
	got := diffReport(turns, "ID")
	for _, want := range []string{"**#5** edit it", "a.go", "````diff\n--- a/a.go", "+b\n````", "big.txt", "The diffs of 1 file are left out; `agent sessions diff ID` shows all."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "nothing") || strings.Contains(got, "+line") {
		t.Errorf("too much:\n%s", got)
	}
	if got := diffReport(turns[:1], "ID"); got != "This session has changed no files." {
		t.Errorf("without changes: %q", got)
	}
}
