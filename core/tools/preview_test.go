package tools_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
	"github.com/seed-009c0928/agent/core/tools"
)

// TestPreview: the tools that change files tell what they would change, even of
// files that were not read, and then do it; what the user makes of it is written
// instead.
func TestPreview(t *testing.T) {
	t.Parallel()
	set := tools.Builtin(tools.Options{Unguarded: true})
	defer set.Close()
	all, _ := set.Tools(t.Context())
	for name, args := range map[string]string{
		"edit_file":   `{"file_path":"a.txt","old_string":"one","new_string":"ONE"}`,
		"write_file":  `{"file_path":"a.txt","content":"ONE\n"}`,
		"apply_patch": `{"patch":"*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch"}`,
	} {
		var tool core.Tool
		for _, candidate := range all {
			if candidate.Definition().Name == name {
				tool = candidate
			}
		}
		e := env.NewMemory("/w", map[string]string{"a.txt": "one\n"})
		call := &core.Call{ID: name, Name: name, Args: json.RawMessage(args), Env: e}
		changes, err := tool.(preview.Previewer).Preview(t.Context(), call)
		if err != nil || len(changes) != 1 || string(changes[0].After) != "ONE\n" {
			t.Fatalf("%s: preview %+v, %v", name, changes, err)
		}
		if data, _ := core.ReadFile(t.Context(), e.Files(), "a.txt", 100); string(data) != "one\n" {
			t.Errorf("%s: the preview wrote %q", name, data)
		}
		changes[0].After = []byte("mine\n")
		set.Amend(name, changes)
		result, err := tool.Run(t.Context(), call)
		if err != nil || result.Code != "" || !strings.Contains(model.Parts(result.Content).Text(), "The user changed this edit") || !strings.Contains(model.Parts(result.Content).Text(), "+mine") {
			t.Errorf("%s: result %+v, %v", name, result, err)
		}
		if data, _ := core.ReadFile(t.Context(), e.Files(), "a.txt", 100); string(data) != "mine\n" {
			t.Errorf("%s: wrote %q, want the user's version", name, data)
		}
	}
}

// TestPreviewGuarded: the preview of a session's call fails as the call would, if a
// file was not read.
func TestPreviewGuarded(t *testing.T) {
	t.Parallel()
	set := tools.Builtin(tools.Options{})
	defer set.Close()
	all, _ := set.Tools(t.Context())
	e := env.NewMemory("/w", map[string]string{"a.txt": "one\n"})
	call := &core.Call{ID: "1", Name: "write_file", Args: json.RawMessage(`{"file_path":"a.txt","content":"ONE\n"}`), Env: e}
	write := all[slices.IndexFunc(all, func(t core.Tool) bool { return t.Definition().Name == call.Name })].(preview.Previewer)
	if changes, err := write.Preview(t.Context(), call); err != nil || len(changes) != 1 {
		t.Errorf("without a session: %v, %v", changes, err)
	}
	call.Session.ID = "s"
	var fails *preview.Failure
	if changes, err := write.Preview(t.Context(), call); len(changes) > 0 || !errors.As(err, &fails) || !strings.Contains(fails.Text, "you have not read it") {
		t.Errorf("of a file that was not read: %v, %v", changes, err)
	}
}
