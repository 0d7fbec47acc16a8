package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// scene follows a session's events. It turns what is finished into lines for
// the scrollback and keeps what is going on. It is not safe for concurrent use.
type scene struct {
	painter
	md     *markdown
	width  int // columns; 0 = lines are not broken
	dir    string
	now    func() time.Time
	stream func(text string) // takes answers as they come; nil renders them
	brief  bool              // the past: tools without details, long answers cut
	out    []string
	kind   string // of what out, or the scrollback, ends with
	answer *answer
	shell  string // the unfinished line of a command of the person
	calls  []*call
	ask    map[string]string // titles of open questions
	queue  []queued
	plan   event.Plan // the latest; drawn when it changes
	more   *more      // what was shown in part last; nil for nothing

	thought      strings.Builder // reasoning of the present answer
	thinkingFrom time.Time

	tokens int
	idle   bool // the session said that it waits, or ended
	failed bool // an error was shown for the present input
	ended  bool
}

// queued is a message that waits to be taken up while the agent works.
type queued struct {
	text  string // as the model gets it
	label string // as the person entered it; empty if it was shown already
}

func newScene(p painter, width int, dir string) *scene {
	return &scene{painter: p, md: newMarkdown(p), width: width, dir: dir, now: time.Now, ask: map[string]string{}}
}

// take returns the lines that are finished since the last take.
func (s *scene) take() []string {
	out := s.out
	s.out = nil
	return out
}

// add puts lines of a kind after what is there, with an empty line between
// different kinds.
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

// separate makes the next lines stand apart, of whatever kind they are.
func (s *scene) separate() {
	if s.kind != "" {
		s.kind = "apart"
	}
}

// note is a line about the session, not of it.
func (s *scene) note(st style, text string) {
	s.add("note", s.fold(st, display.Printable(text), s.width, "", "  ")...)
}

func (s *scene) warn(format string, args ...any) {
	s.note(yellow, "! "+fmt.Sprintf(format, args...))
}

func (s *scene) fail(format string, args ...any) {
	s.note(red, "✗ "+fmt.Sprintf(format, args...))
}

// user shows what the person entered.
func (s *scene) user(text string) {
	const most = 12
	lines := strings.Split(strings.TrimRight(display.Printable(text), "\n"), "\n")
	hidden := len(lines) - most
	if hidden > 0 {
		lines = lines[:most]
	}
	s.separate()
	s.add("user", s.fold(bold, strings.Join(lines, "\n"), s.width, s.paint(cyan, "> "), "  ")...)
	if hidden > 0 {
		s.add("user", "  "+s.paint(dim, "… "+plural(hidden, "more line")))
	}
}

// markdown shows a text of our own.
func (s *scene) markdown(text string) {
	if strings.TrimSpace(text) != "" {
		s.separate()
		s.add("text", s.md.render(text, s.columns())...)
	}
}

func (s *scene) columns() int {
	if s.width <= 0 {
		return 80
	}
	return s.width
}

// apply takes the next event.
func (s *scene) apply(e event.Event) {
	if e.Tokens > 0 {
		s.tokens = e.Tokens
	}
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
		c := &call{id: e.Call, name: display.Printable(b.Name), since: s.now()}
		if c.told = b.Name == event.PlanTool; !c.told { // a plan speaks for itself
			c.about = display.Arguments(b.Args, s.dir, 200)
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
	case event.ToolResult:
		s.toolResult(e.Call, b)
	case event.Question:
		s.ask[b.QID] = b.Title
	case event.Answer:
		s.answered(b)
	case event.Steering:
		s.steering(b)
	case event.SessionEnd:
		s.ended, s.idle = true, true
		s.settle()
	case event.Idle:
		s.idle = true
		s.settle()
	default:
		s.trouble(e.Body)
	}
}

// trouble shows what did not go as hoped.
func (s *scene) trouble(body event.Body) {
	switch b := body.(type) {
	case event.LLMRetry:
		s.settle()
		if b.Max == 0 { // another provider takes over
			s.warn("%s", b.Message)
			break
		}
		s.warn("%s; trying again in %s (%d of %d)", b.Message, took(time.Duration(b.WaitMS)*time.Millisecond), b.Attempt, b.Max)
	case event.TurnLimit:
		s.warn("the limit %s of %d is reached; enter something to go on", b.Limit, b.Max)
	case event.TokenLimit:
		s.warn("the limit %s of %.6g is reached (%.6g used)", b.Limit, b.Max, b.Used)
	case event.LoopDetection:
		s.warn("the last calls repeat a pattern; the model was told so")
	case event.SubagentStart:
		s.note(dim, "▸ "+display.OneLine(b.Name+": "+b.Input, 200))
	case event.SubagentEnd:
		text := fmt.Sprintf("◂ %s: %s, %d tokens", b.Name, b.Outcome, b.Usage.Total())
		if b.Error != "" {
			text += ": " + b.Error
		}
		s.note(dim, display.OneLine(text, 200))
	case event.SkillActivated:
		s.note(dim, display.Printable(fmt.Sprintf("— skill %s: %s %s", b.Name, b.By, b.Trigger)))
	case event.SkillsListed:
		if b.Left > 0 {
			s.note(dim, fmt.Sprintf("— %d skills named to the model, %d others left out", len(b.Names), b.Left))
		}
	case event.Compacted:
		s.note(dim, compacted(b))
	case event.Warning:
		s.warn("%s", b.Message)
	case event.Cancelled:
		s.settle()
		what := "stopped"
		if b.Abort {
			what = "aborted"
		}
		s.warn("%s: %s", what, b.Reason)
	case event.Error:
		s.settle()
		s.failed = true
		s.fail("%s (%s)", b.Message, b.Code)
	}
}

