package chat

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/core/event"
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
	j, err := store.Create(agent.SessionsDir(home), "one", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	start := event.Event{V: event.Version, Seq: 1, Time: time.Now(), Session: "one", Required: true, Body: event.SessionStart{Cwd: s.WorkDir(""), Provider: "local", Model: "m"}}
	if err := j.Append(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{"1\n": "one", "\n": "one", "other\n": "other"} {
		if id, err := pick(answer); err != nil || id != want {
			t.Errorf("answer %q: %q, %v", answer, id, err)
		}
	}
	if _, err := pick(""); err == nil || !strings.HasSuffix(out.String(), "Session (number or ID) [1]: \n") {
		t.Errorf("end of input: %v, printed %q", err, &out)
	}
}

func TestResumeNeedsATerminal(t *testing.T) {
	o := &resumeOptions{Options: run.NewOptions(&cmdutil.IO{InTTY: true})}
	if err := o.run(t.Context(), []string{"one"}); cmdutil.ExitCode(err) != cmdutil.ExitUsage || !strings.Contains(err.Error(), "agent exec --resume ID PROMPT") {
		t.Errorf("error %v", err)
	}
}
