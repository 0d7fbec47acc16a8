package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// The questions that agent graph bench --questions asks.
const (
	whoCalls   = "who calls X"
	whatBreaks = "what breaks if X changes"
	// maxGreps is how often one question is searched for before it is given up.
	maxGreps      = 20
	contextTokens = 1500
)

// The sets of questions: the same words each time, and other subjects in other words.
const (
	plainSet = "plain"
	otherSet = "other words"
)

// way is how well one way of finding out answers the questions of a kind.
type way struct {
	Set      string `json:"set"`
	Question string `json:"question"`
	Way      string `json:"way"`
	Asked    int    `json:"asked"`
	Calls    int    `json:"calls"`  // of the tool
	Tokens   int    `json:"tokens"` // of the calls and answers, for the median question
	Held     found  `json:"held"`   // of what the reference knows
	Right    score  `json:"right"`  // of what the answers list
	costs    []int
}

// asking puts questions, of which the reference knows the answers.
type asking struct {
	x     *graph.Index
	truth *truth
	nodes map[place]graph.Node
	grep  func(ctx context.Context, pattern, mode string) (string, error)
	calls map[place][]place // the callers of each definition
	set   string
	ways  map[[3]string]*way // by set, question and name
}

func newAsking(x *graph.Index, t *truth) (*asking, error) {
	grep, err := grepIn(x.Root())
	if err != nil {
		return nil, err
	}
	a := &asking{x: x, truth: t, grep: grep, nodes: map[place]graph.Node{}, calls: map[place][]place{}, set: plainSet, ways: map[[3]string]*way{}}
	for _, n := range x.Graph().Nodes() {
		if n.Kind != graph.Package {
			a.nodes[placeOf(n)] = n
		}
	}
	for call := range t.calls {
		if call[0] != call[1] {
			a.calls[call[1]] = append(a.calls[call[1]], call[0])
		}
	}
	for _, callers := range a.calls {
		slices.SortFunc(callers, byPlace)
	}
	return a, nil
}

// ask asks n questions of each set, half of each kind, about definitions that the
// reference knows callers of.
func ask(ctx context.Context, x *graph.Index, t *truth, n int) ([]*way, error) {
	a, err := newAsking(x, t)
	if err != nil {
		return nil, err
	}
	subjects := a.subjects()
	if len(subjects) == 0 {
		return nil, fmt.Errorf("no question can be asked: the reference knows no call of a definition in %s", x.Root())
	}
	for i, at := range subjects[:min(2*n, len(subjects))] {
		number := i
		if a.set = plainSet; i >= n {
			a.set, number = otherSet, i-n
		}
		question := a.whoCalls
		if number%2 == 1 {
			question = a.whatBreaks
		}
		if err := question(ctx, at, wording(a.set, number, at)); err != nil {
			return nil, err
		}
	}
	return a.results(), nil
}

// wording returns a question as a user may write it, the first of the plain ones for
// callers and the second for what breaks.
func wording(set string, number int, at place) string {
	plain := []string{"Who calls `FILE#NAME`?", "What breaks if `FILE#NAME` changes?"}
	other := []string{
		"Where is NAME from FILE used?",
		"I am about to rewrite NAME in FILE. What could be affected?",
		"List every call site of `LAST` (FILE).",
		"If the behaviour of `LAST` (FILE) changes, which files depend on it?",
		"Which functions invoke LAST() in BASE?",
		"What is the impact of changing LAST() in BASE?",
		"Show me the callers of COLONS (BASE).",
		"Is it safe to change COLONS (BASE)? Which files might break?",
		"NAME gets another parameter. Find all places that call it; it is in FILE.",
		"Which code depends on NAME, directly or not? It is in FILE.",
	}
	list := plain
	if set == otherSet {
		list = other
	}
	return strings.NewReplacer("FILE", at.File, "BASE", path.Base(at.File), "NAME", at.Name, "LAST", lastName(at),
		"COLONS", strings.ReplaceAll(at.Name, ".", "::")).Replace(list[number%len(list)])
}

// The ways to answer, in the order in which they are told.
var answered = [][2]string{
	{whoCalls, "grep"},
	{whoCalls, "graph_query"},
	{whoCalls, "context"},
	{whatBreaks, "grep"},
	{whatBreaks, "grep once"},
	{whatBreaks, "get_impact"},
	{whatBreaks, "context"},
}

// results returns the figures of each way, by set and question.
func (a *asking) results() (list []*way) {
	for _, set := range []string{plainSet, otherSet} {
		for _, key := range answered {
			if w := a.ways[[3]string{set, key[0], key[1]}]; w != nil {
				slices.Sort(w.costs)
				w.Tokens = w.costs[len(w.costs)/2]
				list = append(list, w)
			}
		}
	}
	return list
}

