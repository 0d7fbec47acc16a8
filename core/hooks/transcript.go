package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// transcript keeps a session in a file in the form of Claude Code's transcripts, for
// the hooks that read one: a line of JSON for each input, each part of an answer and
// each result. The file is brought up to date before hooks run, and is removed with
// the session.
type transcript struct {
	journal core.Journal // nil keeps none
	session core.SessionInfo

	mu     sync.Mutex
	dir    *sandbox.TempDir
	file   *os.File
	failed error
	after  event.Seq            // the last event in the file
	parent string               // the line before the next one
	inputs map[event.Seq]string // the line before each input
	ahead  string               // an answer in the file that is not yet in the journal
}

// line is a line of a transcript.
type line struct {
	Parent    *string   `json:"parentUuid"`
	Sidechain bool      `json:"isSidechain"`
	UserType  string    `json:"userType"`
	Cwd       string    `json:"cwd"`
	Session   string    `json:"sessionId"`
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype,omitempty"`
	Content   string    `json:"content,omitempty"`
	Summary   bool      `json:"isCompactSummary,omitempty"`
	Message   *message  `json:"message,omitempty"`
	UUID      string    `json:"uuid"`
	Time      time.Time `json:"timestamp"`
}

type message struct {
	Type    string         `json:"type,omitempty"`
	Role    string         `json:"role"`
	Model   string         `json:"model,omitempty"`
	Content any            `json:"content"`
	Usage   map[string]int `json:"usage,omitempty"`
}

// update brings the file up to date and returns its path; empty without a journal.
// Answer is what the model has just said, if the journal does not have it yet.
func (t *transcript) update(ctx context.Context, answer string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.journal == nil || t.failed != nil {
		return "", nil
	}
	if t.failed = t.write(ctx, answer); t.failed != nil {
		return "", t.failed
	}
	return t.file.Name(), nil
}

func (t *transcript) write(ctx context.Context, answer string) (err error) {
	if t.file == nil {
		if t.dir, err = sandbox.NewTempDir(); err != nil {
			return err
		}
		t.inputs = map[event.Seq]string{}
		if t.file, err = os.OpenFile(filepath.Join(t.dir.Path, t.session.ID+".jsonl"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600); err != nil {
			return err
		}
	}
	var lines []byte
	for e, err := range t.journal.Replay(context.WithoutCancel(ctx), t.after) {
		if err != nil {
			return err
		}
		t.after = e.Seq
		for _, l := range t.lines(e) {
			lines = append(append(lines, encode(l)...), '\n')
		}
	}
	if answer != "" && answer != t.ahead {
		t.ahead = answer
		l := t.line("assistant", time.Now(), &message{Type: "message", Role: "assistant", Content: blocks(block{"type": "text", "text": answer})})
		lines = append(append(lines, encode(l)...), '\n')
	}
	_, err = t.file.Write(lines)
	return err
}

// close removes the file.
func (t *transcript) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		_ = t.file.Close()
	}
	_ = t.dir.Remove() // or the next agent does
	t.failed = errors.New("the session is closed")
}

// line returns the next line.
func (t *transcript) line(kind string, at time.Time, m *message) line {
	l := line{
		Sidechain: len(t.session.AgentPath) > 0, UserType: "external", Cwd: t.session.Dir, Session: t.session.ID,
		Type: kind, Message: m, UUID: uuid.NewString(), Time: at.UTC(),
	}
	if parent := t.parent; parent != "" {
		l.Parent = &parent
	}
	t.parent = l.UUID
	return l
}

type block map[string]any

func blocks(list ...block) []block { return list }

// lines returns the lines of an event.
func (t *transcript) lines(e event.Event) (list []line) {
	add := func(kind string, m *message) { list = append(list, t.line(kind, e.Time, m)) }
	switch b := e.Recorded().(type) {
	case event.User:
		t.inputs[e.Seq] = t.parent
		add("user", &message{Role: "user", Content: b.Content.Text()})
	case event.Steering:
		add("user", &message{Role: "user", Content: b.Content.Text()})
	case event.Message:
		usage := map[string]int{
			"input_tokens": b.Usage.Input - b.Usage.CachedInput - b.Usage.CacheWrite, "cache_read_input_tokens": b.Usage.CachedInput,
			"cache_creation_input_tokens": b.Usage.CacheWrite, "output_tokens": b.Usage.Output,
		}
		ahead := t.ahead != "" && b.Content.Text() == t.ahead
		t.ahead = ""
		for _, part := range b.Content {
			if _, is := part.(model.Text); is && ahead {
				continue // it is in the file
			}
			if said := t.part(part); said != nil {
				add("assistant", &message{Type: "message", Role: "assistant", Model: b.Model, Content: blocks(said), Usage: usage})
			}
		}
	case event.ToolResult:
		add("user", &message{Role: "user", Content: blocks(block{
			"type": "tool_result", "tool_use_id": e.Call, "content": b.Content.Text(), "is_error": b.IsError,
		})})
	case event.Compacted:
		boundary := t.line("system", e.Time, nil)
		boundary.Subtype, boundary.Content = "compact_boundary", "Conversation compacted"
		summary := t.line("user", e.Time, &message{Role: "user", Content: b.Content.Text()})
		summary.Summary = true
		list = append(list, boundary, summary)
	case event.Rewound:
		t.parent = t.inputs[b.Input]
	}
	return list
}

// part returns a part of an answer; nil for those that only their provider reads.
func (t *transcript) part(p model.Part) block {
	switch p := p.(type) {
	case model.Text:
		return block{"type": "text", "text": p.Text}
	case model.Reasoning:
		return block{"type": "thinking", "thinking": p.Text}
	case model.ToolCall:
		call := Call{ID: p.ID, Name: p.Name, Args: json.RawMessage(p.Args), Dir: t.session.Dir}
		if !json.Valid(call.Args) {
			call.Args = json.RawMessage("{}")
		}
		return block{"type": "tool_use", "id": p.ID, "name": call.name(false), "input": call.inputs(false)[0]}
	}
	return nil
}
