package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
)

// builtins returns some of the built-in tools.
func builtins(names ...string) core.ToolTable {
	var out []core.Tool
	all, _ := tools.Builtin(tools.Options{}).Tools(context.Background())
	for _, t := range all {
		for _, name := range names {
			if t.Definition().Name == name {
				out = append(out, t)
			}
		}
	}
	return core.StaticTools(out...)
}

// TestWhatSummariesKeep compares what the model gets after one, two and three
// summaries, the last in a resumed session, with golden files.
func TestWhatSummariesKeep(t *testing.T) {
	files := map[string]string{"a.txt": "one\n", "b.txt": "two\n", "gone.txt": "three\n", "sub/c.txt": "four\n"}
	setup := func(c *core.Config) {
		c.Env = env.NewMemory("/work", files)
		c.Profile = window(2000)
		c.Tools = builtins("read_file", "write_file", "apply_patch", "update_plan", "ask_user", "list_dir")
	}
	notes := coretest.Say("- Task: the notes")
	r := newRig(t, setup,
		coretest.CallTools(
			call("read_file", `{"file_path":"a.txt"}`), call("read_file", `{"file_path":"sub/c.txt"}`), call("list_dir", `{"path":"."}`),
			call("update_plan", `{"plan":[{"step":"Read","status":"completed"},{"step":"Write","status":"in_progress"}]}`)),
		coretest.CallTools(call("read_file", `{"file_path":"gone.txt"}`)),
		coretest.CallTools(
			call("write_file", `{"file_path":"a.txt","content":"new\n"}`), call("read_file", `{"file_path":"missing.txt"}`),
			call("apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: gone.txt\n*** Add File: added.txt\n+x\n*** End Patch\n"}`)),
		coretest.CallTools(call("ask_user", `{"question":"Tabs or spaces?"}`)),
		coretest.Say("I took tabs.\n\nShall I also format b.txt?"),
		notes,
		coretest.CallTools(call("read_file", `{"file_path":"b.txt"}`), call("update_plan", `{"plan":[{"step":"Write","status":"completed"},{"step":"Format","status":"pending"}]}`)),
		coretest.Say("Formatted."), notes,
	)
	r.submit(t, "Write a.txt anew.\n\nNever touch sub.")
	if err := r.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, "testdata/compacted_1.txt", []byte(shown(r.Messages())))
	r.submit(t, "Yes, format it.")
	if err := r.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, "testdata/compacted_2.txt", []byte(shown(r.Messages())))
	again := newRig(t, func(c *core.Config) { setup(c); c.Journal = r.journal }, coretest.Say("Done."), notes)
	if got, want := shown(again.Messages()), shown(r.Messages()); got != want {
		t.Errorf("resumed:\n%s\nwant:\n%s", got, want)
	}
	again.submit(t, strings.Repeat("A long message. ", 200)+"Its end.")
	if err := again.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, "testdata/compacted_3.txt", []byte(shown(again.Messages())))
}

// TestTheUsersMessagesAreKept: the latest of them, up to 20,000 tokens.
func TestTheUsersMessagesAreKept(t *testing.T) {
	turns := make([]coretest.Turn, 0, 40)
	for range 40 {
		turns = append(turns, coretest.Say("ok"))
	}
	r := newRig(t, func(c *core.Config) { c.Profile = window(200_000) }, append(turns, coretest.Say("notes"))...)
	for i := range 40 {
		r.submit(t, fmt.Sprintf("Message %d. %s", i, strings.Repeat("word ", 800)))
	}
	if err := r.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	text := shown(r.Messages())
	if strings.Contains(text, "Message 0.") || strings.Count(text, "Message 39.") != 1 || !strings.Contains(text, "earlier ones are left out") || len(text) < 80_000 {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

func shown(messages []model.Message) string {
	return sent(model.Request{Messages: messages}) + "\n"
}
