package graph

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Focus is what a context section is about.
type Focus struct {
	Input  string         // the user's words: what they name is looked up
	Files  []string       // relative paths that were touched
	Errors []string       // of what was run last
	Tokens int            // the section fits into; a token is about four characters
	Limits map[string]int // tokens by section: errors, impact, dependencies, map, summary
	// Project adds figures of the whole graph, and is enough for a section.
	Project bool
}

// Shown is how many entries of each list of a report get_impact tells.
const Shown = 20

// The figures of a section.
const (
	maxAffected     = 10
	maxTests        = 5
	maxKeyFiles     = 10
	maxDependencies = 15
	maxWarnings     = 5
	maxDoc          = 100 // characters
)

// Section returns what the graph knows about a focus, in the order of its use: where
// errors are, what the files named and touched may break, what they depend on, the
// most important files around them, and what is unknown. It returns "" if the focus
// names nothing in the graph.
func (x *Index) Section(f Focus) string {
	g := x.graph
	focus := x.focus(f)
	places := g.places(f.Errors)
	if len(focus)+len(places) == 0 && !f.Project {
		return ""
	}
	s := section{left: 4 * f.Tokens, limits: f.Limits}
	s.add("errors", "Where the last errors are", places)
	var report *Report
	if len(focus) > 0 {
		report = g.Impact(ids(focus)...)
		s.add("impact", "What changing "+strings.Join(nearest(labels(focus), 3), ", ")+" may break", report.lines())
		s.add("dependencies", "What it uses", g.dependencies(focus))
		s.add("map", "Files most related to it", g.related(focus))
	}
	if f.Project {
		s.add("summary", "The whole graph", x.Summary().lines())
	}
	s.add("summary", "Not known", unknowns(report, g))
	return strings.TrimSpace(s.text.String())
}

// section collects lines within a budget of characters.
type section struct {
	text   strings.Builder
	left   int
	limits map[string]int
}

// add adds lines below a title as far as they fit, and says how many did not.
func (s *section) add(name, title string, lines []string) {
	left := s.left
	if limit, ok := s.limits[name]; ok {
		left = min(left, 4*limit)
	}
	head := title + ":\n"
	const more = "- … 1000 more\n"
	if len(lines) == 0 || left < len(head)+len(lines[0])+3+len(more) {
		return
	}
	before := s.text.Len()
	s.text.WriteString(head)
	for i, line := range lines {
		if s.text.Len()-before+len(line)+3+len(more) > left {
			fmt.Fprintf(&s.text, "- … %d more\n", len(lines)-i)
			break
		}
		s.text.WriteString("- " + line + "\n")
	}
	s.left -= s.text.Len() - before
}

// focus returns the nodes that a focus is about: touched files, and what the input
// names, if it names it clearly.
func (x *Index) focus(f Focus) []Node {
	var nodes []Node
	add := func(found []Node) {
		for _, n := range found {
			if !slices.ContainsFunc(nodes, func(o Node) bool { return o.ID == n.ID }) {
				nodes = append(nodes, n)
			}
		}
	}
	for _, word := range named(f.Input) {
		if found, err := x.graph.Find(word); err == nil && len(found) <= 2 {
			add(found)
		}
	}
	for _, name := range f.Files {
		name = strings.TrimPrefix(name, x.root+"/")
		if found := x.graph.InFile(cleanPath(name)); len(found) > 0 {
			add(found[:1])
		}
	}
	return nearest(nodes, 8)
}

// named returns the words of a text that look like paths or names of code: with a
// dot, slash, underscore or inner capital, in backquotes, or followed by ().
func named(text string) []string {
	var words []string
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;:?!<>{}|=`, r) }) {
		quoted := strings.Contains(field, "`")
		call := strings.Contains(field, "()")
		word := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(field, "`", ""), "()", ""), "().*[]@")
		if len(word) < 3 || len(word) > 200 {
			continue
		}
		inner := strings.IndexFunc(word[1:], unicode.IsUpper) >= 0 && strings.ToUpper(word) != word
		if quoted || call || inner || strings.ContainsAny(word, "./_#") {
			words = append(words, word)
		}
		if len(words) == 32 {
			break
		}
	}
	return words
}

