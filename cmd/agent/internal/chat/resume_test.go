package chat

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func TestPickSession(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	var out bytes.Buffer
	s := &cmdutil.IO{Out: &out, Err: &out, InTTY: true, OutTTY: true, Cwd: dir, Env: func(string) string { return home }}
	pick := func(answer string) (string, error) {
		out.Reset()
		s.In = strings.NewReader(answer)
		return pickSession(t.Context(), s, "")
	}
	if _, err := pick("\n"); cmdutil.ExitCode(err) != cmdutil.ExitError || !strings.Contains(err.Error(), "no session to resume in ") {
		t.Errorf("without sessions: %v", err)
	}
	keep := func(id string, bodies ...event.Body) {
		t.Helper()
		j, err := store.Create(agent.SessionsDir(home), id, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, body := range append([]event.Body{event.SessionStart{Cwd: s.WorkDir(""), Provider: "local", Model: "m"}}, bodies...) {
			e := event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Now(), Session: id, Required: true, Body: body}
			if err := j.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	keep("left") // without an input: it is not offered
	if _, err := pick("1\n"); err == nil {
		t.Error("a session without an input is offered")
	}
	keep("one", event.User{Content: model.TextParts("fix the bug")})
	for answer, want := range map[string]string{"1\n": "one", "\n": "one", "other\n": "other"} {
		if id, err := pick(answer); err != nil || id != want {
			t.Errorf("answer %q: %q, %v", answer, id, err)
		}
	}
	if _, err := pick(""); err == nil || !strings.HasSuffix(out.String(), "Session (number or ID) [1]: \n") {
		t.Errorf("end of input: %v, printed %q", err, &out)
	}
}

// TestSessionPage: what is shown of a session is what the user entered, without the
// context that was added to it.
func TestSessionPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := store.Create(dir, "one", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range []event.Body{
		event.SessionStart{Provider: "local", Model: "m"},
		event.User{Content: model.Parts{model.Text{Text: "fix it"}, model.Text{Text: "<context source=\"undo\" trusted=true>\nThe user took back a.txt.\n</context>"}}},
		event.Message{Content: model.TextParts("Fixed.")},
	} {
		if err := j.Append(t.Context(), event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Now(), Session: "one", Required: true, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := sessionPage(t.Context(), dir, store.Summary{ID: "one"}), "1 input, 0 files changed\n\n**>** fix it\n\nFixed."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResumeNeedsATerminal(t *testing.T) {
	o := &resumeOptions{Options: run.NewOptions(&cmdutil.IO{InTTY: true})}
	if err := o.run(t.Context(), []string{"one"}); cmdutil.ExitCode(err) != cmdutil.ExitUsage || !strings.Contains(err.Error(), "agent exec --resume ID PROMPT") {
		t.Errorf("error %v", err)
	}
}
