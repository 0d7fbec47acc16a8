package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/lsp"
)

// languageServers is the toolset of the bundled plugin lsp. It offers the model one
// tool instead of the plugin's, which are for the agent.
type languageServers struct {
	*plugins.Plugin
	tool languageTool
}

func newLanguageServers(p *plugins.Plugin) *languageServers {
	l := &languageServers{Plugin: p}
	l.tool.Tool = core.NewTool(core.ToolDefinition{
		Name: "lsp", Description: lspDescription, Schema: json.RawMessage(lspSchema),
		Scopes: []core.Scope{core.ScopeRead, core.ScopeWrite}, Timeout: 2 * lsp.QueryTimeout,
	}, l.access, l.run)
	return l
}

// Tools implements [core.Toolset].
func (l *languageServers) Tools(context.Context) ([]core.Tool, error) {
	return []core.Tool{l.tool}, nil
}

type lspArgs struct {
	Action  string `json:"action"`
	Path    string `json:"path"`
	Symbol  string `json:"symbol"`
	Line    int    `json:"line"`
	NewName string `json:"new_name"`
}

const (
	lspDescription = `Asks a language server: the definition of a symbol, its references, a rename in all files, or diagnostics of a file. Exact where grep guesses.`
	lspSchema      = `{"type":"object","properties":{"action":{"type":"string","enum":["definition","references","rename","diagnostics"]},"path":{"type":"string"},"symbol":{"type":"string","description":"a name in the file"},"line":{"type":"integer","description":"where it is, from 1"},"new_name":{"type":"string"}},"required":["action","path"],"additionalProperties":false}`
)

// languageTool shows what a rename would change before it is approved.
type languageTool struct{ core.Tool }

var _ preview.Previewer = languageTool{}

// Preview implements [preview.Previewer].
func (t languageTool) Preview(ctx context.Context, call *core.Call) ([]preview.Change, error) {
	return preview.Run(ctx, call, t.Run)
}

// access returns the files of a rename, and for other questions the workspace, from
// which answers show lines.
func (l *languageServers) access(ctx context.Context, call *core.Call, in lspArgs) ([]core.Access, error) {
	list := []core.Access{{Scope: core.ScopeRead, Resource: in.Path}}
	switch in.Action {
	case lsp.Diagnostics:
	case lsp.Rename:
		answer, err := l.query(ctx, call, in)
		if err != nil {
			return list, nil // the run says why
		}
		for _, e := range answer.Edits {
			list = append(list, core.Access{Scope: core.ScopeRead, Resource: e.Path}, core.Access{Scope: core.ScopeWrite, Resource: e.Path})
		}
	default:
		list = append(list, core.Access{Scope: core.ScopeRead, Resource: call.Session.Dir, Recursive: true})
	}
	return list, nil
}

func (l *languageServers) run(ctx context.Context, call *core.Call, in lspArgs) (core.Result, error) {
	answer, err := l.query(ctx, call, in)
	switch {
	case ctx.Err() != nil:
		return core.Result{}, ctx.Err()
	case err != nil:
		return core.Failf(core.CodeNotFound, "%v", err), nil
	}
	switch in.Action {
	case lsp.Rename:
		return rename(ctx, call, in, answer.Edits)
	case lsp.Diagnostics:
		if answer.Text == "" {
			answer.Text = fmt.Sprintf("%s has no problems with %s.", answer.Server, in.Path)
		}
		return core.TextResult(answer.Text), nil
	}
	return core.TextResult(locations(ctx, call, answer)), nil
}

// query asks the plugin, about the file as the session has it.
func (l *languageServers) query(ctx context.Context, call *core.Call, in lspArgs) (a lsp.Answer, err error) {
	file, err := fileOf(ctx, call.Env, in.Path)
	if err != nil {
		return a, err
	}
	err = l.ask(ctx, call.Session, lsp.QueryTool, lsp.Query{Action: in.Action, File: file, Symbol: in.Symbol, Line: in.Line, NewName: in.NewName}, &a)
	return a, err
}

// fileOf returns a file as an environment has it.
func fileOf(ctx context.Context, env core.Environment, path string) (lsp.File, error) {
	to, err := env.Resolve(ctx, path)
	if err != nil {
		return lsp.File{}, err
	}
	data, err := core.ReadFile(ctx, env.Files(), to.Path, lsp.MaxFile)
	file := lsp.File{Path: to.Path}
	if text := string(data); err == nil && utf8.ValidString(text) {
		file.Text = &text
	}
	return file, err
}

// ask calls one of the plugin's tools.
func (l *languageServers) ask(ctx context.Context, session core.SessionInfo, name string, args, answer any) error {
	all, err := l.Plugin.Tools(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t core.Tool) bool { return t.Definition().Name == name })
	text, err := json.Marshal(args)
	if i < 0 || err != nil {
		return errors.Join(err, fmt.Errorf("the plugin lsp has no tool %q", name))
	}
	res, err := all[i].Run(ctx, &core.Call{ID: name, Name: name, Args: text, Session: session})
	switch {
	case err != nil:
		return err
	case res.Code != "":
		return errors.New(model.Parts(res.Content).Text())
	}
	return json.Unmarshal(res.Structured, answer)
}