// places returns where in the code the "FILE:LINE" of error messages are.
func (g *Graph) places(errors []string) []string {
	var lines []string
	for _, text := range errors {
		for _, field := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'()[]`, r) }) {
			name, rest, ok := strings.Cut(cleanPath(field), ":")
			number, _, _ := strings.Cut(rest, ":")
			n, err := strconv.Atoi(number)
			if !ok || err != nil {
				continue
			}
			if node := g.at(name, n); node != nil {
				line := fmt.Sprintf("%s:%d is in %s (lines %d-%d)", node.File, n, node.Name(), node.Line, node.EndLine)
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	return nearest(lines, 5)
}

// at returns the innermost node at a line of a file, whose path may be cut.
func (g *Graph) at(name string, line int) *Node {
	g.mu.RLock()
	defer g.mu.RUnlock()
	f := g.files[name]
	for p := range g.files {
		if f == nil && strings.HasSuffix(p, "/"+name) {
			f = g.files[p]
		}
	}
	if f == nil {
		return nil
	}
	var best *Node
	for i := range f.nodes {
		if n := &f.nodes[i]; n.Kind != File && n.Kind != Package && n.Line <= line && line <= n.EndLine && (best == nil || n.EndLine-n.Line < best.EndLine-best.Line) {
			best = n
		}
	}
	return best
}

// lines returns a report for the model.
func (r *Report) lines() []string {
	var lines []string
	for _, f := range nearest(r.Files, maxAffected) {
		lines = append(lines, f.Path+sure(f.Confidence))
	}
	if n := len(r.Files) - maxAffected; n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more files", n))
	}
	if len(r.Functions) > 0 {
		var names []string
		for _, f := range nearest(r.Functions, maxAffected) {
			names = append(names, f.Name())
		}
		lines = append(lines, fmt.Sprintf("functions (%d): %s", len(r.Functions), strings.Join(names, ", ")))
	}
	if len(r.Tests) > 0 {
		var names []string
		for _, t := range nearest(r.Tests, maxTests) {
			names = append(names, t.Name())
		}
		lines = append(lines, fmt.Sprintf("tests (%d): %s", len(r.Tests), strings.Join(names, ", ")))
	}
	if len(lines) == 0 {
		return []string{"nothing that is known"}
	}
	return append(lines, "found by edges of confidence: "+breakdown(r.Edges, len(r.Unsafe)))
}

// breakdown lists how many edges there are of each confidence, and unsafe places.
func breakdown(edges map[Confidence]int, unsafe int) string {
	text := fmt.Sprintf("high %d, medium %d, low %d", edges[High], edges[Medium], edges[Low])
	if unsafe > 0 {
		text += fmt.Sprintf("; unsafe places: %d", unsafe)
	}
	return text
}

// lines returns the figures of a graph for the model.
func (s Summary) lines() []string {
	if s.Files == 0 {
		return nil
	}
	edges, total := map[Confidence]int{}, 0
	for kind, counts := range s.Edges {
		if kind == Contains {
			continue
		}
		for c, n := range counts {
			edges[Confidence(c)] += n
			total += n
		}
	}
	return []string{
		fmt.Sprintf("%d files, %d functions and methods, %d tests", s.Files, s.Nodes[Function]+s.Nodes[Method], s.Nodes[Test]),
		fmt.Sprintf("%d dependencies, by confidence: %s", total, breakdown(edges, s.Warnings["unsafe"])),
	}
}

func sure(c Confidence) string {
	if c == High {
		return ""
	}
	return " (" + string(c) + " confidence)"
}

func ids(nodes []Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.ID)
	}
	return list
}

func labels(nodes []Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name())
	}
	return list
}

// dependencies returns the signatures of what some nodes use in other files.
func (g *Graph) dependencies(nodes []Node) []string {
	seen := map[string]bool{}
	var lines []string
	for _, n := range nodes {
		inner := []Node{n}
		if n.Kind == File {
			inner = g.InFile(n.File)
		}
		for _, from := range inner {
			for _, e := range g.Out(from.ID, Calls, Refers, Inherits) {
				to, ok := g.Node(e.To)
				if !ok || to.File == n.File || seen[to.ID] || to.Kind == File || to.Kind == Package || rank(e.Confidence) > rank(Medium) {
					continue
				}
				seen[to.ID] = true
				line := fmt.Sprintf("%s:%d %s", to.File, to.Line, cmp.Or(to.Signature, to.Name()))
				if to.Doc != "" {
					line += " — " + clip(to.Doc, maxDoc)
				}
				lines = append(lines, line)
			}
		}
	}
	return nearest(lines, maxDependencies)
}

// related returns the files that matter most to some nodes: a PageRank over the
// files that use each other, which begins at theirs (L. Page et al., 1999).
func (g *Graph) related(nodes []Node) []string {
	start := map[string]float64{}
	for _, n := range nodes {
		start[n.File] = 1 / float64(len(nodes))
	}
	links := g.fileLinks()
	weight := maps.Clone(start)
	const damping, rounds = 0.75, 12
	for range rounds {
		next := map[string]float64{}
		for name, w := range start {
			next[name] += (1 - damping) * w
		}
		for name, w := range weight {
			total := 0.0
			for _, n := range links[name] {
				total += n
			}
			for to, n := range links[name] {
				next[to] += damping * w * n / total
			}
		}
		weight = next
	}
	names := slices.SortedFunc(maps.Keys(weight), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	var lines []string
	for _, name := range names {
		if start[name] == 0 && len(lines) < maxKeyFiles {
			lines = append(lines, name+g.outlineOf(name))
		}
	}
	return lines
}

// fileLinks returns how much files use each other, in both directions.
func (g *Graph) fileLinks() map[string]map[string]float64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	links := map[string]map[string]float64{}
	add := func(a, b string, w float64) {
		if links[a] == nil {
			links[a] = map[string]float64{}
		}
		links[a][b] += w
	}
	for name, f := range g.files {
		for i := range f.facts {
			to := g.node(f.facts[i].to)
			if k := f.facts[i].kind; to == nil || to.File == name || name == methodsFile || to.Kind == Package || !k.causes() || k == Inits {
				continue
			}
			add(name, to.File, 1)
			add(to.File, name, 0.5)
		}
	}
	for a := range links { // many uses of one file count less than uses of many
		for b, n := range links[a] {
			links[a][b] = math.Sqrt(n)
		}
	}
	return links
}

// outlineOf returns the first names that a file defines.
func (g *Graph) outlineOf(name string) string {
	var names []string
	for _, n := range g.InFile(name) {
		if n.Kind != File && n.Kind != Package && n.Kind != Variable && !strings.Contains(n.Name(), ".") {
			names = append(names, n.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(nearest(names, 6), ", ")
}

func unknowns(r *Report, g *Graph) []string {
	if r == nil {
		return nil
	}
	var lines []string
	for _, w := range nearest(r.Unsafe, maxWarnings) {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text))
	}
	for _, w := range g.Warnings() {
		if w.Code == "syntax" && len(lines) < maxWarnings && slices.ContainsFunc(r.Changed, func(n Node) bool { return path.Dir(n.File) == path.Dir(w.File) }) {
			lines = append(lines, fmt.Sprintf("%s: %s", w.File, w.Text))
		}
	}
	return lines
}
