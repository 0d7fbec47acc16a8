package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// scene follows a session's events. It formats finished ones as lines for the
// scrollback and keeps the state of unfinished ones. It is not safe for
// concurrent use.
type scene struct {
	painter
	md      *markdown
	width   int // columns; 0 = no line breaks
	dir     string
	now     func() time.Time
	brief   bool // for the past: no tool details, truncated answers
	verbose bool // details of every tool result
	full    bool // nothing is truncated
	out     []string
	kind    string // of the last line
	answer  *answer
	shell   string // the unfinished line of a user's command
	calls   []*call
	ask     map[string]string // titles of open questions
	queue   *Queue
	plan    event.Plan // the latest; shown when it changes
	more    *more      // what was last truncated, or nil

	thought      strings.Builder // reasoning of the current answer
	thinkingFrom time.Time

	wait   display.Wait
	tokens int
	idle   bool // the session is waiting or has ended
	failed bool // an error was shown for the current input
	ended  bool
}

func newScene(p painter, width int, dir string) *scene {
	return &scene{painter: p, md: newMarkdown(p), width: width, dir: dir, now: time.Now, ask: map[string]string{}, queue: NewQueue()}
}

// take returns the lines since the last take.
func (s *scene) take() []string {
	out := s.out
	s.out = nil
	return out
}

// add appends lines of a kind, with an empty line between different kinds.
func (s *scene) add(kind string, lines ...string) {
	if len(lines) == 0 {
		return
	}
	if s.kind != "" && s.kind != kind && lines[0] != "" {
		s.out = append(s.out, "")
	}
	s.kind = kind
	s.out = append(s.out, lines...)
}

// separate inserts an empty line before the next lines, whatever their kind.
func (s *scene) separate() {
	if s.kind != "" {
		s.kind = "apart"
	}
}

// note adds a line about the session.
func (s *scene) note(st style, text string) {
	s.add("note", s.fold(st, display.Printable(text), s.width, "", "  ")...)
}

func (s *scene) fail(format string, args ...any) {
	s.note(red, "✗ "+fmt.Sprintf(format, args...))
}

// user shows what the user entered.
func (s *scene) user(text string) {
	const most = 12
	lines := strings.Split(strings.TrimRight(display.Printable(text), "\n"), "\n")
	hidden := len(lines) - most
	if s.full {
		hidden = 0
	}
	if hidden > 0 {
		lines = lines[:most]
	}
	s.separate()
	s.add("user", s.fold(bold, strings.Join(lines, "\n"), s.width, s.paint(cyan, "> "), "  ")...)
	if hidden > 0 {
		s.add("user", "  "+s.paint(dim, "… "+display.Plural(hidden, "more line")))
	}
}

// markdown shows a Markdown text of the program.
func (s *scene) markdown(text string) {
	if strings.TrimSpace(text) != "" {
		s.separate()
		s.add("text", s.md.render(text, s.width)...)
	}
}

// apply handles the next event.
func (s *scene) apply(e event.Event) {
	if e.Tokens > 0 {
		s.tokens = e.Tokens
	}
	s.wait.Apply(e)
	switch b := e.Body.(type) {
	case event.MessageDelta:
		s.endThought()
		s.addText(b.Text)
	case event.ReasoningDelta:
		if s.thinkingFrom.IsZero() {
			s.thinkingFrom = s.now()
		}
		s.thought.WriteString(b.Text)
	case event.Message:
		s.message(b)
	case event.ToolUse:
		s.endThought()
		s.endAnswer()
		c := &call{id: e.Call, name: display.VisibleLine(b.Name, 80), since: s.now()}
		if c.announced = b.Name == event.PlanTool || b.Name == event.AskTool; b.Name != event.PlanTool { // the plan is shown instead
			c.args = display.Arguments(b.Args, s.dir, 200)
		}
		s.calls = append(s.calls, c)
	case event.ToolOutputDelta:
		if c := s.call(e.Call); c != nil {
			c.output.add(b.Text)
		}
	case event.ToolProgress:
		if c := s.call(e.Call); c != nil {
			c.progress = progress(b)
		}
	case event.Permission:
		if c := s.call(e.Call); c != nil && b.Decision == "deny" {
			c.denied = "Permission denied: " + display.Printable(cmp.Or(b.Reason, "the user denied it"))
		}
	case event.ToolResult:
		s.toolResult(e.Call, b)
	case event.Question:
		s.ask[b.QID] = b.Title
		if b.Kind == string(core.QuestionForm) && slices.ContainsFunc(s.calls, func(c *call) bool { return c.name == event.AskTool }) {
			s.ask[b.QID] = "" // the call's result has the answer
		}
	case event.Answer:
		s.answered(b)
	case event.Steering:
		s.steering(b)
	case event.SourceStarted:
		if b.Error != "" {
			s.note(yellow, "! "+display.OneLine(b.Error, 300))
		}
	case event.SessionEnd:
		s.ended, s.idle = true, true
		s.settle()
	case event.Idle:
		s.idle = true
		s.settle()
	default:
		s.showNote(e.Body)
	}
}

