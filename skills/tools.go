package skills

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

//go:embed tool.md
var toolDoc string

// ToolName is the name of the tool.
const ToolName = "skill"

// ToolsOptions configure [Tools].
type ToolsOptions struct {
	Library *Library
	Usage   *Usage // may be nil
	// OpenToolset starts a binary from a skill's toolsets folder; sum is the
	// SHA-256 in hex that the user approved. AddToolset adds the toolset to the
	// session and owns it. Without both, toolsets are not started.
	OpenToolset func(path, sum string) (core.Toolset, error)
	AddToolset  func(core.Toolset) error
	// ScriptTimeout bounds a script; 0 = 1 min.
	ScriptTimeout time.Duration
	// Fork lets a subagent of the calling session do the work of a skill, and
	// returns its report. The session does the work itself if Fork is nil or
	// returns [ErrNoFork].
	Fork func(context.Context, Fork) (report string, err error)
	// Adjust sets model and effort until a session's input is done; empty ones
	// stay. May be nil.
	Adjust func(session core.SessionInfo, model string, effort model.Effort)
	// Activated is called when a session works with a skill; one that a subagent works
	// with is left out. May be nil.
	Activated func(session core.SessionInfo, s *Skill)
	// Problem is called if a toolset cannot be started. May be nil.
	Problem func(error)
}

// Tools is a [core.Toolset] with the tool "skill", if there are any skills.
type Tools struct {
	opts    ToolsOptions
	skill   core.Tool
	changed chan struct{}

	mu     sync.Mutex
	shown  bool // the last call of Tools returned the tool
	opened map[string]bool
	active map[string]bool // activated skills, by hash
	closed bool
}

var _ core.Toolset = (*Tools)(nil)

// NewTools returns the toolset. It does not read or start anything yet.
func NewTools(opts ToolsOptions) *Tools {
	if opts.ScriptTimeout <= 0 {
		opts.ScriptTimeout = defaultScriptTimeout
	}
	t := &Tools{opts: opts, changed: make(chan struct{}, 1), opened: map[string]bool{}, active: map[string]bool{}}
	t.skill = core.NewTool(core.ToolDefinition{
		Name: ToolName, Description: strings.TrimSpace(toolDoc), Scopes: []core.Scope{core.ScopeSkillScript, core.ScopeShell, core.ScopeSubagent},
		Output: core.OutputLimit{MaxChars: 50_000, Mode: core.HeadTail},
	}, t.access, t.run)
	return t
}

// Name implements [core.Toolset].
func (t *Tools) Name() string { return "skills" }

// Changed implements [core.Toolset].
func (t *Tools) Changed() <-chan struct{} { return t.changed }

// Tools implements [core.Toolset].
func (t *Tools) Tools(context.Context) ([]core.Tool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown = t.opts.Library.Breadcrumb() != ""; !t.shown {
		return nil, nil
	}
	return []core.Tool{t.skill}, nil
}

// update signals a change of the tools when the first skill appeared or the last
// one is gone.
func (t *Tools) update(c *Catalog) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.shown == (c.breadcrumb() != "") {
		return
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Close implements [core.Toolset].
func (t *Tools) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.changed)
	}
	return t.opts.Usage.Flush()
}

// Activate starts the toolsets of an activated skill; their tools are available
// from the next model request on. Toolsets are native code, so only those that
// the user approved on installation are started.
func (t *Tools) Activate(s *Skill) {
	t.mu.Lock()
	t.active[s.Hash] = true
	t.mu.Unlock()
	for _, name := range s.Toolsets {
		if err := t.open(s, name); err != nil && t.opts.Problem != nil {
			t.opts.Problem(fmt.Errorf("toolset %s of skill %s: %w", name, s.Name, err))
		}
	}
}

// use says that a session works with a skill.
func (t *Tools) use(session core.SessionInfo, s *Skill) {
	if t.opts.Activated != nil {
		t.opts.Activated(session, s)
	}
}

// activated reports whether a skill was activated before.
func (t *Tools) activated(s *Skill) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active[s.Hash]
}

