package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/sdk"
)

// PluginOptions configure the bundled plugin.
type PluginOptions struct {
	Languages []string `json:"languages,omitempty"`
	Ignore    []string `json:"ignore,omitempty"`
	Tokens    int      `json:"tokens,omitempty"` // of context for an input; 0 is none
}

// OptionsEnv is the environment variable that tells the plugin's process its
// options, as JSON.
const OptionsEnv = "AGENT_GRAPH_OPTIONS"

// OptionsFromEnv returns the options of the plugin's process.
func OptionsFromEnv() PluginOptions {
	var o PluginOptions
	_ = json.Unmarshal([]byte(os.Getenv(OptionsEnv)), &o) // without it, or for another program: the defaults
	return o
}

// Encode returns the options for OptionsEnv.
func (o PluginOptions) Encode() string {
	data, _ := json.Marshal(o) // cannot fail: texts and a number
	return string(data)
}

// Plugin returns the bundled plugin with the tools get_impact and graph_query. It
// reads the workspace and writes its data directory, nothing else.
func Plugin(version string, o PluginOptions) sdk.Plugin {
	s := &server{options: o, indexes: map[string]*indexing{}}
	p := sdk.Plugin{
		Name: "graph", Version: version, Summary: "Knows what calls what, and what a change may break",
		Manifest: sdk.Manifest{Read: []string{"$WORKSPACE"}, Env: []string{OptionsEnv}},
		Extensions: []sdk.Extension{
			sdk.Tool("get_impact", "Lists what changing a file or a symbol may break: affected files and functions, and the tests to run with their command. Use it before you change code that others call.", s.impact, sdk.ReadOnly(), sdk.Timeout(2*time.Minute)),
			sdk.Command("impact", "NAME…", "show what changing files or symbols may break", s.impactCommand),
			sdk.Tool("graph_query", "Answers from the code's dependency graph who calls a function (callers), what it uses (callees), and how one symbol depends on another (path), and finds symbols by a part of their names (symbols). Cheaper and more exact than searching for the name.", s.query, sdk.ReadOnly(), sdk.Timeout(2*time.Minute)),
		},
	}
	if o.Tokens > 0 {
		p.Extensions = append(p.Extensions, sdk.ContextSource("graph", "What the files at hand may break and depend on.", s.context))
	}
	return p
}

// server answers the calls of all sessions; each workspace has one index.
type server struct {
	options PluginOptions
	mu      sync.Mutex
	indexes map[string]*indexing
}

// indexing is an index with the refresh that is under way.
type indexing struct {
	index   *Index
	mu      sync.Mutex
	watched bool
	ready   bool          // a refresh ended, or the cache held facts
	done    chan struct{} // of the refresh under way, or nil
	err     error
}

// open returns the index of a workspace.
func (s *server) open(root string) (*indexing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.indexes[root]; i != nil {
		return i, nil
	}
	x, err := Open(root, Options{Cache: os.Getenv("PLUGIN_DATA_DIR"), Languages: s.options.Languages, Ignore: s.options.Ignore})
	if err != nil {
		return nil, err
	}
	s.indexes[root] = &indexing{index: x, ready: len(x.scanned) > 0}
	return s.indexes[root], nil
}

