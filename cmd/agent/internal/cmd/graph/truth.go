package graph

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/plugins/graph"
)

// truth is what a reference parser knows of a workspace. Names are those within a
// file, such as "Session.Run"; the file itself has the name "".
type truth struct {
	files     map[string]bool
	dispatch  bool // calls lead to what runs, not only to what was declared
	defs      map[place]bool
	imports   map[[2]string]bool
	calls     map[[2]place]string       // with how: static, interface or dynamic
	unknown   map[place]map[string]bool // of each caller: names that the reference cannot resolve
	callsFrom map[place]map[place]bool  // the same as calls
}

// place names a definition.
type place struct{ File, Name string }

// truthLine is one line of a file of reference facts.
type truthLine struct {
	Kind    string   `json:"kind"` // file, definition, import, caller, call, dispatch
	File    string   `json:"file"`
	Name    string   `json:"name"`
	To      string   `json:"to"`
	ToName  string   `json:"toName"`
	How     string   `json:"how"`
	Unknown []string `json:"unknown"`
}

func readTruth(name string) (*truth, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &truth{
		files: map[string]bool{}, defs: map[place]bool{}, imports: map[[2]string]bool{},
		calls: map[[2]place]string{}, unknown: map[place]map[string]bool{}, callsFrom: map[place]map[place]bool{},
	}
	lines := bufio.NewReader(f)
	for n := 1; ; n++ {
		data, err := lines.ReadBytes('\n')
		if err == io.EOF && len(data) == 0 {
			return t, nil
		} else if err != nil && err != io.EOF {
			return nil, err
		}
		var l truthLine
		if err := json.Unmarshal(data, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: expected a JSON object: %w", name, n, err)
		}
		if err := t.add(l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
}

func (t *truth) add(l truthLine) error {
	at := place{l.File, l.Name}
	switch l.Kind {
	case "file":
		t.files[l.File] = true
	case "dispatch":
		t.dispatch = true
	case "definition":
		t.defs[at] = true
	case "import":
		t.imports[[2]string{l.File, l.To}] = true
	case "caller":
		if t.unknown[at] == nil {
			t.unknown[at] = map[string]bool{}
		}
		for _, name := range l.Unknown {
			t.unknown[at][name] = true
		}
	case "call":
		to := place{l.To, l.ToName}
		if how := t.calls[[2]place{at, to}]; how != "static" {
			t.calls[[2]place{at, to}] = cmp.Or(l.How, "static")
		}
		if t.callsFrom[at] == nil {
			t.callsFrom[at] = map[place]bool{}
		}
		t.callsFrom[at][to] = true
	default:
		return fmt.Errorf("kind %q: expected file, dispatch, definition, import, caller or call", l.Kind)
	}
	return nil
}

// score counts answers of the graph.
type score struct {
	Right     int `json:"right"`
	Wrong     int `json:"wrong"`
	Undecided int `json:"undecided,omitempty"` // the reference does not know
}

// found counts what the graph has of the reference.
type found struct {
	Found  int `json:"found"`
	Missed int `json:"missed"`
}

// comparison is what agent graph bench --truth reports.
type comparison struct {
	Definitions score                      `json:"definitions"`
	DefsFound   found                      `json:"definitionsFound"`
	Imports     score                      `json:"imports"`
	ImportFound found                      `json:"importsFound"`
	Calls       map[graph.Confidence]score `json:"calls"`
	CallsFound  map[string]found           `json:"callsFound"` // by how: static, interface, dynamic
	Rules       map[string]score           `json:"rules"`      // calls by confidence and rule
	Wrong       []string                   `json:"wrong"`
	Missed      []string                   `json:"missed"`
}

// compare compares a graph with reference facts.
func compare(g *graph.Graph, t *truth) *comparison {
	c := &comparison{Wrong: []string{}, Missed: []string{}, Calls: map[graph.Confidence]score{}, CallsFound: map[string]found{}, Rules: map[string]score{}}
	nodes := map[string]graph.Node{}
	defs := map[place]bool{}
	for _, n := range g.Nodes() {
		nodes[n.ID] = n
		if !t.files[n.File] || n.Kind == graph.File || n.Kind == graph.Package || n.Kind == graph.Variable {
			continue
		}
		defs[placeOf(n)] = true
	}
	for _, d := range slices.SortedFunc(maps.Keys(defs), byPlace) {
		c.Definitions.count(t.defs[d])
		c.note(t.defs[d], &c.Wrong, "definition %s#%s", d.File, d.Name)
	}
	for _, d := range slices.SortedFunc(maps.Keys(t.defs), byPlace) {
		c.DefsFound.count(defs[d])
		c.note(defs[d], &c.Missed, "definition %s#%s", d.File, d.Name)
	}
	c.compareImports(g, t, nodes)
	c.compareCalls(g, t, nodes)
	return c
}

func placeOf(n graph.Node) place {
	if n.Kind == graph.File {
		return place{File: n.File}
	}
	name := n.Name()
	if n.Language() == "go" { // init~2
		name, _, _ = strings.Cut(name, "~")
	}
	return place{n.File, name}
}

func byPlace(a, b place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Name, b.Name)) }

