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
)

//go:embed tool.md
var toolDoc string

// ToolName is the name of the tool.
const ToolName = "skill"

// ToolsOptions say what the tools work with.
type ToolsOptions struct {
	Library *Library
	Usage   *Usage // may be nil
	// OpenToolset opens a binary of a skill's toolsets folder, whose SHA-256 in
	// hex is sum: the person agreed to that. AddToolset takes it over. Without
	// both, toolsets are not opened.
	OpenToolset func(path, sum string) (core.Toolset, error)
	AddToolset  func(core.Toolset) error
	// ScriptTimeout bounds a script; 0 = DefaultScriptTimeout.
	ScriptTimeout time.Duration
	// Problem hears of a toolset that could not be opened. It may be nil.
	Problem func(error)
}

// Tools is the toolset of skills: the tool "skill", where there are skills. It
// implements [core.Toolset].
type Tools struct {
	opts    ToolsOptions
	skill   core.Tool
	changed chan struct{}

	mu     sync.Mutex
	shown  bool // the tool is in the table
	opened map[string]bool
	closed bool
}

var _ core.Toolset = (*Tools)(nil)

// NewTools returns the toolset. It reads and opens nothing yet.
func NewTools(opts ToolsOptions) *Tools {
	if opts.ScriptTimeout <= 0 {
		opts.ScriptTimeout = DefaultScriptTimeout
	}
	t := &Tools{opts: opts, changed: make(chan struct{}, 1), opened: map[string]bool{}}
	t.skill = core.NewTool(core.ToolDefinition{
		Name: ToolName, Description: strings.TrimSpace(toolDoc), Scopes: []core.Scope{core.ScopeSkillScript},
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

// look says that the tools changed, if the first skill came or the last went.
func (t *Tools) look(c *Catalog) {
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

// Activate opens the toolsets of a skill that is activated: their tools join
// the table before the next request. A toolset is native code, so that only
// those of skills are opened that the person agreed to install.
func (t *Tools) Activate(s *Skill) {
	for _, name := range s.Toolsets {
		if err := t.open(s, name); err != nil && t.opts.Problem != nil {
			t.opts.Problem(fmt.Errorf("toolset %s of skill %s: %w", name, s.Name, err))
		}
	}
}

func (t *Tools) open(s *Skill, name string) error {
	switch {
	case t.opts.OpenToolset == nil || t.opts.AddToolset == nil:
		return errors.New("toolsets are not opened here")
	case !s.Installed || !s.lock.Toolsets || s.Scope == ScopeProject:
		return errors.New("it is native code that nobody agreed to: agent skills add asks")
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
	Action string   `json:"action" jsonschema:"search, load, read_resource or run_script"`
	Name   string   `json:"name,omitempty"`
	Query  string   `json:"query,omitempty"`
	Path   string   `json:"path,omitempty" jsonschema:"of a file in the skill's folder"`
	Offset int      `json:"offset,omitempty" jsonschema:"byte of a resource to begin at"`
	Args   []string `json:"args,omitempty" jsonschema:"of the script"`
}

// access says what a call touches: a script is a program, all else is the
// skill's own text, which the person installed to be read.
func (t *Tools) access(_ context.Context, call *core.Call, in toolArgs) ([]core.Access, error) {
	if in.Action != "run_script" {
		return nil, nil
	}
	c, failure := t.prepare(call, in)
	if failure != nil {
		return nil, errors.New(failure.text)
	}
	return []core.Access{{Scope: core.ScopeSkillScript, Resource: strings.Join(c.argv, " "), Argv: c.argv}}, nil
}

// refusal is why a call cannot be done, for the model.
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
		text, failure = t.search(in.Query)
	case "load":
		text, failure = t.load(in.Name)
	case "read_resource":
		text, failure = t.resource(in)
	case "run_script":
		return t.script(ctx, call, in)
	default:
		failure = refuse(core.CodeValidation, "There is no action %q. The actions are search, load, read_resource and run_script.", in.Action)
	}
	if failure != nil {
		return core.Fail(failure.code, failure.text), nil
	}
	return core.TextResult(text), nil
}

// search lists what fits a query best, or everything that fits in.
func (t *Tools) search(query string) (string, *refusal) {
	catalog := t.opts.Library.Catalog()
	var found []*Skill
	if strings.TrimSpace(query) == "" {
		for _, s := range catalog.Active() {
			if !s.NoModel {
				found = append(found, s)
			}
		}
		found = found[:min(len(found), 50)]
	} else {
		for _, m := range catalog.Matcher().Match(query, MatchOptions{Used: t.opts.Usage.Last}).Shortlist {
			if !m.Skill.NoModel {
				found = append(found, m.Skill)
			}
		}
	}
	if len(found) == 0 {
		return fmt.Sprintf("No skill has to do with %q. Go on without one.", query), nil
	}
	var b strings.Builder
	for _, s := range found {
		b.WriteString(Line(s))
	}
	return b.String() + "Load one by its name.", nil
}

// find finds a skill that the model may use.
func (t *Tools) find(name string) (*Skill, *refusal) {
	catalog := t.opts.Library.Catalog()
	s, ok := catalog.Find(name)
	switch {
	case name == "":
		return nil, refuse(core.CodeValidation, "name is missing: give that of a skill.")
	case !ok:
		var near []string
		for _, m := range catalog.Matcher().Match(strings.ReplaceAll(name, "-", " "), MatchOptions{Shortlist: 3}).Shortlist {
			near = append(near, m.Skill.Name)
		}
		if len(near) == 0 {
			return nil, refuse(core.CodeNotFound, "There is no skill %q. Search for one.", name)
		}
		return nil, refuse(core.CodeNotFound, "There is no skill %q. Near it are: %s.", name, strings.Join(near, ", "))
	case s.NoModel:
		return nil, refuse(core.CodePermission, "Only the person activates the skill %s, with /%s.", s.Name, s.Name)
	case s.State == StateOff || s.State == StateChanged:
		return nil, refuse(core.CodePermission, "The skill %s cannot be used: %s. Tell the person, and go on without it.", s.Name, s.Why)
	}
	return s, nil
}

func (t *Tools) load(name string) (string, *refusal) {
	s, failure := t.find(name)
	if failure != nil {
		return "", failure
	}
	t.opts.Usage.Note(s.Name, time.Now())
	t.Activate(s)
	text := fmt.Sprintf("<skill name=%q scope=%q>\n%s\n</skill>", s.Name, s.Scope, Disclosed(s, ""))
	if files := s.resources(); len(files) > 0 {
		text += "\nFiles: " + strings.Join(files, ", ")
	}
	return text, nil
}

// maxListed bounds the files that are named of a skill.
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

// maxResource bounds what is read of a resource at once, in bytes.
const maxResource = 40_000

// resource reads a file of a skill.
func (t *Tools) resource(in toolArgs) (string, *refusal) {
	s, failure := t.find(in.Name)
	if failure != nil {
		return "", failure
	}
	name := path.Clean(strings.ReplaceAll(in.Path, "\\", "/"))
	if in.Path == "" || !fs.ValidPath(name) || name == "." {
		return "", refuse(core.CodeValidation, "path %q is none in the skill's folder. Its files: %s.", in.Path, strings.Join(s.resources(), ", "))
	}
	if strings.EqualFold(name, "SKILL.md") {
		return window(s.Body, in.Offset)
	}
	if err := s.contained(name); err != nil {
		return "", refuse(core.CodeNotFound, "%v. Its files: %s.", err, strings.Join(s.resources(), ", "))
	}
	data, err := readFile(s.Files, name, 8<<20)
	switch {
	case err != nil:
		return "", refuse(core.CodeIO, "%s of skill %s cannot be read: %v.", name, s.Name, err)
	case !utf8.Valid(data):
		return "", refuse(core.CodeValidation, "%s of skill %s is no text.", name, s.Name)
	}
	text, _ := visible(strings.ReplaceAll(string(data), "\r\n", "\n"))
	return window(text, in.Offset)
}

// window is a part of a text.
func window(text string, offset int) (string, *refusal) {
	if offset < 0 || offset > len(text) {
		return "", refuse(core.CodeValidation, "offset %d is not within the %d bytes of the file.", offset, len(text))
	}
	rest := text[offset:]
	if len(rest) <= maxResource {
		return strings.ToValidUTF8(rest, ""), nil
	}
	part := strings.ToValidUTF8(rest[:maxResource], "")
	return fmt.Sprintf("%s\n[%d of %d bytes; read on with offset %d]", part, len(part), len(text), offset+len(part)), nil
}
