package chat

import (
	"context"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// TestMentionOfASymbol: a symbol is suggested among the files, and its lines are attached.
func TestMentionOfASymbol(t *testing.T) {
	a, _ := workspace(t, map[string]string{"a.go": "package a\n\nfunc Compute() {\n}\n", "notes.txt": "x\n"})
	var find symbols = func(_ context.Context, name string) []graph.Node {
		if !strings.Contains("compute", strings.ToLower(name)) {
			return nil
		}
		return []graph.Node{{ID: "go:a.go#Compute", File: "a.go", Line: 3, EndLine: 4}}
	}
	list := &fileList{env: a.Env(), find: find}
	for query, want := range map[string]string{"comp": "a.go#Compute", "a.go#Co": "a.go#Compute", "notes": "notes.txt"} {
		if got := strings.Join(list.complete(t.Context(), query), ", "); got != want {
			t.Errorf("%s completes to %q, want %q", query, got, want)
		}
	}
	none := func(string) (model.Parts, string, error) { return nil, "", nil }
	in, notes, err := expand(t.Context(), a, "explain @a.go#Compute, please", find, none)
	if want := "<file path=\"a.go\" lines=\"3-4\">\nfunc Compute() {\n}\n</file>"; err != nil || !strings.Contains(in.Content.Text(), want) {
		t.Errorf("attached: %q, %v, want %q", in.Content.Text(), err, want)
	}
	if len(notes) != 1 || notes[0] != "@a.go: 2 lines" {
		t.Errorf("notes %q", notes)
	}
	if _, notes, err = expand(t.Context(), a, "@a.go#Other", find, none); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "no such file") {
		t.Errorf("an unknown symbol: %q, %v", notes, err)
	}
}