// compacted says that the conversation has become shorter.
func compacted(b event.Compacted) string {
	return fmt.Sprintf("— the conversation was summarised: %s tokens became %s", compact(b.Before), compact(b.After))
}

func (s *scene) addText(text string) {
	if s.answer == nil {
		s.answer = &answer{md: s.md}
		s.separate()
	}
	if s.stream != nil {
		s.answer.text.WriteString(text)
		s.kind = "text"
		s.stream(display.Printable(text))
		return
	}
	s.add("text", s.answer.add(text, s.columns())...)
}

// message takes an answer as a whole: what of it did not come in pieces is
// shown now.
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
	case !ok: // pieces are missing in the middle
		s.answer = nil
		s.note(dim, "… not all of this could be shown as it came; the whole answer:")
		s.addText(whole)
	}
	s.endAnswer()
}

// endAnswer shows what is left of the answer.
func (s *scene) endAnswer() {
	a := s.answer
	if a == nil {
		return
	}
	s.answer = nil
	if s.stream != nil {
		s.stream("\n")
		return
	}
	s.add("text", a.end(s.columns())...)
}

// pastAnswer shows the beginning of an answer of the past.
func (s *scene) pastAnswer(text string) {
	const most = 12
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := s.md.render(text, s.columns())
	if hidden := len(lines) - most; hidden > 1 {
		lines = append(lines[:most:most], s.paint(dim, "… "+plural(hidden, "more line")))
	}
	s.separate()
	s.add("text", lines...)
}

// settle ends everything that was going on.
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
		s.add("thought", s.paint(dim, "∴ thought for "+took(d)))
		s.more = &more{title: "∴ thought for " + took(d), text: s.thought.String()}
	}
	s.thought.Reset()
	s.thinkingFrom = time.Time{}
}

func (s *scene) answered(b event.Answer) {
	title := display.VisibleLine(s.ask[b.QID], max(100, s.columns()))
	delete(s.ask, b.QID)
	said := b.Choice
	switch {
	case b.Withdrawn:
		said = "withdrawn"
	case said == "":
		said = "no answer"
	}
	if b.Reason != "" {
		said += ": " + b.Reason
	}
	s.add("tool", s.fold(plain, s.local(title)+" → "+display.Printable(said), s.width, s.paint(yellow, "? "), "  ")...)
}

// steering says that a message was taken up.
func (s *scene) steering(b event.Steering) {
	if b.Source != "user" {
		return // the warning about the loop says it
	}
	text := b.Content.Text()
	s.settle()
	for i, q := range s.queue {
		if q.text == text {
			s.queue = slices.Delete(s.queue, i, i+1)
			text = q.label
			break
		}
	}
	if text != "" {
		s.user(text)
	}
}

// waiting reports whether a message of the person waits to be taken up.
func (s *scene) waiting() bool {
	return slices.ContainsFunc(s.queue, func(q queued) bool { return q.label != "" })
}

// local shortens the paths of the workspace.
func (s *scene) local(text string) string { return display.Local(text, s.dir) }

// said returns what the person said in a user turn, without what context
// sources added to it.
func said(parts model.Parts) string {
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

// summary is the line at the end of an input's processing, or "" where there
// is nothing to tell.
func summary(out core.Outcome) string {
	const worthIt = 10 * time.Second
	if out.Stop != core.StopMaxTokens && out.Rounds == 0 && out.Duration < worthIt {
		return ""
	}
	parts := []string{took(out.Duration)}
	if n := out.Usage.Total(); n > 0 {
		parts = append(parts, compact(n)+" tokens")
	}
	if out.Rounds > 0 {
		parts = append(parts, plural(out.Rounds, "round")+" of tools")
	}
	if out.Priced && out.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", out.Cost))
	}
	if out.Stop == core.StopMaxTokens {
		parts = append(parts, "the answer was cut at the limit of its length")
	}
	return "— " + strings.Join(parts, " · ")
}

// addOutput shows what a command of the person prints, as it comes.
func (s *scene) addOutput(text string) {
	s.shell += text
	const most = 64 << 10 // of a line without an end
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

// endOutput ends an output that did not end its last line.
func (s *scene) endOutput() {
	if s.shell != "" {
		s.addOutput("\n")
	}
}
