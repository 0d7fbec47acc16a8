//go:build unix

package root

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/store"
)

// driver is a model that never forgets what it asked for: each of its commands
// writes another number to the file effects. It uses subagents, and fills its
// window every few answers.
type driver struct {
	mu       sync.Mutex
	commands int
	answers  int
	asked    chan struct{} // receives when a request arrives, if somebody listens
}

var agentID = regexp.MustCompile(`Agent (agent-\d+) is running`)

func (d *driver) answer(r *modeltest.Request) modeltest.Turn {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body.Messages) < 2 {
		return modeltest.ServerError(500)
	}
	system := string(body.Messages[0].Content)
	rounds := 0 // since the last input
	for _, m := range body.Messages {
		if rounds++; m.Role == "user" {
			rounds = 0
		}
	}
	last := string(body.Messages[len(body.Messages)-1].Content)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers++
	t := modeltest.Turn{Usage: modeltest.Usage{Prompt: 100, Completion: 10}}
	if d.answers%5 == 0 {
		t.Usage.Prompt = 3900 // of 4000
	}
	switch running := agentID.FindStringSubmatch(last); {
	case strings.Contains(system, "You write the notes"):
		return modeltest.Turn{Text: []string{"- Task: the notes"}}
	case running != nil:
		t.Calls = d.calls("wait", map[string]string{"agent_id": running[1]})
	case strings.Contains(system, "Another agent gave you this task") && rounds > 0:
		t.Text = []string{"the report"}
	case rounds == 0 || rounds == 2:
		d.commands++
		t.Calls = d.calls("shell", map[string]string{"command": fmt.Sprintf("echo effect-%d- >>effects", d.commands)})
	case rounds == 4:
		t.Calls = d.calls("spawn_agent", map[string]string{"task": "work"})
	default:
		t.Text = []string{"Done."}
	}
	return t
}

func (d *driver) calls(name string, args map[string]string) []modeltest.Call {
	text, _ := json.Marshal(args) // strings can be marshalled
	return []modeltest.Call{{ID: fmt.Sprintf("call_%d", d.answers), Name: name, Args: []string{string(text)}}}
}

// TestKills kills the agent 300 times, with subagents and summaries under way:
// every session can be resumed, no command runs twice, and none without a record.
func TestKills(t *testing.T) {
	kills := 100
	if testing.Short() {
		kills = 5
	}
	for n := range 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			d := &driver{asked: make(chan struct{})}
			w := newDrivenWorld(t, d)
			r := rand.New(rand.NewPCG(2, uint64(n)))
			session := ""
			for i := range kills {
				args := []string{"--bare", "Begin"}
				if session != "" {
					args = []string{"--bare", "--resume", session, "Go on"}
				}
				a := w.exec(args...)
				d.killAt(a, r)
				if status := a.wait(); status.Signal() != syscall.SIGKILL && status.ExitStatus() != 0 {
					t.Fatalf("run %d: exit code %d: %s", i, status.ExitStatus(), a.read(a.stderr))
				}
				if session == "" {
					session = opened(a.read(a.stdout))
				}
			}
			last := w.exec("--bare", "--resume", session, "Go on")
			if status := last.wait(); status.ExitStatus() != 0 || !strings.Contains(last.read(last.stdout), `"type":"result","outcome":"done"`) {
				t.Errorf("the last run: exit code %d: %s", status.ExitStatus(), last.read(last.stderr))
			}
			w.gone()
			w.checkEffects(d.commands)
		})
	}
}

// killAt kills a command after some model calls, or after some time.
func (d *driver) killAt(a *command, r *rand.Rand) {
	requests, late := 1+r.IntN(9), time.Duration(r.IntN(15))*time.Millisecond
	var timeout <-chan time.Time
	if r.IntN(3) == 0 {
		timeout = time.After(time.Duration(r.IntN(250)) * time.Millisecond)
	}
	for range requests {
		select {
		case <-d.asked:
			continue
		case <-timeout:
			late = 0
		case <-a.done:
			return
		}
		break
	}
	select {
	case <-time.After(late):
		_ = a.cmd.Process.Kill() // an error says that it has ended
	case <-a.done:
	}
}

// opened returns the id of the session in a stream, or "".
func opened(stream string) string {
	first, _, _ := strings.Cut(stream, "\n")
	var init event.Event
	if json.Unmarshal([]byte(first), &init) != nil {
		return ""
	}
	return init.Session
}

// newDrivenWorld is newWorld with a driver as the model, whose window is small.
func newDrivenWorld(t *testing.T, d *driver) *world {
	t.Helper()
	w := newWorld(t, "[]")
	chat := modeltest.NewChatFunc(d.answer)
	chat.Models = []string{"fake-1"}
	url, stop, err := chat.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := writeSettings(w.home, url); err != nil {
		t.Fatal(err)
	}
	w.settings(map[string]any{"models": map[string]any{"fake-1": map[string]any{"contextWindow": 4000}}})
	return w
}

// settings adds to the user's settings.
func (w *world) settings(more map[string]any) {
	w.t.Helper()
	path := filepath.Join(w.home, ".agent", "settings.json")
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(data, &all); err != nil {
		w.t.Fatal(err)
	}
	for name, value := range more {
		all[name] = value
	}
	if data, err = json.Marshal(all); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// checkEffects compares what the commands did with the session logs.
func (w *world) checkEffects(commands int) {
	w.t.Helper()
	effects, err := os.ReadFile(filepath.Join(w.workspace, "effects"))
	if err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.home, ".agent", "sessions")
	list, err := store.List(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var logs []byte
	summaries, children := 0, 0
	for _, s := range list {
		if damage, err := store.Check(w.t.Context(), dir, s.ID); err != nil || damage != nil && !damage.Torn {
			w.t.Errorf("session %s: %+v, %v", s.ID, damage, err)
		}
		data, err := os.ReadFile(filepath.Join(dir, s.ID+".jsonl"))
		if err != nil {
			w.t.Fatal(err)
		}
		logs = append(logs, data...)
		summaries += bytes.Count(data, []byte(`"type":"compacted"`))
		if s.Parent != "" {
			children++
		}
	}
	ran := 0
	for n := 1; n <= commands; n++ {
		mark := fmt.Appendf(nil, "effect-%d-", n)
		times := bytes.Count(effects, mark)
		ran += times
		if times > 1 {
			w.t.Errorf("command %d ran %d times", n, times)
		}
		if times > 0 && !recorded(logs, mark) {
			w.t.Errorf("command %d ran without a record", n)
		}
	}
	w.t.Logf("%d of %d commands ran, %d subagents, %d summaries", ran, commands, children, summaries)
	if ran == 0 || children == 0 || summaries == 0 {
		w.t.Error("there was nothing to interrupt")
	}
}

// recorded reports whether the permission for a command is in the logs.
func recorded(logs, mark []byte) bool {
	for line := range bytes.Lines(logs) {
		if bytes.Contains(line, []byte(`"type":"permission"`)) && bytes.Contains(line, mark) {
			return true
		}
	}
	return false
}