func (t *Tools) open(s *Skill, name string) error {
	switch {
	case t.opts.OpenToolset == nil || t.opts.AddToolset == nil:
		return errors.New("toolsets of skills are not supported here")
	case !s.Installed || !s.lock.Toolsets || s.Scope == ScopeProject:
		return errors.New("native code that was not approved: install the skill with agent skills add")
	}
	file, sum, err := s.native("toolsets", name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	known := t.opened[file+sum] || t.closed
	t.opened[file+sum] = true
	t.mu.Unlock()
	if known {
		return nil
	}
	set, err := t.opts.OpenToolset(file, sum)
	if err != nil {
		return err
	}
	if err := t.opts.AddToolset(set); err != nil {
		return errors.Join(err, set.Close())
	}
	return nil
}

// toolArgs are the arguments of the tool.
type toolArgs struct {
	Action string   `json:"action"`
	Name   string   `json:"name,omitempty"`
	Query  string   `json:"query,omitempty"`
	Path   string   `json:"path,omitempty"`
	Offset int      `json:"offset,omitempty"`
	Args   []string `json:"args,omitempty"`
	// Commands runs the commands in a text that is loaded.
	Commands bool `json:"commands,omitempty" jsonschema:"load: run those in the text"`
}

// plainCommand matches a program with arguments in which no shell finds more.
var plainCommand = lazy.Regexp(`^[A-Za-z0-9_./+-]+( [A-Za-z0-9_./:@%+,=-]+)*$`)

// access declares what a call accesses. Only scripts, subagents and the commands in
// a text need permission; a skill's texts are there to be read.
func (t *Tools) access(_ context.Context, call *core.Call, in toolArgs) (all []core.Access, err error) {
	switch {
	case in.Action == "load":
		s, failure := t.find(in.Name)
		if failure != nil {
			return nil, nil // run says why
		}
		if s.Fork && t.opts.Fork != nil {
			all = append(all, s.forkAccess())
		}
		if !in.Commands {
			return all, nil
		}
		for _, command := range Embedded(s.filled(quoteArgs(in.Args), call.Session)) {
			access := core.Access{Scope: core.ScopeShell, Resource: command}
			if plainCommand().MatchString(command) {
				access.Argv = strings.Fields(command)
			}
			all = append(all, access)
		}
		return all, nil
	case in.Action != "run_script":
		return nil, nil
	}
	c, failure := t.prepare(call, in)
	if failure != nil {
		return nil, errors.New(failure.text)
	}
	return []core.Access{{Scope: core.ScopeSkillScript, Resource: strings.Join(c.argv, " "), Argv: c.argv}}, nil
}

// refusal tells the model why a call failed.
type refusal struct {
	code core.ErrorCode
	text string
}

func refuse(code core.ErrorCode, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

func (t *Tools) run(ctx context.Context, call *core.Call, in toolArgs) (core.Result, error) {
	var text string
	var failure *refusal
	switch in.Action {
	case "search":
		text, failure = t.search(in.Query, in.Offset)
	case "load":
		text, failure = t.load(ctx, call, in)
	case "read_resource":
		text, failure = t.resource(in)
	case "run_script":
		return t.script(ctx, call, in)
	default:
		failure = refuse(core.CodeValidation, "Unknown action %q: use search, load, read_resource or run_script.", in.Action)
	}
	if failure != nil {
		return core.Fail(failure.code, failure.text), nil
	}
	return core.TextResult(text), nil
}

// pageSize is the number of skills that a search without a query lists at once.
const pageSize = 50

// search lists the best matches of a query; without one, all skills, by pages.
func (t *Tools) search(query string, offset int) (string, *refusal) {
	catalog := t.opts.Library.Catalog()
	found, more := []*Skill{}, ""
	if strings.TrimSpace(query) == "" {
		all := catalog.listed()
		if offset < 0 || offset > len(all) {
			return "", refuse(core.CodeValidation, "The offset %d is not within the list of %d skills.", offset, len(all))
		}
		end := min(offset+pageSize, len(all))
		if found = all[offset:end]; end < len(all) {
			more = fmt.Sprintf("[%d of %d skills; continue with offset %d]\n", len(found), len(all), end)
		}
	} else {
		for _, m := range catalog.Matcher().Match(query, MatchOptions{Used: t.opts.Usage.Last}).Shortlist {
			if !m.Skill.NoModel {
				found = append(found, m.Skill)
			}
		}
	}
	if len(found) == 0 {
		return fmt.Sprintf("No skill matches %q. Continue without one.", query), nil
	}
	var b strings.Builder
	for i, s := range found {
		if strings.TrimSpace(query) == "" {
			i = lastRank
		}
		b.WriteString(listLine(s, i))
	}
	return b.String() + more + "Load one by name.", nil
}

// find returns a skill that the model may use.
func (t *Tools) find(name string) (*Skill, *refusal) {
	catalog := t.opts.Library.Catalog()
	s, ok := catalog.Find(name)
	switch {
	case name == "":
		return nil, refuse(core.CodeValidation, "Missing name: give the name of a skill.")
	case !ok:
		var near []string
		for _, m := range catalog.Matcher().Match(strings.ReplaceAll(name, "-", " "), MatchOptions{Shortlist: 3}).Shortlist {
			near = append(near, m.Skill.Name)
		}
		if len(near) == 0 {
			return nil, refuse(core.CodeNotFound, "No skill named %q. Search for one.", name)
		}
		return nil, refuse(core.CodeNotFound, "No skill named %q. Similar skills: %s.", name, strings.Join(near, ", "))
	case s.NoModel && !t.activated(s):
		return nil, refuse(core.CodePermission, "Only the user can activate the skill %s, with /%s.", s.Name, s.Name)
	case s.State == StateOff || s.State == StateChanged:
		return nil, refuse(core.CodePermission, "The skill %s cannot be used: %s. Tell the user, and continue without it.", s.Name, s.Why)
	}
	return s, nil
}

func (t *Tools) load(ctx context.Context, call *core.Call, in toolArgs) (string, *refusal) {
	s, failure := t.find(in.Name)
	if failure != nil {
		return "", failure
	}
	t.opts.Usage.Note(s.Name, time.Now())
	t.Activate(s)
	if s.Fork && t.opts.Fork != nil {
		if text, failure := t.fork(ctx, call, s, in); text != "" || failure != nil {
			return text, failure
		}
	}
	t.use(call.Session, s)
	if t.opts.Adjust != nil && (s.Model != "" || s.Effort != "") {
		t.opts.Adjust(call.Session, s.Model, s.Effort)
	}
	body := s.filled(quoteArgs(in.Args), call.Session)
	if in.Commands {
		body = t.runEmbedded(ctx, call, body)
	}
	text := fmt.Sprintf("<skill name=%q scope=%q>\n%s\n</skill>", s.Name, s.Scope, disclosed(s, body))
	if files := s.resources(); len(files) > 0 {
		text += "\nFiles: " + strings.Join(files, ", ")
	}
	return text, nil
}

// maxListed bounds the number of files listed for a skill.
const maxListed = 50

// resources lists the files beside the SKILL.md.
func (s *Skill) resources() []string {
	var all []string
	_ = fs.WalkDir(s.Files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(all) >= maxListed:
			return fs.SkipAll
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular() && !strings.EqualFold(name, "SKILL.md") && !strings.HasPrefix(d.Name(), "."):
			all = append(all, name)
		}
		return nil
	})
	return all
}

