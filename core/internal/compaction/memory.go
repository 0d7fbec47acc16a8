package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Limits of what a Memory keeps.
const (
	maxUserTokens = 20_000 // of the user's messages
	maxFiles      = 200    // of those read, and of those changed; the latest
	maxQuestions  = 10
)

// Memory is what every summary of a session holds word for word: the user's
// messages, the plan, which files were read and changed, and open questions. It
// is built from the session's events, so it survives any number of summaries, and
// a resumed session has the same. It is safe for concurrent use; the zero value is
// empty.
type Memory struct {
	Dir string // the paths of files below it are shown relative to it

	mu sync.Mutex
	Notes
}

// Notes are what a [Memory] holds at one moment. Their lists are shared: what is in
// one never changes.
type Notes struct {
	said    []string // by the user, oldest first
	left    int      // messages before them
	size    int      // bytes of said
	plan    event.Plan
	read    []string // oldest first
	changed []string
	calls   map[string]*toolCall
	open    []string // questions that the user did not answer
	answer  string   // the last one of the model
	asked   string   // its question to the user
}

// Save returns what is held now, between two inputs.
func (m *Memory) Save() Notes {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.Notes
	n.said, n.calls = slices.Clip(n.said), nil
	return n
}

// Restore goes back to earlier notes, which must not be used again.
func (m *Memory) Restore(n Notes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Notes = n
}

// toolCall is a call without a result.
type toolCall struct {
	args     string
	accesses []event.Access
}

// Add takes an event of the session, in the form in which it is recorded.
func (m *Memory) Add(call string, body event.Body) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch b := body.(type) {
	case event.User:
		m.say(b.Content)
	case event.Steering:
		if b.Source == "user" {
			m.say(b.Content)
		}
	case event.Message:
		m.answer = b.Content.Text()
	case event.Idle:
		if b.State == "awaiting_input" {
			paragraphs := strings.Split(strings.TrimSpace(m.answer), "\n\n")
			m.asked = paragraphs[len(paragraphs)-1]
		}
	case event.ToolUse:
		m.call(call).args = b.Args
	case event.Permission:
		m.call(call).accesses = b.Accesses
	case event.ToolResult:
		m.result(m.call(call), b)
		delete(m.calls, call)
	}
}

func (m *Memory) say(content model.Parts) {
	text := words(content)
	if text == "" {
		return
	}
	m.asked = ""
	m.said, m.size = append(m.said, text), m.size+len(text)
	for len(m.said) > 1 && m.size-len(m.said[0]) >= 4*maxUserTokens {
		m.size -= len(m.said[0])
		m.said, m.left = m.said[1:], m.left+1
	}
}

// words returns the user's part of a message.
func words(content model.Parts) string {
	var parts []string
	for _, p := range content {
		switch p := p.(type) {
		case model.Text:
			if !strings.HasPrefix(p.Text, contextBlock) {
				parts = append(parts, strings.TrimSpace(p.Text))
			}
		case model.Image:
			parts = append(parts, "[an image]")
		}
	}
	return strings.Join(parts, "\n")
}

func (m *Memory) call(id string) *toolCall {
	if m.calls == nil {
		m.calls = map[string]*toolCall{}
	}
	if m.calls[id] == nil {
		m.calls[id] = &toolCall{}
	}
	return m.calls[id]
}

func (m *Memory) result(c *toolCall, b event.ToolResult) {
	if b.Name == event.AskTool {
		m.question(c, b)
	}
	if b.IsError {
		return
	}
	if plan, ok := b.Plan(); ok {
		m.plan = plan
	}
	for _, a := range c.accesses {
		path := m.short(a.Resource)
		switch {
		case a.Recursive || path == ".":
		case a.Scope == "fs-write" || a.Scope == "fs-delete":
			m.changed = latest(m.changed, path)
		case a.Scope == "fs-read":
			m.read = latest(m.read, path)
		}
	}
}

// question keeps the question of a call that brought no answer.
func (m *Memory) question(c *toolCall, b event.ToolResult) {
	var in struct{ Question string }
	if json.Unmarshal([]byte(c.args), &in) != nil || in.Question == "" {
		return
	}
	at := slices.Index(m.open, in.Question)
	switch answered := !b.IsError && len(b.Structured) > 0; {
	case answered && at >= 0:
		m.open = slices.Delete(slices.Clone(m.open), at, at+1)
	case !answered && at < 0:
		m.open = append(slices.Clip(m.open), in.Question)
		m.open = m.open[max(0, len(m.open)-maxQuestions):]
	}
}

func (m *Memory) short(path string) string {
	if path == m.Dir {
		return "."
	}
	for _, separator := range []string{"/", `\`} {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.Dir, separator)+separator); ok && m.Dir != "" {
			path = rest
		}
	}
	return oneLine(path)
}

// oneLine quotes a name that could be taken for more than a name.
func oneLine(name string) string {
	if quoted := fmt.Sprintf("%q", name); strings.ContainsAny(name, "\r\n<>,") {
		return quoted
	}
	return name
}

// latest moves a file to the end of a list, and forgets the oldest.
func latest(list []string, path string) []string {
	list = append(slices.DeleteFunc(slices.Clone(list), func(p string) bool { return p == path }), path)
	return list[max(0, len(list)-maxFiles):]
}

// Text returns what a summary holds word for word. Of the user's messages the
// latest go first, up to so many tokens; what the kept messages contain is not
// repeated.
func (m *Memory) Text(kept []model.Message, room int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	m.writeSaid(&b, kept, 4*min(room, maxUserTokens))
	if len(m.plan.Steps) > 0 {
		b.WriteString("\nThe plan:\n")
		for _, s := range m.plan.Steps {
			fmt.Fprintf(&b, "- %s (%s)\n", s.Step, s.Status)
		}
	}
	writeFiles(&b, "changed", m.changed)
	writeFiles(&b, "only read", slices.DeleteFunc(slices.Clone(m.read), func(p string) bool { return slices.Contains(m.changed, p) }))
	open := m.open
	if m.asked != "" {
		open = append(slices.Clone(open), m.asked)
	}
	if len(open) > 0 {
		b.WriteString("\nQuestions to the user without an answer:\n")
		for _, q := range open {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(strings.TrimSpace(q), "\n", "\n  "))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return keptBlock + strings.TrimPrefix(b.String(), "\n") + "</kept>"
}

func (m *Memory) writeSaid(b *strings.Builder, kept []model.Message, room int) {
	shown := map[string]bool{}
	for _, k := range kept {
		if k.Role == model.RoleUser {
			shown[words(k.Parts)] = true
		}
	}
	var out []string
	left := m.left
	for _, text := range slices.Backward(m.said) {
		switch {
		case shown[text]:
		case room <= 0:
			left++
		default:
			text = middleOut(text, room)
			room -= len(text)
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return
	}
	b.WriteString("\nThe user's messages, word for word, oldest first")
	if left > 0 {
		fmt.Fprintf(b, " (%d earlier ones are left out)", left)
	}
	b.WriteString(":\n")
	for _, text := range slices.Backward(out) {
		fmt.Fprintf(b, "\n[user]\n%s\n", text)
	}
}

func writeFiles(b *strings.Builder, what string, files []string) {
	if len(files) == 0 {
		return
	}
	fmt.Fprintf(b, "\nFiles %s, the latest last: %s\n", what, strings.Join(files, ", "))
}

const (
	contextBlock = "<context source="
	keptBlock    = "<kept>\n"
)
