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

// TestRepeatedReads: what the conversation has already is not sent again, unless
// the file changed, or a summary replaced it.
func TestRepeatedReads(t *testing.T) {
	text := strings.Repeat("a line of the file\n", 40)
	memory := env.NewMemory("/work", map[string]string{"a.txt": text, "same.txt": text, "short.txt": "x\n"})
	read := func(args string) coretest.Turn { return coretest.CallTools(call("read_file", args)) }
	setup := func(c *core.Config) {
		c.Env, c.Profile, c.Tools = memory, window(4000), builtins("read_file")
	}
	var got []string
	steps := []struct {
		args    string
		content string // written before, if not empty
		brief   bool
	}{
		{args: `{"file_path":"a.txt"}`},
		{args: `{"file_path":"a.txt"}`, brief: true},
		{args: `{"file_path":"/work/a.txt","offset":1,"limit":2000}`, brief: true},
		{args: `{"file_path":"./a.txt","offset":3}`},
		{args: `{"file_path":"a.txt","offset":3}`, brief: true},
		{args: `{"file_path":"same.txt"}`},
		{args: `{"file_path":"short.txt"}`},
		{args: `{"file_path":"short.txt"}`},
		{args: `{"file_path":"a.txt"}`, content: strings.Replace(text, "line", "LINE", 1)},
		{args: `{"file_path":"a.txt"}`, brief: true},
		{args: `{"file_path":"a.txt"}`, content: text, brief: true}, // as in the beginning
	}
	var turns []coretest.Turn
	for _, s := range steps {
		turns = append(turns, read(s.args), coretest.Say("ok"))
	}
	turns = append(turns, coretest.Say("notes"), read(steps[0].args), coretest.Say("ok"))
	r := newRig(t, setup, turns...)
	last := func(r *rig) string {
		requests := r.model.Requests()
		all := results(requests[len(requests)-1])
		return all[len(all)-1].Content.Text()
	}
	for _, s := range steps {
		if s.content != "" {
			if err := memory.Files().Write(t.Context(), "a.txt", strings.NewReader(s.content), 0); err != nil {
				t.Fatal(err)
			}
		}
		r.submit(t, "read "+s.args)
		got = append(got, last(r))
		if brief := strings.HasPrefix(last(r), "Unchanged:"); brief != s.brief {
			t.Errorf("%s: %.80q", s.args, last(r))
		}
	}
	if !strings.Contains(got[1], "call-1-1") {
		t.Errorf("no pointer in %q", got[1])
	}
	if err := r.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	r.submit(t, "again")
	if !strings.Contains(last(r), "a line of the file") {
		t.Errorf("after a summary: %.80q", last(r))
	}
	again := newRig(t, func(c *core.Config) { setup(c); c.Journal = r.journal }, read(steps[0].args), coretest.Say("ok"))
	again.submit(t, "once more")
	if !strings.HasPrefix(last(again), "Unchanged:") {
		t.Errorf("in a resumed session: %.80q", last(again))
	}
}

// TestUnboundedConversation: what no model can take is dropped from memory, the same
// in a resumed session.
func TestUnboundedConversation(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some hundred MB")
	}
	var turns []coretest.Turn
	for range 9 {
		turns = append(turns, coretest.Say("ok"))
	}
	r := newRig(t, func(c *core.Config) { c.Profile = window(0) }, turns...)
	for i := range 9 {
		r.submit(t, fmt.Sprintf("Message %d. %s", i, strings.Repeat("word ", 1<<20)))
	}
	text := shown(r.Messages())
	if len(text) > 32<<20 || !strings.Contains(text, "too long for any model") || !strings.Contains(text, "Message 8.") || strings.Contains(text, "Message 0.") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
	again := newRig(t, func(c *core.Config) { c.Profile, c.Journal = window(0), r.journal })
	if shown(again.Messages()) != text {
		t.Error("the resumed session has another conversation")
	}
}