// showNote shows an event that is neither conversation nor a tool call.
func (s *scene) showNote(body event.Body) {
	n, ok := display.NoteOf(body)
	if !ok {
		return
	}
	switch body.(type) {
	case event.LLMRetry, event.Cancelled, event.Error:
		s.settle()
	}
	switch n.Severity {
	case display.Failure:
		s.failed = true
		s.note(red, n.String())
	case display.Warning:
		s.note(yellow, n.String())
	default:
		s.note(dim, n.String())
	}
}

func (s *scene) addText(text string) {
	if s.answer == nil {
		s.answer = &answer{md: s.md}
		s.separate()
	}
	s.add("text", s.answer.add(text, s.width)...)
}

// message handles a complete answer: it shows what was not streamed.
func (s *scene) message(b event.Message) {
	s.endThought()
	whole := b.Content.Text()
	if s.brief {
		s.pastAnswer(whole)
		return
	}
	seen := ""
	if s.answer != nil {
		seen = s.answer.text.String()
	}
	switch rest, ok := strings.CutPrefix(whole, seen); {
	case ok && rest != "":
		s.addText(rest)
	case !ok: // the stream had gaps
		s.answer = nil
		s.note(dim, "… the streamed text had gaps; the whole answer:")
		s.addText(whole)
	}
	s.endAnswer()
}

// endAnswer shows the rest of the answer.
func (s *scene) endAnswer() {
	a := s.answer
	if a == nil {
		return
	}
	s.answer = nil
	s.add("text", a.end(s.width)...)
}

// pastAnswer shows the beginning of an earlier answer.
func (s *scene) pastAnswer(text string) {
	const most = 12
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := s.md.render(text, s.width)
	if hidden := len(lines) - most; hidden > 1 {
		lines = append(lines[:most:most], s.paint(dim, "… "+display.Plural(hidden, "more line")))
	}
	s.separate()
	s.add("text", lines...)
}

// settle ends the current thought and answer.
func (s *scene) settle() {
	s.endThought()
	s.endAnswer()
}

func (s *scene) endThought() {
	if s.thinkingFrom.IsZero() {
		return
	}
	if d := s.now().Sub(s.thinkingFrom); d >= time.Second {
		s.separate()
		title := "∴ thought for " + display.Duration(d)
		s.add("thought", s.paint(dim, title))
		s.more = &more{title: title, text: s.thought.String()}
	}
	s.thought.Reset()
	s.thinkingFrom = time.Time{}
}

func (s *scene) answered(b event.Answer) {
	if title, ok := s.ask[b.QID]; ok && title == "" {
		delete(s.ask, b.QID)
		return
	}
	width := max(100, s.width)
	if s.width == 0 {
		width = 1000
	}
	title := display.VisibleLine(s.relative(s.ask[b.QID]), width)
	delete(s.ask, b.QID)
	s.add("tool", s.fold(plain, display.AnswerTo(title, b), s.width, s.paint(yellow, "? "), "  ")...)
}

// steering shows a message that the agent took from the queue.
func (s *scene) steering(b event.Steering) {
	if b.Source != "user" {
		return // its cause has a line
	}
	text := b.Content.Text()
	s.settle()
	if m, ok := s.queue.taken(text); ok {
		text = m.label
	}
	if text != "" {
		s.user(text)
	}
}

// relative makes paths in the workspace relative.
func (s *scene) relative(text string) string { return display.Local(text, s.dir) }

// Entered returns the part of an input that the user entered, without its context.
func Entered(parts model.Parts) string {
	var b strings.Builder
	for i, p := range parts {
		switch p := p.(type) {
		case model.Text:
			if i == 0 || !strings.HasPrefix(p.Text, "<context ") {
				b.WriteString(p.Text)
			}
		case model.Image:
			b.WriteString("[image]")
		}
	}
	return b.String()
}

// summary returns the line after the work on an input, "" for a short one.
func summary(r event.Result) string {
	const short = 10 * time.Second
	took, cut := time.Duration(r.DurationMS)*time.Millisecond, r.Outcome == string(core.StopMaxTokens)
	if !cut && r.Rounds == 0 && took < short {
		return ""
	}
	parts := []string{display.Duration(took)}
	if n := r.Usage.Total(); n > 0 {
		parts = append(parts, display.Count(n)+" tokens")
	}
	if r.Rounds > 0 {
		parts = append(parts, display.Plural(r.Rounds, "tool round"))
	}
	if r.CostUSD != nil {
		parts = append(parts, fmt.Sprintf("$%.4f", *r.CostUSD))
	}
	if cut {
		parts = append(parts, "the answer was truncated at the token limit")
	}
	return "— " + strings.Join(parts, " · ")
}

// addOutput shows output of the user's command as it arrives.
func (s *scene) addOutput(text string) {
	s.shell += text
	const most = 64 << 10 // of an unterminated line
	lines := strings.SplitAfter(s.shell, "\n")
	last := len(lines) - 1
	if len(lines[last]) > most {
		last++
	}
	s.shell = strings.Join(lines[last:], "")
	for _, l := range lines[:last] {
		s.add("output", "  "+untab(display.Printable(strings.TrimRight(l, "\r\n"))))
	}
}

// endOutput ends an unterminated last line of output.
func (s *scene) endOutput() {
	if s.shell != "" {
		s.addOutput("\n")
	}
}
