package skills

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// The sources of blocks in the user turn.
const (
	sourceText = "skill" // and the skill's name: its full text
	sourceList = "skills"
)

// Bounds of what is disclosed, in estimated tokens.
const (
	maxText  = 10_000 // of one full text; the model can read the rest
	listRoom = 2_000  // of a list, where the model's window is not known
)

// SourceOptions connect a source to its session.
type SourceOptions struct {
	Library *Library
	Max     int // see MatchOptions
	// Conversation returns what the model has seen of the session so far. What
	// stands there is not disclosed again; what a summary dropped is. Nil means
	// that nothing was seen.
	Conversation func() []model.Message
	// Usage remembers which skills were used; nil for nobody does.
	Usage *Usage
	// Exists reports whether there is a file of that path, taken against the
	// session's directory. It tells a file's name from other words with a dot in
	// them; nil means that it needs a slash to be one.
	Exists func(ctx context.Context, path string) bool
	// Tools are told of what is activated. May be nil.
	Tools *Tools
}

// Source discloses skills to one session. It implements [core.ContextSource].
type Source struct {
	opts  SourceOptions
	files *files // in play; nil until a skill wants to know
}

var _ core.ContextSource = (*Source)(nil)

// NewSource returns a source for a session.
func NewSource(opts SourceOptions) *Source { return &Source{opts: opts} }

