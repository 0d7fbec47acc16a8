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

// Shown is how many entries of each list of a report get_impact tells.
const Shown = 20

// The figures of a section.
const (
	maxCallerFiles  = 10
	maxTests        = 5
	maxKeyFiles     = 10
	maxDependencies = 15
	maxWarnings     = 5
	maxDoc          = 100 // characters
)

// Section returns what the graph knows about a focus, in the order of its use: where
// errors are, what the files named and touched may break, what they depend on, the
// most important files around them, and what is unknown. A question gets its answer and
// nothing else. It returns "" if the focus names nothing in the graph.
func (x *Index) Section(f Focus) string {
	g := x.graph
	about := x.subject(f)
	places := g.places(f.Errors)
	if len(about.nodes)+len(about.unclear)+len(places) == 0 && !f.Project {
		return ""
	}
	s := section{left: 4 * f.Tokens, limits: f.Limits}
	s.add("errors", "Where the last errors are", places)
	asked := topicOf(f.Input)
	if len(f.Files)+len(places) > 0 || f.Project {
		asked = askWork
	}
	nodes := about.nodes
	if len(nodes) == 0 && asked != askWork { // a question about a name is one about all that has it
		for _, a := range about.unclear {
			nodes = append(nodes, a.nodes...)
		}
	}
	s.answer(g, asked, nodes)
	for _, a := range about.unclear {
		if len(about.nodes) > 0 || asked == askWork {
			s.add("summary", "Not unique (PATH#NAME is)", []string{a.text()})
		}
	}
	if f.Project {
		s.add("summary", "The whole graph", x.Summary().lines())
	}
	return strings.TrimSpace(s.text.String())
}

// answer adds what is asked of some nodes.
func (s *section) answer(g *Graph, asked topic, nodes []Node) {
	if len(nodes) == 0 {
		return
	}
	switch asked {
	case askCallers:
		if len(nodes) > maxMeant {
			s.add("impact", "Callers of "+manyText(nodes), g.callerLines(nodes...))
			return
		}
		for _, n := range nodes {
			s.add("impact", "Callers of "+placeText(n), g.callerLines(n))
		}
		return
	case askDefinition:
		s.add("dependencies", "Definitions", definitionLines(nodes))
		return
	}
	report := g.Impact(ids(nodes)...)
	if asked == askTests {
		lines := append(report.testLines(), report.unsafeLine()...)
		if len(report.Tests) == 0 {
			lines = append([]string{"none that is known"}, lines...)
		}
		s.add("impact", "Tests that run "+manyText(nodes), lines)
		return
	}
	lines := append(g.impactLines(report, nodes, s.left/2), report.testLines()...)
	if asked == askBreaks {
		lines = append(lines, report.unsafeLine()...)
	}
	s.add("impact", "What changing "+manyText(nodes)+" may break", lines)
	if asked == askWork {
		s.add("dependencies", "What it uses", g.dependencies(nodes))
		s.add("map", "Files most related to it", g.related(nodes))
		s.add("summary", "Not known", unknowns(report, g))
	}
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

// manyText names the first three of some nodes.
func manyText(nodes []Node) string {
	var list []string
	for _, n := range nearest(nodes, 3) {
		list = append(list, placeText(n))
	}
	text := strings.Join(list, ", ")
	if n := len(nodes) - len(list); n > 0 {
		text += " and " + itoa(n) + " more"
	}
	return text
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
