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

// Bounds of disclosure, in estimated tokens.
const (
	maxText = 10_000 // of one full text; the model can read the rest
	maxList = 2_000  // of a list, if the context window is unknown
)

// SourceOptions configure a [Source].
type SourceOptions struct {
	Library *Library
	Max     int // see MatchOptions
	// Conversation returns the messages that the model has seen. Skills in it are
	// not disclosed again, unless compaction dropped them. Nil means an empty
	// conversation.
	Conversation func() []model.Message
	// Usage records which skills are used. May be nil.
	Usage *Usage
	// Exists reports whether a file exists; relative paths are relative to the
	// session's directory. It distinguishes file names from other words with a
	// dot. If nil, only words with a slash are considered file names.
	Exists func(ctx context.Context, path string) bool
	// Tools is notified of activated skills. May be nil.
	Tools *Tools
	// Fork starts the work of a skill in a subagent, and adds its report to the
	// session. Nil means that there are no subagents.
	Fork func(Fork)
	// Adjust sets model and effort for the input; empty ones are the session's.
	// May be nil.
	Adjust func(model string, effort model.Effort)
}

// Source discloses skills to one session. It implements [core.ContextSource].
type Source struct {
	opts  SourceOptions
	files *files // of the conversation; nil until a skill has Paths
}

var _ core.ContextSource = (*Source)(nil)

// NewSource returns a source for a session.
func NewSource(opts SourceOptions) *Source { return &Source{opts: opts} }