func (s *score) count(right bool) {
	if right {
		s.Right++
	} else {
		s.Wrong++
	}
}

func (f *found) count(ok bool) {
	if ok {
		f.Found++
	} else {
		f.Missed++
	}
}

func (c *comparison) note(ok bool, list *[]string, format string, args ...any) {
	if !ok {
		*list = append(*list, fmt.Sprintf(format, args...))
	}
}

func (c *comparison) compareImports(g *graph.Graph, t *truth, nodes map[string]graph.Node) {
	have := map[[2]string]bool{}
	for _, e := range g.Edges() {
		if e.Kind == graph.Imports && t.files[e.File] {
			have[[2]string{nodes[e.From].File, nodes[e.To].File}] = true
		}
	}
	for i := range have {
		c.Imports.count(t.imports[i])
		c.note(t.imports[i], &c.Wrong, "import %s -> %s", i[0], i[1])
	}
	for i := range t.imports {
		c.ImportFound.count(have[i])
		c.note(have[i], &c.Missed, "import %s -> %s", i[0], i[1])
	}
}

// callEdge is a call of the graph: its own, or one of what implements what it names.
type callEdge struct {
	graph.Edge
	from, to place
}

func (c *comparison) compareCalls(g *graph.Graph, t *truth, nodes map[string]graph.Node) {
	have := map[[2]place]bool{}
	for _, e := range callEdges(g, t, nodes) {
		key := [2]place{e.from, e.to}
		if nodes[e.To].Kind == graph.Class { // making an object
			have[key] = true
			continue
		}
		if have[key] || t.unknown[e.from] == nil {
			continue
		}
		have[key] = true
		if class := e.to.class(); class.Name != "" {
			have[[2]place{e.from, class}] = true
		}
		right := t.calls[key] != "" || constructs(g, t, e)
		name := e.to.Name[strings.LastIndexByte(e.to.Name, '.')+1:]
		for _, count := range []func(func(*score)){
			func(do func(*score)) { s := c.Calls[e.Confidence]; do(&s); c.Calls[e.Confidence] = s },
			func(do func(*score)) {
				s := c.Rules[string(e.Confidence)+" "+e.Rule]
				do(&s)
				c.Rules[string(e.Confidence)+" "+e.Rule] = s
			},
		} {
			count(func(s *score) {
				if !right && t.unknown[e.from][name] {
					s.Undecided++
				} else {
					s.count(right)
				}
			})
		}
		c.note(right || t.unknown[e.from][name], &c.Wrong, "%s (%s) %s#%s -> %s#%s line %d", e.Confidence, e.Rule, e.from.File, e.from.Name, e.to.File, e.to.Name, e.Line)
	}
	for key, how := range t.calls {
		f := c.CallsFound[how]
		f.count(have[key])
		c.CallsFound[how] = f
		c.note(have[key], &c.Missed, "%s %s#%s -> %s#%s", how, key[0].File, key[0].Name, key[1].File, key[1].Name)
	}
	slices.Sort(c.Wrong)
	slices.Sort(c.Missed)
}

