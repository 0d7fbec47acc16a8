package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// TestKilledAfterEveryRecord kills the process of a session with reads, an edit, a
// command, a subagent that gets a second message, and a question after each of its records, and resumes the session
// in a copy of its directories, as on another machine. Whatever the moment: the session
// comes to its end, no side effect happens twice, and each request begins with the bytes
// of the one before.
func TestKilledAfterEveryRecord(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the session runs a shell")
	}
	t.Parallel()
	step := 1
	if testing.Short() {
		step = 7
	}
	var records int
	whole := newDurable(t)
	if out := durable(t, whole, 0); !strings.Contains(out, "records ") {
		t.Fatalf("without a kill: %s", out)
	} else if _, err := fmt.Sscanf(out[strings.Index(out, "records "):], "records %d", &records); err != nil || records < 40 {
		t.Fatalf("%d records, %v", records, err)
	}
	if effects, err := os.ReadFile(filepath.Join(whole, "work", "effects.txt")); string(effects) != "shell\nchild\nagain\ndeployed\n" {
		t.Fatalf("without a kill the effects are %q, %v", effects, err)
	}
	for at := 1; at <= records; at += step {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			t.Parallel()
			first := newDurable(t)
			durable(t, first, at)
			second := t.TempDir()
			if err := os.CopyFS(second, os.DirFS(first)); err != nil {
				t.Fatal(err)
			}
			if out := durable(t, second, 0); !strings.Contains(out, "done: All is done.") {
				t.Errorf("resumed: %s", out)
			}
			checkDurable(t, second)
		})
	}
}

func newDurable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "work", "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// durable runs the session in a process, which is killed after a record; 0 is none.
func durable(t *testing.T, dir string, at int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "AGENT_TEST_DURABLE="+dir, "AGENT_TEST_KILL_AT="+strconv.Itoa(at))
	out, err := cmd.CombinedOutput()
	if killed := err != nil && strings.Contains(err.Error(), "signal: killed"); killed != (at > 0) {
		t.Fatalf("killed %t at %d, error %v: %s", killed, at, err, out)
	}
	return string(out)
}