// Context implements [core.ContextSource]: the full texts of the skills that
// the input calls for, and a list where that helps to choose.
func (s *Source) Context(ctx context.Context, req core.ContextRequest) ([]core.Block, error) {
	catalog := s.opts.Library.Catalog()
	if s.opts.Tools != nil {
		s.opts.Tools.look(catalog)
	}
	if strings.TrimSpace(said(req.Input)) == "" || len(catalog.Skills) == 0 {
		return nil, nil
	}
	result := s.match(ctx, catalog, req)
	seen := s.seen()
	var blocks []core.Block
	for _, m := range result.Activated {
		if b, ok := s.text(m, seen); ok {
			blocks = append(blocks, b)
		}
	}
	if b, ok := s.list(catalog, result, seen, req.Budget); ok {
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// Match says what an input calls for, as Context would disclose it.
func (s *Source) Match(ctx context.Context, req core.ContextRequest) Result {
	return s.match(ctx, s.opts.Library.Catalog(), req)
}

// match matches an input. A full name reaches a skill that is shadowed.
func (s *Source) match(ctx context.Context, c *Catalog, req core.ContextRequest) Result {
	text := said(req.Input)
	s.look(ctx, c, req)
	result := c.Matcher().Match(text, MatchOptions{Max: s.opts.Max, Used: s.opts.Usage.Last, About: s.about})
	for _, name := range newInput(text).names {
		if skill, ok := c.Find(name.name); ok && skill.State == StateShadowed && strings.EqualFold(name.name, skill.FullName()) {
			result.Activated = append([]Match{{Skill: skill, By: ByName, Trigger: name.name, Args: name.args}}, result.Activated...)
		}
	}
	return result
}

// look takes note of the files in play, if a skill wants to know.
func (s *Source) look(ctx context.Context, c *Catalog, req core.ContextRequest) {
	if !c.hasPaths() {
		return
	}
	var past []model.Message
	if s.opts.Conversation != nil {
		past = s.opts.Conversation()
	}
	if s.files == nil {
		s.files = newFiles(req.Session.Dir, s.opts.Exists)
		for _, m := range past {
			if m.Role == model.RoleUser {
				s.files.addInput(ctx, m.Parts)
			}
		}
	}
	s.files.addCalls(ctx, past)
	s.files.addInput(ctx, req.Input)
}

// about reports whether a skill is about a file in play.
func (s *Source) about(skill *Skill) bool { return s.files != nil && s.files.about(skill) }

// said is what the person wrote, without what came from files.
func said(parts model.Parts) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(model.Text); ok && !strings.HasPrefix(t.Text, fileBlock) {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

// seen is what the source put into the conversation before.
func (s *Source) seen() string {
	if s.opts.Conversation == nil {
		return ""
	}
	var b strings.Builder
	for _, m := range s.opts.Conversation() {
		if m.Role != model.RoleUser {
			continue
		}
		for _, p := range m.Parts {
			if t, ok := p.(model.Text); ok && strings.HasPrefix(t.Text, "<context source=\""+sourceText) {
				b.WriteString(t.Text + "\n")
			}
		}
	}
	return b.String()
}

// text is the block of a full text, unless it was seen.
func (s *Source) text(m Match, seen string) (core.Block, bool) {
	body := Disclosed(m.Skill, m.Args)
	mark := markOf(body)
	s.opts.Usage.Note(m.Skill.Name, time.Now())
	if s.opts.Tools != nil {
		s.opts.Tools.Activate(m.Skill)
	}
	if strings.Contains(seen, mark) {
		return core.Block{}, false
	}
	text := fmt.Sprintf("<skill name=%q scope=%q %s>\n%s\n</skill>", m.Skill.Name, m.Skill.Scope, mark, body)
	return core.Block{
		Source: sourceText + " " + m.Skill.Name, Trusted: true, Text: text,
		Event: event.SkillActivated{Name: m.Skill.Name, Scope: string(m.Skill.Scope), By: string(m.By), Trigger: m.Trigger, File: m.Skill.File, Size: len(text) / 4},
	}, true
}

// markOf tells one text from another.
func markOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "content=" + hex.EncodeToString(sum[:8])
}

// Disclosed is a skill's text as a model gets it: with the arguments of /name
// in their places, of bounded length, and so that it cannot end the tags that it
// stands between.
func Disclosed(s *Skill, args string) string {
	body := s.Body
	if args != "" {
		body = withArguments(body, args)
	}
	body = strings.NewReplacer("</skill", "< /skill", "</context", "< /context", "<context", "< context").Replace(body)
	if len(body) > 4*maxText {
		end := strings.LastIndexByte(body[:4*maxText], '\n')
		if end <= 0 {
			end = len(strings.ToValidUTF8(body[:4*maxText], ""))
		}
		body = fmt.Sprintf("%s\n[… %d more bytes; read on with the skill tool: read_resource SKILL.md]", body[:end], len(body)-end)
	}
	if s.Dir != "" {
		body = "Files of this skill are below " + s.Dir + "\n\n" + body
	}
	return body
}

// withArguments puts arguments into a text: $ARGUMENTS is all of them, $1 to
// $9 are its words.
func withArguments(body, args string) string {
	list := strings.Fields(args)
	pairs := []string{"$ARGUMENTS", args}
	for i := 1; i <= 9; i++ {
		word := ""
		if i <= len(list) {
			word = list[i-1]
		}
		pairs = append(pairs, fmt.Sprint("$", i), word)
	}
	return strings.NewReplacer(pairs...).Replace(body)
}

// list is the block of skills to choose from: all of them where the person
// asks; else those about files in play, and those without triggers, which
// nothing else would bring up, unless they are about other files. What
// does not fit is chosen by its words, and what is left out is counted.
func (s *Source) list(c *Catalog, r Result, seen string, budget int) (core.Block, bool) {
	var wanted []*Skill
	for _, skill := range c.Active() {
		told := strings.Contains(seen, fmt.Sprintf("<skill name=%q", skill.Name)) || slices.ContainsFunc(r.Activated, func(m Match) bool { return m.Skill == skill })
		candidate := skill.Triggers.None()
		if len(skill.Paths) > 0 {
			candidate = s.about(skill)
		}
		if !skill.NoModel && !told && (r.Asked || candidate) {
			wanted = append(wanted, skill)
		}
	}
	lines, size := map[*Skill]string{}, 0
	for _, skill := range wanted {
		lines[skill] = Line(skill)
		size += len(lines[skill]) / 4
	}
	all := len(wanted)
	if size > cmp.Or(budget, listRoom) {
		wanted = nil
		for _, m := range r.Shortlist {
			if lines[m.Skill] != "" {
				wanted = append(wanted, m.Skill)
			}
		}
	}
	var b strings.Builder
	var names []string
	for _, skill := range wanted {
		if !strings.Contains(seen, lines[skill]) {
			b.WriteString(lines[skill])
			names = append(names, skill.Name)
		}
	}
	if len(names) == 0 {
		return core.Block{}, false
	}
	left := all - len(wanted)
	text := "Skills that you may load with the skill tool, when one fits the work:\n" + b.String()
	if left > 0 {
		text += fmt.Sprintf("[%d more: search for them with the skill tool]\n", left)
	}
	return core.Block{Source: sourceList, Text: strings.TrimSuffix(text, "\n"), Event: event.SkillsListed{Names: names, Left: left}}, true
}

// Line names a skill with what it is for, on one line of a list.
func Line(s *Skill) string {
	return fmt.Sprintf("- %s: %s\n", s.Name, strings.NewReplacer("</context", "< /context", "\n", " ").Replace(s.Brief))
}

// Breadcrumb says in a few words that there are skills; it is empty if there
// are none that the model could use.
func (l *Library) Breadcrumb() string { return l.Catalog().breadcrumb() }

func (c *Catalog) breadcrumb() string {
	n := 0
	for _, s := range c.Active() {
		if !s.NoModel {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "[1 skill available]"
	}
	return fmt.Sprintf("[%d skills available]", n)
}