// callEdges returns the calls of the files that the reference covers, the surest
// first; where it follows dispatch, also the calls of implementations.
func callEdges(g *graph.Graph, t *truth, nodes map[string]graph.Node) []callEdge {
	sure := []graph.Confidence{graph.High, graph.Medium, graph.Low}
	var all []callEdge
	for _, e := range g.Edges() {
		to := nodes[e.To]
		if !t.files[e.File] || e.Kind != graph.Calls && (e.Kind != graph.Refers || to.Kind != graph.Class) {
			continue
		}
		from := placeOf(nodes[e.From])
		all = append(all, callEdge{e, from, placeOf(to)})
		if !t.dispatch {
			continue
		}
		for _, i := range g.Out(e.To, graph.Implement) {
			derived := e
			derived.To, derived.Rule = i.To, i.Rule
			derived.Confidence = sure[max(slices.Index(sure, e.Confidence), slices.Index(sure, i.Confidence))]
			all = append(all, callEdge{derived, from, placeOf(nodes[i.To])})
		}
	}
	slices.SortStableFunc(all, func(a, b callEdge) int {
		return cmp.Compare(slices.Index(sure, a.Confidence), slices.Index(sure, b.Confidence))
	})
	return all
}

// class returns the class that a place is a constructor of, or a place without a name.
func (p place) class() place {
	owner, name := "", p.Name
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		owner, name = name[:dot], name[dot+1:]
	}
	if name == "constructor" || name == "__init__" || name == owner[strings.LastIndexByte(owner, '.')+1:] {
		return place{p.File, owner}
	}
	return place{}
}

// constructs reports whether a call of a constructor is that of a class that the
// reference says is made, or of its base.
func constructs(g *graph.Graph, t *truth, e callEdge) bool {
	file, _, _ := strings.Cut(e.To, "#")
	owner := e.to.class().Name
	if owner == "" {
		return false
	}
	seen := map[string]bool{}
	queue := []string{file + "#" + owner}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		n, ok := g.Node(at)
		if !ok || seen[at] {
			continue
		}
		seen[at] = true
		if t.callsFrom[e.from][placeOf(n)] {
			return true
		}
		for _, derived := range g.In(at, graph.Inherits) {
			queue = append(queue, derived.From)
		}
	}
	return false
}

func share(part, rest int) string {
	if part+rest == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f of %d", float64(part)/float64(part+rest), part+rest)
}

// print prints a comparison.
func (c *comparison) print(w io.Writer) {
	fmt.Fprintf(w, "%-22s precision %-18s recall %s\n", "definitions", share(c.Definitions.Right, c.Definitions.Wrong), share(c.DefsFound.Found, c.DefsFound.Missed))
	fmt.Fprintf(w, "%-22s precision %-18s recall %s\n", "imports", share(c.Imports.Right, c.Imports.Wrong), share(c.ImportFound.Found, c.ImportFound.Missed))
	for _, class := range []graph.Confidence{graph.High, graph.Medium, graph.Low} {
		if s, ok := c.Calls[class]; ok {
			fmt.Fprintf(w, "%-22s precision %-18s undecided %d\n", "calls, "+string(class), share(s.Right, s.Wrong), s.Undecided)
		}
	}
	for _, how := range slices.Sorted(maps.Keys(c.CallsFound)) {
		fmt.Fprintf(w, "%-22s recall %s\n", "calls, "+how, share(c.CallsFound[how].Found, c.CallsFound[how].Missed))
	}
	for _, rule := range slices.Sorted(maps.Keys(c.Rules)) {
		s := c.Rules[rule]
		fmt.Fprintf(w, "  %-32s precision %-18s undecided %d\n", rule, share(s.Right, s.Wrong), s.Undecided)
	}
}
