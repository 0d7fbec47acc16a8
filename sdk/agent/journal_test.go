package agent_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestJournalOfTheHost: a host keeps sessions and those of their subagents in journals
// of its own, which hold no secrets.
func TestJournalOfTheHost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	journals := map[string]*coretest.MemoryJournal{"mine": {}}
	open := func(p model.Provider) *agent.Session {
		a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Policy: coretest.AllowAll, Secrets: []string{"correct horse"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		n := 0
		s, err := a.NewSession(t.Context(), agent.SessionOptions{
			Provider: p, ID: "mine", Journal: journals["mine"], Store: &coretest.MemoryStore{},
			Clock: func() time.Time { return time.Unix(1, 0) },
			NewID: func() string { n++; return strings.Repeat("x", n) },
			OpenSubagent: func(_ context.Context, id string) (core.Journal, core.ContextStore, error) {
				mu.Lock()
				defer mu.Unlock()
				journals[id] = &coretest.MemoryJournal{}
				return journals[id], nil, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	spawn := coretest.CallTools(model.ToolCall{ID: "1", Name: "spawn_agent", Args: `{"task":"the correct horse"}`})
	s := open(coretest.Model(spawn, coretest.Say("I am the child."), coretest.Say("Done."), coretest.Say("Done.")))
	if _, err := s.Submit(t.Context(), core.TextInput("say correct horse")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(journals) != 2 {
		t.Fatalf("journals %v", journals)
	}
	for id, j := range journals {
		if len(j.Lines()) == 0 {
			t.Errorf("session %s has no record", id)
		}
		for _, line := range j.Lines() {
			if strings.Contains(line, "correct horse") || !strings.Contains(line, `"session":"`+id+`"`) || !strings.Contains(line, "1970-01-01") {
				t.Errorf("session %s has the record %s", id, line)
			}
		}
	}
	again := open(coretest.Model(coretest.Say("Again.")))
	defer again.Close()
	if again.Opened() == 1 || again.State() != core.StateIdle {
		t.Errorf("the session is not resumed: opened at %d, state %s", again.Opened(), again.State())
	}
	again.Note(t.Context(), event.Host{Name: "example.com/ticket"})
	if out, err := again.Submit(t.Context(), core.TextInput("and?")); err != nil || out.Text != "Again." {
		t.Errorf("resumed: %+v, %v", out, err)
	}
}