// locations formats places, with their lines where the call may read them.
func locations(ctx context.Context, call *core.Call, a lsp.Answer) string {
	var b strings.Builder
	lines := map[string][]string{}
	for _, at := range a.Locations {
		all, known := lines[at.Path]
		if !known {
			if data, err := core.ReadFile(ctx, call.Env.Files(), at.Path, lsp.MaxFile); err == nil {
				all = strings.Split(string(data), "\n")
			}
			lines[at.Path] = all
		}
		fmt.Fprintf(&b, "%s:%d:%d", shown(call.Session.Dir, at.Path), at.Line, at.Column)
		if at.Line <= len(all) {
			const most = 200
			text := []rune(strings.TrimSpace(all[at.Line-1]))
			b.WriteString(": " + string(text[:min(len(text), most)]))
		}
		b.WriteByte('\n')
	}
	if a.More > 0 {
		fmt.Fprintf(&b, "… %d more\n", a.More)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shown returns a path as the model sees it.
func shown(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// rename makes the edits of a rename: all or none.
func rename(ctx context.Context, call *core.Call, in lspArgs, edits []lsp.FileEdit) (core.Result, error) {
	files := call.Env.Files()
	var list []preview.Change
	var b strings.Builder
	fmt.Fprintf(&b, "Renamed %s to %s:\n", in.Symbol, in.NewName)
	for _, e := range edits {
		before, err := core.ReadFile(ctx, files, e.Path, lsp.MaxFile)
		if err != nil {
			return core.Result{}, err
		}
		after, err := e.Apply(before)
		if err != nil {
			return core.Failf(core.CodeValidation, "Nothing was renamed: %v.", err), nil
		}
		list = append(list, preview.Change{Path: shown(call.Session.Dir, e.Path), At: e.Path, Before: before, After: after})
		fmt.Fprintf(&b, "%s: %d\n", shown(call.Session.Dir, e.Path), len(e.Ranges))
	}
	for i, c := range list {
		err := files.Write(ctx, c.At, bytes.NewReader(c.After), 0)
		if err == nil {
			continue
		}
		for _, c := range list[:i] {
			err = errors.Join(err, files.Write(context.WithoutCancel(ctx), c.At, bytes.NewReader(c.Before), 0))
		}
		return core.Result{}, fmt.Errorf("nothing was renamed: %w", err)
	}
	res := core.TextResult(strings.TrimSuffix(b.String(), "\n"))
	res.Meta = preview.Meta(list...)
	return res, nil
}

// checkWait is how long a result waits for the problems that its call made.
const checkWait = 300 * time.Millisecond

// checkLimit ends a check whose plugin does not answer.
const checkLimit = 5 * time.Second

// checking adds problems to the results of a session's calls.
type checking struct {
	servers *languageServers
	env     core.Environment
	info    core.SessionInfo
	warn    func(ctx context.Context, err error)

	mu      sync.Mutex
	changed map[string][]string // by call, from the watcher
	pending bool
}

// checkEdits makes the results of a session's calls have the problems that language
// servers see in what the calls changed.
func (a *Agent) checkEdits(cfg *core.Config) {
	if a.servers == nil {
		return
	}
	c := &checking{servers: a.servers, env: cfg.Env, info: core.SessionInfo{ID: cfg.ID, AgentPath: cfg.AgentPath, Dir: cfg.Env.Info().Dir}, changed: map[string][]string{}}
	if cfg.ToolEnv != nil {
		c.env = cfg.ToolEnv
	}
	c.warn = func(ctx context.Context, err error) {
		a.opts.Logger.DebugContext(ctx, "language servers", "error", err)
	}
	if cfg.Watcher != nil {
		cfg.Watcher = checkedWatcher{cfg.Watcher, c}
	}
	host := cfg.Hooks.AfterTool
	cfg.Hooks.AfterTool = func(ctx context.Context, call model.ToolCall, res *core.Result) {
		if host != nil {
			host(ctx, call, res)
		}
		c.after(ctx, call, res)
	}
}

// checkedWatcher notes which files calls change, commands included.
type checkedWatcher struct {
	core.Watcher
	c *checking
}

// Before implements [core.Watcher].
func (w checkedWatcher) Before(ctx context.Context, call *core.Call, accesses []core.Access) func(context.Context) []event.Body {
	after := w.Watcher.Before(ctx, call, accesses)
	return func(ctx context.Context) []event.Body {
		bodies := after(ctx)
		w.c.mu.Lock()
		defer w.c.mu.Unlock()
		for _, body := range bodies {
			if f, ok := body.(event.FilesChanged); ok {
				for _, file := range f.Files {
					w.c.changed[call.ID] = append(w.c.changed[call.ID], filepath.Join(f.Root, filepath.FromSlash(file.Path)))
				}
			}
		}
		return bodies
	}
}

// maxChecked is how many files of one call are checked.
const maxChecked = 20

// after adds what is known to a result.
func (c *checking) after(ctx context.Context, call model.ToolCall, res *core.Result) {
	c.mu.Lock()
	paths, pending := c.changed[call.ID], c.pending
	delete(c.changed, call.ID)
	c.mu.Unlock()
	if len(paths) == 0 { // without a watcher
		for _, e := range (&event.ToolResult{Meta: res.Meta}).Edits() {
			paths = append(paths, e.Path)
		}
	}
	if len(paths) == 0 && !pending {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	request := lsp.Check{WaitMS: int(checkWait.Milliseconds())}
	if len(paths) == 0 {
		request.WaitMS = 1
	}
	for _, path := range paths[:min(len(paths), maxChecked)] {
		file, err := fileOf(ctx, c.env, path)
		if file.Path == "" {
			c.warn(ctx, err)
			continue
		}
		if !slices.ContainsFunc(request.Files, func(f lsp.File) bool { return f.Path == file.Path }) {
			request.Files = append(request.Files, file)
		}
	}
	var report lsp.Report
	if err := c.servers.ask(ctx, c.info, lsp.CheckTool, request, &report); err != nil {
		c.warn(ctx, err)
	}
	c.mu.Lock()
	c.pending = report.Pending
	c.mu.Unlock()
	if report.Text != "" {
		res.Content = append(slices.Clone(res.Content), model.Text{Text: "\nDiagnostics of language servers:\n" + report.Text})
	}
}