func checkDurable(t *testing.T, dir string) {
	t.Helper()
	effects, err := os.ReadFile(filepath.Join(dir, "work", "effects.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(effects)) {
		if seen[line] {
			t.Errorf("the effect %q happened twice: %q", line, effects)
		}
		seen[line] = true
	}
	log, err := os.ReadFile(filepath.Join(dir, "requests"))
	if err != nil {
		t.Fatal(err)
	}
	var before []byte
	for line := range bytes.Lines(log) {
		line = bytes.TrimSuffix(bytes.TrimSpace(line), []byte("]"))
		if !bytes.HasPrefix(line, before) {
			t.Errorf("the request\n%s\ndoes not begin with the one before\n%s", line, before)
		}
		before = line
	}
	// A message that was sent is read once, wherever the process ended.
	if sent := bytes.Contains(before, []byte("is running again.")); sent && !bytes.Contains(before, []byte("It was told 2 times.")) || bytes.Contains(before, []byte("It was told 3 times.")) {
		t.Errorf("the message was lost or doubled: %s", before[max(0, len(before)-2000):])
	}
	// A call of spawn_agent that was not begun is answered; any later one leads to a report.
	if !bytes.Contains(before, []byte("It reports:")) && !bytes.Contains(before, []byte(`"name":"spawn_agent","content":[{"type":"text","text":"The call was not run`)) {
		t.Errorf("the subagent was not resumed: %s", before[max(0, len(before)-2000):])
	}
}

// durableProcess runs the session of TestKilledAfterEveryRecord in dir.
func durableProcess(dir string) error {
	ctx := context.Background()
	at, err := strconv.Atoi(os.Getenv("AGENT_TEST_KILL_AT"))
	if err != nil {
		return err
	}
	requests, err := os.OpenFile(filepath.Join(dir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer requests.Close()
	deploy := core.NewTool(core.ToolDefinition{Name: "deploy", Description: "Deploys."},
		func(context.Context, *core.Call, struct{}) ([]core.Access, error) {
			return core.UnknownAccess("deploy"), nil
		},
		func(context.Context, *core.Call, struct{}) (core.Result, error) {
			f, err := os.OpenFile(filepath.Join(dir, "work", "effects.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return core.Result{}, err
			}
			_, err = f.WriteString("deployed\n")
			return core.TextResult("deployed"), errors.Join(err, f.Close())
		})
	a, err := agent.Open(ctx, agent.Options{Dir: filepath.Join(dir, "work"), Tools: []core.Tool{deploy}, Policy: durablePolicy{}})
	if err != nil {
		return err
	}
	defer a.Close()
	var records atomic.Int64
	open := func(id string) (core.Journal, core.ContextStore, error) {
		j, err := store.Create(filepath.Join(dir, "sessions"), id, store.Options{})
		if errors.Is(err, fs.ErrExist) {
			j, err = store.Open(filepath.Join(dir, "sessions"), id, store.Options{})
		}
		return killing{j, &records, int64(at)}, nil, err
	}
	journal, _, err := open("root")
	if err != nil {
		return err
	}
	s, err := a.NewSession(ctx, agent.SessionOptions{
		Provider: durableModel{requests}, ID: "root", Journal: journal,
		OpenSubagent: func(_ context.Context, id string) (core.Journal, core.ContextStore, error) { return open(id) },
		Asker: coretest.Asker(func(context.Context, core.Question) (core.Answer, error) {
			return core.Answer{Choice: core.ChoiceOnce}, nil
		}),
	})
	if err != nil {
		return err
	}
	in := core.TextInput("do the task")
	in.ID = "task"
	out, err := s.Submit(ctx, in)
	if err == nil {
		err = s.Close()
	}
	fmt.Printf("%s: %s\nrecords %d\n", out.Stop, out.Text, records.Load())
	return err
}

// durablePolicy asks about deploy, and allows all else.
type durablePolicy struct{}

func (durablePolicy) Decide(ctx context.Context, req core.PermissionRequest) core.Decision {
	if req.Tool == "deploy" {
		return coretest.AskAll.Decide(ctx, req)
	}
	return coretest.AllowAll.Decide(ctx, req)
}

// killing is a journal that kills the process after a record.
type killing struct {
	*store.Journal
	records *atomic.Int64
	at      int64
}

func (k killing) Append(ctx context.Context, e event.Event) error {
	err := k.Journal.Append(ctx, e)
	if k.records.Add(1) == k.at {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {} // until it is dead
	}
	return err
}

// durableModel answers by what the request has, so that it does not matter which
// process asks. It logs the requests of the root session.
type durableModel struct{ requests *os.File }

func (durableModel) Info() model.ProviderInfo { return model.ProviderInfo{Name: "test", Model: "m"} }

func (m durableModel) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	task := req.Messages[0].Parts.Text()
	turns := [][]model.ToolCall{
		{{Name: "read_file", Args: `{"file_path":"a.txt"}`}, {Name: "list_dir", Args: `{"path":"."}`}},
		{{Name: "edit_file", Args: `{"file_path":"a.txt","old_string":"two","new_string":"zwei"}`}},
		{{Name: "shell", Args: `{"command":"echo shell >>effects.txt"}`}},
		{{Name: "spawn_agent", Args: `{"task":"the part of the child"}`}},
		{{Name: "wait", Args: `{"agent_id":"` + runningAgent(req.Messages) + `"}`}},
		{{Name: "send_input", Args: `{"agent_id":"` + runningAgent(req.Messages) + `","message":"once more"}`}},
		{{Name: "wait", Args: `{"agent_id":"` + runningAgent(req.Messages) + `"}`}},
		{{Name: "deploy", Args: `{}`}, {Name: "read_file", Args: `{"file_path":"a.txt"}`}},
	}
	if strings.Contains(task, "child") {
		turns = [][]model.ToolCall{{{Name: "shell", Args: `{"command":"echo child >>effects.txt"}`}}, nil, {{Name: "shell", Args: `{"command":"echo again >>effects.txt"}`}}}
	} else {
		line, err := json.Marshal(append([]any{req.System}, anys(req.Messages)...))
		if err == nil {
			_, err = m.requests.Write(append(line, '\n'))
		}
		if err != nil {
			return func(yield func(model.Delta, error) bool) { yield(model.Delta{}, err) }
		}
	}
	answered := 0
	for _, msg := range req.Messages {
		if msg.Role == model.RoleAssistant {
			answered++
		}
	}
	turn := coretest.Say("All is done.")
	if strings.Contains(task, "child") {
		turn = coretest.Say(fmt.Sprintf("It was told %d times.", told(req.Messages)))
	}
	if answered < len(turns) && turns[answered] != nil {
		calls := slices.Clone(turns[answered])
		for i := range calls {
			calls[i].ID = fmt.Sprintf("call-%d-%d", answered, i)
		}
		turn = coretest.CallTools(calls...)
	}
	return coretest.Model(turn).Stream(context.Background(), req)
}

// told counts the messages to a subagent.
func told(messages []model.Message) (times int) {
	for _, m := range messages {
		if text := m.Parts.Text(); m.Role == model.RoleUser && (strings.Contains(text, "the part of the child") || text == "once more") {
			times++
		}
	}
	return times
}

// runningAgent returns the ID of the subagent that was started.
func runningAgent(messages []model.Message) string {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(model.ToolResult); ok {
				if _, after, ok := strings.Cut(r.Content.Text(), "Agent "); ok {
					id, _, _ := strings.Cut(after, " ")
					return id
				}
			}
		}
	}
	return "unknown"
}

func anys[T any](list []T) (all []any) {
	for _, v := range list {
		all = append(all, v)
	}
	return all
}