// subjects returns the definitions to ask about, in an order by chance that is the
// same for the same facts.
func (a *asking) subjects() []place {
	var list []place
	for _, at := range slices.SortedFunc(maps.Keys(a.calls), byPlace) {
		known := func(p place) bool { _, ok := a.nodes[p]; return ok }
		if at.Name != "" && known(at) && a.truth.defs[at] && !slices.ContainsFunc(a.calls[at], func(p place) bool { return !known(p) }) {
			list = append(list, at)
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// record adds what one question cost and how good its answer was.
func (a *asking) record(question, name string, calls, cost int, held found, right score) {
	key := [3]string{a.set, question, name}
	w := a.ways[key]
	if w == nil {
		w = &way{Set: a.set, Question: question, Way: name}
		a.ways[key] = w
	}
	w.Asked++
	w.Calls += calls
	w.costs = append(w.costs, cost)
	w.Held.Found += held.Found
	w.Held.Missed += held.Missed
	w.Right.Right += right.Right
	w.Right.Wrong += right.Wrong
}

func tokens(texts ...string) (n int) {
	for _, t := range texts {
		n += (len(t) + 3) / 4
	}
	return n
}

// query is the call of a tool as the model writes it.
func query(name string, args map[string]string) string {
	data, _ := json.Marshal(args) // cannot fail: texts
	return name + string(data)
}

// whoCalls asks for the functions that call a definition.
func (a *asking) whoCalls(ctx context.Context, at place, words string) error {
	subject := at.File + "#" + at.Name
	g := a.x.Graph()
	nodes, err := g.Find(subject)
	if err != nil {
		return err
	}
	answer := graph.EdgeText(g.Neighbours(nodes, true), true)
	held, right := a.judge(at, lines(answer))
	a.record(whoCalls, "graph_query", 1, tokens(query("graph_query", map[string]string{"query": "callers", "name": subject}), answer), held, right)

	answer = a.x.Section(graph.Focus{Input: words, Tokens: contextTokens})
	held, right = a.judge(at, sectionLines(answer))
	a.record(whoCalls, "context", 0, tokens(answer), held, right)

	pattern := callPattern(at)
	if answer, err = a.grep(ctx, pattern, ""); err != nil {
		return err
	}
	held, right = a.judge(at, lines(answer))
	a.record(whoCalls, "grep", 1, tokens(query("grep", map[string]string{"pattern": pattern}), answer), held, right)
	return nil
}

// callPattern is what a search for the calls of a definition looks for: its name with
// a parenthesis behind it, or with type arguments between them.
func callPattern(at place) string {
	return `\b` + regexp.QuoteMeta(lastName(at)) + `(::)?(<.*>)?\s*\(`
}

func lastName(at place) string { return at.Name[strings.LastIndexByte(at.Name, '.')+1:] }

// spot is a line of a file that an answer names.
type spot struct {
	file string
	line int
}

var spots = regexp.MustCompile(`(?m)^\s*(?:- )?([^\s:]+):(\d+)\b`)

// lines returns the lines that an answer names as FILE:LINE at its lines' starts.
func lines(answer string) (list []spot) {
	for _, m := range spots.FindAllStringSubmatch(answer, -1) {
		n, _ := strconv.Atoi(m[2]) // only digits
		list = append(list, spot{m[1], n})
	}
	return list
}

var sameFile = regexp.MustCompile(`, :(\d+)\b`)

// sectionLines returns the lines that a context section names: "- FILE:LINE name, :LINE name".
func sectionLines(answer string) (list []spot) {
	for line := range strings.Lines(answer) {
		for _, first := range lines(line) {
			list = append(list, first)
			for _, m := range sameFile.FindAllStringSubmatch(line, -1) {
				n, _ := strconv.Atoi(m[1]) // only digits
				list = append(list, spot{first.file, n})
			}
		}
	}
	return list
}

// directory is how a context section names several files of one.
var directory = regexp.MustCompile(`^- (\S*/)(?: \([a-z ]+\))?: (.*)`)

// sectionFiles writes the names of files in a context section out.
func sectionFiles(answer string) string {
	var b strings.Builder
	for line := range strings.Lines(answer) {
		b.WriteString(line)
		if m := directory.FindStringSubmatch(line); m != nil {
			for name := range strings.SplitSeq(m[2], ", ") {
				fmt.Fprintln(&b, path.Join(m[1], name))
			}
		}
	}
	return b.String()
}

// holds reports whether a line is one of a definition's, and no inner one's.
func (a *asking) holds(p place, s spot) bool {
	n := a.nodes[p]
	return n.File == s.file && (n.Kind == graph.File || n.Line <= s.line && s.line <= n.EndLine)
}

// judge compares the lines that an answer names with the true callers. Lines of the
// definition are not counted.
func (a *asking) judge(at place, listed []spot) (held found, right score) {
	callers := a.calls[at]
	for _, p := range callers {
		held.count(slices.ContainsFunc(listed, func(s spot) bool { return a.holds(p, s) }))
	}
	for _, s := range listed {
		if !a.holds(at, s) {
			right.count(slices.ContainsFunc(callers, func(p place) bool { return a.holds(p, s) }))
		}
	}
	return held, right
}

// whatBreaks asks for the files that call a definition, directly or not.
func (a *asking) whatBreaks(ctx context.Context, at place, words string) error {
	files := map[string]bool{}
	for p := range a.cone(at) {
		if p.File != at.File {
			files[p.File] = true
		}
	}
	subject := at.File + "#" + at.Name
	g := a.x.Graph()
	nodes, err := g.Find(subject)
	if err != nil {
		return err
	}
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	answer := g.Impact(ids...).Text(graph.Shown)
	a.judgeFiles("get_impact", 1, tokens(query("get_impact", map[string]string{"path": subject}), answer), files, answer, at.File)
	answer = a.x.Section(graph.Focus{Input: words, Tokens: contextTokens})
	a.judgeFiles("context", 0, tokens(answer), files, sectionFiles(answer), at.File)
	pattern := `\b` + regexp.QuoteMeta(lastName(at)) + `\b`
	if answer, err = a.grep(ctx, pattern, filesMode); err != nil {
		return err
	}
	a.judgeFiles("grep once", 1, tokens(query("grep", map[string]string{"pattern": pattern, "output_mode": filesMode}), answer), files, answer, at.File)
	return a.searchCone(ctx, at, files)
}

// cone returns all callers of a definition, direct or not.
func (a *asking) cone(at place) map[place]bool {
	seen := map[place]bool{}
	queue := []place{at}
	for len(queue) > 0 {
		for _, p := range a.calls[queue[0]] {
			if !seen[p] && p != at {
				seen[p] = true
				queue = append(queue, p)
			}
		}
		queue = queue[1:]
	}
	return seen
}

// judgeFiles compares the files that an answer names with the true ones.
func (a *asking) judgeFiles(name string, calls, cost int, files map[string]bool, answer, own string) {
	listed := map[string]bool{}
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return strings.ContainsRune(" \n:,()", r) }) {
		if a.truth.files[word] && word != own {
			listed[word] = true
		}
	}
	var held found
	var right score
	for f := range files {
		held.count(listed[f])
	}
	for f := range listed {
		right.count(files[f])
	}
	a.record(whatBreaks, name, calls, cost, held, right)
}

// searchCone follows the callers with grep: it looks for each function that a hit
// is in and that does call, as one who reads every hit right would.
func (a *asking) searchCone(ctx context.Context, at place, files map[string]bool) error {
	seen := map[place]bool{at: true}
	queue := []place{at}
	calls, cost := 0, 0
	var right strings.Builder
	for ; len(queue) > 0 && calls < maxGreps; queue = queue[1:] {
		if queue[0].Name == "" {
			continue
		}
		pattern := callPattern(queue[0])
		answer, err := a.grep(ctx, pattern, "")
		if err != nil {
			return err
		}
		calls++
		cost += tokens(query("grep", map[string]string{"pattern": pattern}), answer)
		listed := lines(answer)
		for _, p := range a.calls[queue[0]] {
			if !seen[p] && slices.ContainsFunc(listed, func(s spot) bool { return a.holds(p, s) }) {
				seen[p] = true
				queue = append(queue, p)
				fmt.Fprintln(&right, p.File)
			}
		}
	}
	a.judgeFiles("grep", calls, cost, files, right.String(), at.File)
	return nil
}

// filesMode makes grep list files.
const filesMode = "files_with_matches"

// grepIn returns the tool grep for a directory, with its limits for the model.
func grepIn(dir string) (func(ctx context.Context, pattern, mode string) (string, error), error) {
	local, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		return nil, err
	}
	tool := tools.Grep()
	limit := tool.Definition().Output.MaxChars
	return func(ctx context.Context, pattern, mode string) (string, error) {
		args, err := json.Marshal(map[string]string{"pattern": pattern, "output_mode": mode})
		if err != nil {
			return "", err
		}
		result, err := tool.Run(ctx, &core.Call{Name: "grep", Args: args, Env: local, Output: io.Discard})
		if err != nil {
			return "", err
		}
		text := model.Parts(result.Content).Text()
		return text[:min(len(text), limit)], nil
	}, nil
}

func printWays(w io.Writer, list []*way) {
	title := ""
	for _, y := range list {
		if t := fmt.Sprintf("%s, %s (%s)", y.Question, y.Set, display.Plural(y.Asked, "question")); t != title {
			title = t
			fmt.Fprintln(w, title)
		}
		fmt.Fprintf(w, "  %-12s %6d tokens, %5.1f calls, held %-16s right %s\n", y.Way, y.Tokens, float64(y.Calls)/float64(y.Asked),
			share(y.Held.Found, y.Held.Missed), share(y.Right.Right, y.Right.Wrong))
	}
}