// refresh waits until the index is up to date. If ctx ends before, the refresh goes
// on for the next call: it belongs to the process, and ends with it.
func (i *indexing) refresh(ctx context.Context) error {
	i.mu.Lock()
	done := i.done
	if done == nil {
		done = make(chan struct{})
		i.done = done
		go func() {
			err := i.index.Refresh(context.Background())
			i.mu.Lock()
			watch := !i.watched && err == nil
			i.done, i.err, i.ready, i.watched = nil, err, true, i.watched || watch
			i.mu.Unlock()
			close(done)
			if watch {
				_ = i.index.Watch(context.Background(), nil) // each call refreshes, too, and tells of errors
			}
		}()
	}
	i.mu.Unlock()
	select {
	case <-done:
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// contextWait is how long an input waits for changed files to be read. It does not
// wait for the first reading of all, which serves the next input.
const contextWait = 300 * time.Millisecond

func (s *server) context(ctx *sdk.Context, req sdk.ContextRequest) (string, error) {
	i, err := s.open(ctx.Workspace())
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	wait := contextWait
	if !i.ready {
		wait = 0
	}
	i.mu.Unlock()
	soon, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := i.refresh(soon); errors.Is(err, context.DeadlineExceeded) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	tokens := s.options.Tokens
	if req.MaxTokens > 0 {
		tokens = min(tokens, req.MaxTokens)
	}
	return i.index.Section(Focus{Input: req.Input, Files: req.Files, Errors: req.Errors, Tokens: tokens, Limits: req.Sections}), nil
}

// impactArgs are the arguments of get_impact.
type impactArgs struct {
	Path string `json:"path" jsonschema:"a file, PATH#NAME, or the name of a function or type"`
}

func (s *server) impact(ctx *sdk.Context, in impactArgs) (sdk.Result, error) {
	x, nodes, err := s.find(ctx, in.Path)
	if err != nil {
		return sdk.Result{}, err
	}
	r := x.graph.Impact(ids(nodes)...)
	return sdk.Result{Text: r.Text(Shown), Structured: r.brief()}, nil
}

// impactCommand answers /impact.
func (s *server) impactCommand(ctx *sdk.Context, args string) (sdk.Reply, error) {
	names := strings.Fields(args)
	if len(names) == 0 {
		return sdk.Reply{}, sdk.Errorf(sdk.Validation, "name files or symbols: /impact PATH, /impact NAME or /impact PATH#NAME")
	}
	var x *Index
	var all []Node
	for _, name := range names {
		at, nodes, err := s.find(ctx, strings.TrimPrefix(name, "@"))
		if err != nil {
			return sdk.Reply{}, err
		}
		x, all = at, append(all, nodes...)
	}
	return sdk.Reply{Text: "```\n" + x.graph.Impact(ids(all)...).Text(Shown) + "\n```"}, nil
}

// current returns the index of the workspace, up to date.
func (s *server) current(ctx *sdk.Context) (*Index, error) {
	i, err := s.open(ctx.Workspace())
	if err != nil {
		return nil, sdk.Errorf(sdk.IO, "%w", err)
	}
	ctx.Progress(0, 0, "reading the code")
	return i.index, i.refresh(ctx)
}

// find brings the index up to date and looks a name up in it.
func (s *server) find(ctx *sdk.Context, name string) (*Index, []Node, error) {
	x, err := s.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	if rel, err := filepath.Rel(ctx.Workspace(), name); filepath.IsAbs(name) && err == nil {
		name = filepath.ToSlash(rel)
	}
	nodes, err := x.graph.Find(name)
	if err != nil {
		return nil, nil, sdk.Errorf(sdk.NotFound, "%w", err)
	}
	return x, nodes, nil
}

// queryArgs are the arguments of graph_query.
type queryArgs struct {
	Query string `json:"query" enum:"callers,callees,path,symbols"`
	Name  string `json:"name" jsonschema:"a function, type or file: NAME, PATH#NAME or PATH; for symbols a part of a name"`
	To    string `json:"to,omitempty" jsonschema:"for path: what name depends on"`
}

func (s *server) query(ctx *sdk.Context, in queryArgs) (sdk.Result, error) {
	if in.Query == "symbols" {
		x, err := s.current(ctx)
		if err != nil {
			return sdk.Result{}, err
		}
		nodes := x.graph.Search(in.Name, maxSymbols)
		return sdk.Result{Text: nodeLines(nodes), Structured: append([]Node{}, nodes...)}, nil
	}
	x, nodes, err := s.find(ctx, in.Name)
	if err != nil {
		return sdk.Result{}, err
	}
	if in.Query != "path" {
		edges := x.graph.Neighbours(nodes, in.Query == "callers")
		return sdk.Result{Text: EdgeText(edges, in.Query == "callers"), Structured: edges}, nil
	}
	if in.To == "" {
		return sdk.Result{}, sdk.Errorf(sdk.Validation, `path needs "to": the name that %q may depend on`, in.Name)
	}
	_, targets, err := s.find(ctx, in.To)
	if err != nil {
		return sdk.Result{}, err
	}
	for _, from := range nodes {
		for _, to := range targets {
			if steps := x.graph.Why(from.ID, to.ID); steps != nil {
				return sdk.Result{Text: EdgeText(steps, false), Structured: steps}, nil
			}
		}
	}
	return sdk.Result{Text: fmt.Sprintf("No known dependency of %s on %s.", in.Name, in.To), Structured: []Edge{}}, nil
}

// Neighbours returns the calls and references to nodes (callers), or from them. A
// file stands for all that it defines; who calls a method of an interface may call
// what implements it.
func (g *Graph) Neighbours(nodes []Node, callers bool) []Edge {
	found := map[string]Edge{}
	for _, n := range nodes {
		inner := []Node{n}
		if n.Kind == File {
			inner = g.InFile(n.File)
		}
		for _, at := range inner {
			list := g.Out(at.ID, Calls, Refers, Inherits, Implement)
			if callers {
				list = g.In(at.ID, Calls, Refers, Inherits, Implement)
			}
			for _, e := range list {
				found[e.From+" "+e.To] = e
				if callers && e.Kind == Implement {
					for _, through := range g.In(e.From, Calls) {
						through.Confidence = leastSure(through.Confidence, e.Confidence)
						found[through.From+" "+through.To] = through
					}
				}
			}
		}
	}
	edges := make([]Edge, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		edges = append(edges, found[key])
	}
	return edges
}

// maxSymbols is how many symbols a query lists.
const maxSymbols = 50

// nodeLines returns symbols for the model, a line each.
func nodeLines(nodes []Node) string {
	if len(nodes) == 0 {
		return "No symbol has a name like that."
	}
	var lines []string
	for _, n := range nodes {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s:%d %s %s %s", n.File, n.Line, n.Kind, n.Name(), clip(n.Signature, 100))))
	}
	return strings.Join(lines, "\n")
}

// EdgeText returns edges for the model, a line each.
func EdgeText(edges []Edge, callers bool) string {
	if len(edges) == 0 {
		return "None that is known."
	}
	var b strings.Builder
	for i, e := range edges {
		if i == 100 {
			fmt.Fprintf(&b, "… %d more\n", len(edges)-i)
			break
		}
		_, from, _ := strings.Cut(e.From, ":")
		_, to, _ := strings.Cut(e.To, ":")
		if e.Line > 0 { // not for what implements an interface
			fmt.Fprintf(&b, "%s:%d ", e.File, e.Line)
			if callers {
				from = nameOf(e.From)
			}
		}
		fmt.Fprintf(&b, "%s %s %s%s\n", from, e.Kind, to, sure(e.Confidence))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Text returns a report as text, with at most n entries of each list.
func (r *Report) Text(n int) string {
	var b strings.Builder
	list := func(title string, total int, lines []string) {
		if total == 0 {
			return
		}
		fmt.Fprintf(&b, "%s (%d):\n", title, total)
		for _, line := range lines {
			b.WriteString("  " + line + "\n")
		}
		if total > len(lines) {
			fmt.Fprintf(&b, "  … %d more\n", total-len(lines))
		}
	}
	entries := func(all []Affected) []string {
		var lines []string
		for _, a := range nearest(all, n) {
			lines = append(lines, fmt.Sprintf("%s:%d %s%s", a.File, a.Line, a.Name(), sure(a.Confidence)))
		}
		return lines
	}
	var files []string
	for _, f := range nearest(r.Files, n) {
		files = append(files, f.Path+sure(f.Confidence))
	}
	list("Affected files", len(r.Files), files)
	list("Affected functions", len(r.Functions), entries(r.Functions))
	list("Tests", len(r.Tests), entries(r.Tests))
	for _, c := range r.Commands {
		fmt.Fprintf(&b, "Run: %s\n", c)
	}
	if len(r.Files)+len(r.Tests) == 0 {
		b.WriteString("Nothing that is known depends on it.\n")
	}
	var unsafe []string
	for _, w := range nearest(r.Unsafe, maxWarnings) {
		unsafe = append(unsafe, fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text))
	}
	list("Not known, so this list may be incomplete", len(r.Unsafe), unsafe)
	return strings.TrimSuffix(b.String(), "\n")
}

// brief returns a report without what makes it long.
func (r *Report) brief() map[string]any {
	names := func(list []Affected) []string {
		all := make([]string, 0, len(list))
		for _, a := range nearest(list, 50) {
			all = append(all, a.ID)
		}
		return all
	}
	return map[string]any{
		"files": nearest(r.Files, 50), "functions": names(r.Functions), "tests": names(r.Tests), "commands": r.Commands,
		"edges": r.Edges, "complete": r.Complete,
	}
}