// Bounds of a resource, and of a single read of it, in bytes.
const (
	maxResourceFile = 8 << 20
	maxResource     = 40_000
)

// resource reads a file of a skill.
func (t *Tools) resource(in toolArgs) (string, *refusal) {
	s, failure := t.find(in.Name)
	if failure != nil {
		return "", failure
	}
	name := path.Clean(strings.ReplaceAll(in.Path, "\\", "/"))
	if in.Path == "" || !fs.ValidPath(name) || name == "." {
		return "", refuse(core.CodeValidation, "The path %q is not in the skill's folder. Its files: %s.", in.Path, strings.Join(s.resources(), ", "))
	}
	if strings.EqualFold(name, "SKILL.md") {
		return window(s.Body(), in.Offset)
	}
	if err := s.contained(name); err != nil {
		return "", refuse(core.CodeNotFound, "%v. Its files: %s.", err, strings.Join(s.resources(), ", "))
	}
	data, err := readFile(s.Files, name, maxResourceFile+1)
	switch {
	case err != nil:
		return "", refuse(core.CodeIO, "Cannot read %s of skill %s: %v.", name, s.Name, err)
	case len(data) > maxResourceFile:
		return "", refuse(core.CodeValidation, "%s of skill %s is larger than %d MiB.", name, s.Name, maxResourceFile>>20)
	case s.Installed && s.lock.Files[name] != sumOf(data):
		return "", refuse(core.CodePermission, "%v. Tell the user, and continue without it.", s.changed(name))
	case !utf8.Valid(data):
		return "", refuse(core.CodeValidation, "%s of skill %s is not a text file.", name, s.Name)
	}
	text, _ := visible(strings.ReplaceAll(string(data), "\r\n", "\n"))
	return window(text, in.Offset)
}

// window returns the part of a text at an offset.
func window(text string, offset int) (string, *refusal) {
	if offset < 0 || offset > len(text) {
		return "", refuse(core.CodeValidation, "The offset %d is not within the file of %d bytes.", offset, len(text))
	}
	rest := text[offset:]
	if len(rest) <= maxResource {
		return strings.ToValidUTF8(rest, ""), nil
	}
	part := strings.ToValidUTF8(rest[:maxResource], "")
	return fmt.Sprintf("%s\n[%d of %d bytes; continue with offset %d]", part, len(part), len(text), offset+len(part)), nil
}