// Context implements [core.ContextSource]. It returns the full texts of the
// activated skills, and a list of candidates.
func (s *Source) Context(ctx context.Context, req core.ContextRequest) ([]core.Block, error) {
	catalog := s.opts.Library.Catalog()
	if s.opts.Tools != nil {
		s.opts.Tools.update(catalog)
	}
	if strings.TrimSpace(inputText(req.Input)) == "" || len(catalog.Skills) == 0 {
		return nil, nil
	}
	result := s.match(ctx, catalog, req)
	seen := s.seen()
	var blocks []core.Block
	for _, m := range result.Activated {
		disclose := s.text
		if m.Skill.Fork && s.opts.Fork != nil {
			disclose = s.fork
		}
		if b, ok := disclose(m, req, seen); ok {
			blocks = append(blocks, b)
		}
	}
	s.adjust(result.Activated)
	if b, ok := s.list(catalog, result, seen, req.Budget); ok {
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// Match returns which skills Context would disclose for an input.
func (s *Source) Match(ctx context.Context, req core.ContextRequest) Result {
	return s.match(ctx, s.opts.Library.Catalog(), req)
}

// match matches an input. A full name also activates a shadowed skill.
func (s *Source) match(ctx context.Context, c *Catalog, req core.ContextRequest) Result {
	text := inputText(req.Input)
	s.collectFiles(ctx, c, req)
	result := c.Matcher().Match(text, MatchOptions{Max: s.opts.Max, Used: s.opts.Usage.Last, About: s.about})
	for _, name := range newInput(text).names {
		if skill, ok := c.Find(name.name); ok && skill.State == StateShadowed && strings.EqualFold(name.name, skill.FullName()) {
			result.Activated = append([]Match{{Skill: skill, By: ByName, Trigger: name.name, Args: name.args}}, result.Activated...)
		}
	}
	return result
}

// collectFiles updates the files of the conversation, if a skill has Paths.
func (s *Source) collectFiles(ctx context.Context, c *Catalog, req core.ContextRequest) {
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

// about reports whether a file of the conversation matches the skill's Paths.
func (s *Source) about(skill *Skill) bool { return s.files != nil && s.files.about(skill) }

// inputText returns what the user wrote, without attached files.
func inputText(parts model.Parts) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(model.Text); ok && !strings.HasPrefix(t.Text, fileBlock) {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

// seen returns what the source already added to the conversation.
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

// text returns the block with the full text of a skill, unless it was seen.
func (s *Source) text(m Match, req core.ContextRequest, seen string) (core.Block, bool) {
	body := disclosed(m.Skill, m.Skill.filled(m.Args, req.Session))
	mark := markOf(body)
	s.used(m.Skill)
	if s.opts.Tools != nil {
		s.opts.Tools.use(req.Session, m.Skill)
	}
	if strings.Contains(seen, mark) {
		return core.Block{}, false
	}
	return m.block(fmt.Sprintf("<skill name=%q scope=%q %s>\n%s\n</skill>", m.Skill.Name, m.Skill.Scope, mark, body)), true
}

// used notes that a skill is used.
func (s *Source) used(skill *Skill) {
	s.opts.Usage.Note(skill.Name, time.Now())
	if s.opts.Tools != nil {
		s.opts.Tools.Activate(skill)
	}
}

// block returns the block of an activated skill.
func (m Match) block(text string) core.Block {
	return core.Block{
		Source: sourceText + " " + m.Skill.Name, Trusted: true, Text: text,
		Event: event.SkillActivated{Name: m.Skill.Name, Scope: string(m.Skill.Scope), By: string(m.By), Trigger: m.Trigger, File: m.Skill.File, Size: len(text) / 4},
	}
}

// markOf returns an attribute that identifies a text.
func markOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "content=" + hex.EncodeToString(sum[:8])
}

// filled returns a skill's text with arguments and folders in their places.
func (s *Skill) filled(args string, session core.SessionInfo) string {
	text, _ := Values{Args: args, Names: s.Arguments, Dir: s.Dir, Session: session}.Fill(s.Body())
	return text
}

// disclosed returns a skill's text as it is shown to the model: limited in
// length, escaped so that it cannot close the surrounding tags, and with what the
// model must know about it.
func disclosed(s *Skill, body string) string {
	pending := len(embeddedIn(body)) > 0
	body = strings.NewReplacer("</skill", "< /skill", "</context", "< /context", "<context", "< context").Replace(body)
	if len(body) > 4*maxText {
		end := strings.LastIndexByte(body[:4*maxText], '\n')
		if end <= 0 {
			end = len(strings.ToValidUTF8(body[:4*maxText], ""))
		}
		body = fmt.Sprintf("%s\n[… %d more bytes; continue with the skill tool: read_resource SKILL.md]", body[:end], len(body)-end)
	}
	if s.Dir != "" {
		body = "The files of this skill are in " + s.Dir + "\n\n" + body
	}
	if pending {
		body += "\n\n[The commands in !`…` were not run. To get their output, with the user's permission, load the skill with the skill tool and commands: true.]"
	}
	return body
}

// list returns the block of skills to choose from. These are all skills if the
// user asks for them, or a first page of them; otherwise those whose Paths match a file of the
// conversation, and those with neither Paths nor triggers. If the list is too
// long, the highest ranked skills are kept and the rest is counted.
func (s *Source) list(c *Catalog, r Result, seen string, budget int) (core.Block, bool) {
	var wanted []*Skill
	for _, skill := range c.Active() {
		shown := strings.Contains(seen, fmt.Sprintf("<skill name=%q", skill.Name)) || slices.ContainsFunc(r.Activated, func(m Match) bool { return m.Skill == skill })
		candidate := skill.Triggers.None()
		if len(skill.Paths) > 0 {
			candidate = s.about(skill)
		}
		if !skill.NoModel && !shown && (r.Asked || candidate) {
			wanted = append(wanted, skill)
		}
	}
	budget = cmp.Or(budget, maxList)
	all, more := len(wanted), "search for them with the skill tool"
	switch fit := fitting(wanted, budget); {
	case fit == len(wanted):
	case r.Asked:
		wanted = wanted[:fit]
		next := 1 + slices.Index(c.listed(), wanted[len(wanted)-1])
		more = fmt.Sprintf("for the rest, search with the skill tool without a query, from offset %d", next)
	default:
		candidates := wanted
		wanted = nil
		for _, m := range r.Shortlist {
			if slices.Contains(candidates, m.Skill) {
				wanted = append(wanted, m.Skill)
			}
		}
		wanted = wanted[:fitting(wanted, budget)]
	}
	lines := listLines(wanted, r.Shortlist, budget)
	var b strings.Builder
	var names []string
	for _, skill := range wanted {
		if !hasLine(skill, seen) {
			b.WriteString(lines[skill])
			names = append(names, skill.Name)
		}
	}
	if len(names) == 0 {
		return core.Block{}, false
	}
	left := all - len(wanted)
	text := "Skills to load with the skill tool if one fits the work:\n" + b.String()
	if left > 0 {
		text += fmt.Sprintf("[%d more: %s]\n", left, more)
	}
	return core.Block{Source: sourceList, Text: strings.TrimSuffix(text, "\n"), Event: event.SkillsListed{Names: names, Left: left}}, true
}

// Breadcrumb returns a short hint that skills are available, or "" if there are
// none that the model can use.
func (l *Library) Breadcrumb() string { return l.latest().breadcrumb() }

func (c *Catalog) breadcrumb() string {
	n := len(c.listed())
	switch n {
	case 0:
		return ""
	case 1:
		return "[1 skill available]"
	}
	return fmt.Sprintf("[%d skills available]", n)
}
