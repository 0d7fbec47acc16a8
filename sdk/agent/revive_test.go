package agent_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// journals are the logs of a host, by session.
type journals struct {
	mu  sync.Mutex
	all map[string]*coretest.MemoryJournal
}

func (j *journals) open(_ context.Context, id string) (core.Journal, core.ContextStore, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all[id] == nil {
		j.all[id] = &coretest.MemoryJournal{}
	}
	return j.all[id], nil, nil
}

// parent is a model whose root session starts an agent, waits for it and repeats the
// result; later it uses it again.
func parent(req *model.Request) coretest.Turn {
	text := last(req)
	switch {
	case isChild(req):
		return coretest.Say("The child read: " + text)
	case text == "go":
		return coretest.CallTools(spawn("count", ""))
	case text == "background":
		return coretest.CallTools(spawn("count", `,"background":true`))
	case strings.Contains(text, "in the background"):
		return coretest.Say("It works.")
	case text == "again":
		return coretest.CallTools(on("send_input", "agent-1", `,"message":"once more"`))
	case strings.Contains(text, "is running"):
		return coretest.CallTools(on("wait", "agent-1", ""))
	case text == "close":
		return coretest.CallTools(on("close_agent", "agent-1", ""))
	}
	return coretest.Say(text)
}

// reopened opens the session of the journals in another process.
func (j *journals) reopened(t *testing.T) *agent.Session {
	t.Helper()
	a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Policy: coretest.AllowAll})
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := j.open(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: byRequest(parent), ID: "root", Journal: root, OpenSubagent: j.open})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = a.Close()
	})
	return s
}

// TestAgentsOfAnotherProcess: the agents of a session are there when it is resumed.
func TestAgentsOfAnotherProcess(t *testing.T) {
	say := func(t *testing.T, s *agent.Session, text, want string) {
		t.Helper()
		out, err := s.Submit(t.Context(), core.TextInput(text))
		if err != nil || !strings.Contains(out.Text, want) {
			t.Errorf("to %q the session says %q, %v; expected %q", text, out.Text, err, want)
		}
	}
	recorded := func(t *testing.T) *journals {
		j := &journals{all: map[string]*coretest.MemoryJournal{}}
		s := j.reopened(t)
		say(t, s, "go", "The child read: count")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return j
	}
	t.Run("done", func(t *testing.T) {
		s := recorded(t).reopened(t)
		say(t, s, "again", "Agent agent-1 is done (1 turns). It reports:\n\nThe child read: once more")
		say(t, s, "go", "once more") // the new one is agent-2, and the model waits for agent-1
		say(t, s, "close", "Agent agent-1 is closed")
		say(t, s, "again", `There is no agent "agent-1". Agents: agent-2`)
	})
	t.Run("without its log", func(t *testing.T) {
		j := recorded(t)
		j.all = map[string]*coretest.MemoryJournal{"root": j.all["root"]}
		s := j.reopened(t)
		say(t, s, "again", "the agent agent-1 is lost with the process that it worked in: its session log holds no records")
		say(t, s, "close", "Agent agent-1 is closed")
	})
	t.Run("isolated, and killed", func(t *testing.T) {
		j := recorded(t)
		var lines []string
		for _, line := range j.all["root"].Lines() {
			lines = append(lines, strings.ReplaceAll(line, `\"task\":\"count\"`, `\"task\":\"count\",\"isolation\":\"worktree\"`))
			if strings.Contains(line, `"type":"subagent_start"`) {
				break
			}
		}
		killed := journalOf(t, lines)
		j.all["root"] = killed
		s := j.reopened(t)
		if _, err := s.Submit(t.Context(), core.Input{}); err != nil {
			t.Fatal(err)
		}
		const lost = "its copy of the workspace is gone, with what it changed there"
		var told bool
		for _, m := range s.Messages() {
			told = told || strings.Contains(m.Parts.Text(), lost)
		}
		if !told || !strings.Contains(strings.Join(killed.Lines(), "\n"), `"outcome":"aborted","error":"the agent agent-1 is lost with the process that it worked in: `+lost) {
			t.Errorf("told %t; the record is %s", told, killed.Lines())
		}
	})
}

// TestNoticeOfABackgroundAgent: the session is told once that an agent is done, wherever
// the process ended after that.
func TestNoticeOfABackgroundAgent(t *testing.T) {
	count := func(s *agent.Session) (n int) {
		for _, m := range s.Messages() {
			if m.Role == model.RoleUser { // the model repeats it
				n += strings.Count(m.Parts.Text(), "Agent agent-1 is done (completed)")
			}
		}
		return n
	}
	whole := &journals{all: map[string]*coretest.MemoryJournal{}}
	s := whole.reopened(t)
	if _, err := s.Submit(t.Context(), core.TextInput("background")); err != nil {
		t.Fatal(err)
	}
	s.AwaitBackground(t.Context())
	if _, err := s.Submit(t.Context(), core.Input{}); err != nil || count(s) != 1 {
		t.Fatalf("told %d times, %v", count(s), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lines, done := whole.all["root"].Lines(), false
	for at, line := range lines {
		if done = done || strings.Contains(line, `"type":"subagent_end"`); !done {
			continue
		}
		killed := &journals{all: maps.Clone(whole.all)}
		killed.all["root"] = journalOf(t, lines[:at+1])
		resumed := killed.reopened(t)
		for range 2 {
			if _, err := resumed.Submit(t.Context(), core.TextInput("what now?")); err != nil || count(resumed) != 1 {
				t.Errorf("after record %d the session is told %d times, %v", at+1, count(resumed), err)
			}
		}
	}
	if !done {
		t.Error("no end of the agent is recorded")
	}
}

// journalOf returns a journal with these records.
func journalOf(t *testing.T, lines []string) *coretest.MemoryJournal {
	t.Helper()
	j := &coretest.MemoryJournal{}
	for _, line := range lines {
		var e event.Event
		if err := e.UnmarshalJSON([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// TestAgentsOfTheOriginal: a fork does not use the agents of the session that it is a
// copy of.
func TestAgentsOfTheOriginal(t *testing.T) {
	home := t.TempDir()
	a, err := agent.Open(t.Context(), agent.Options{Dir: t.TempDir(), Home: home, Policy: coretest.AllowAll})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	_, s := talk(t, a, agent.SessionOptions{Provider: byRequest(parent)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fork, err := agent.ForkSession(t.Context(), home, s.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{s.ID(): "The child read: once more", fork: "it belongs to session " + s.ID()} {
		resumed, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: byRequest(parent), Resume: id})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := resumed.Submit(t.Context(), core.TextInput("again")); err != nil || !strings.Contains(out.Text, want) {
			t.Errorf("%q, %v; expected %q", out.Text, err, want)
		}
		if err := resumed.Close(); err != nil {
			t.Error(err)
		}
	}
}
