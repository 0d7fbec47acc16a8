package graph

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// plural returns a number with a word.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}

// use is a place that uses a definition.
type use struct {
	file string
	line int
	by   string // name of what is there; "" at the top of a file
	sure Confidence
}

// uses are the places that use a definition, by how.
type usages struct {
	calls  []use
	values []use // not called there: passed on, embedded, a type
	names  []use // calls of a method with this name, of which nothing else is known
}

// usagesOf returns who uses some nodes.
func (g *Graph) usagesOf(nodes ...Node) (all usages) {
	for _, n := range nodes {
		u := g.usagesOfOne(n)
		all.calls, all.values, all.names = append(all.calls, u.calls...), append(all.values, u.values...), append(all.names, u.names...)
	}
	if len(nodes) > 1 { // calls by their name are those of each
		slices.SortFunc(all.names, byPlace)
		all.names = slices.Compact(all.names)
	}
	return all
}

func byPlace(a, b use) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.by, b.by))
}

func (g *Graph) usagesOfOne(n Node) (u usages) {
	at := append([]Node{n}, g.constructorsOf(n)...)
	for _, e := range g.Neighbours(at, true) {
		from, _ := g.Node(e.From)
		at := use{e.File, e.Line, from.Name(), e.Confidence}
		if from.Kind == File {
			at.by = ""
		}
		switch {
		case e.Kind == Implement || e.File == n.File && n.Kind == File:
		case e.Kind == Calls || n.Kind == Class || n.Kind == Interface || n.Kind == Variable:
			u.calls = append(u.calls, at)
		default:
			u.values = append(u.values, at)
		}
	}
	u.names = g.callsByName(n)
	return u
}

// constructorsOf returns the methods of a class that creating an object calls.
func (g *Graph) constructorsOf(class Node) (found []Node) {
	if class.Kind != Class {
		return nil
	}
	for _, name := range []string{lastPart(class.Name()), "__init__", "constructor"} {
		if n, ok := g.Node(class.ID + "." + name); ok {
			found = append(found, n)
		}
	}
	return found
}

// callsByName returns the calls that may be of a method, but of which nothing is known
// except its name.
func (g *Graph) callsByName(n Node) (found []use) {
	if n.Kind != Method && n.Kind != Test || !strings.Contains(n.Name(), ".") {
		return nil
	}
	near := g.linked(n.File)
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, r := range g.vertex(unresolved(n.Language(), lastPart(n.Name()))).in {
		f, by := g.fact(r), ""
		from := g.vertices[r.other].node
		if from == nil || from.ID == n.ID {
			continue
		}
		if from.Kind != File {
			by = from.Name()
		}
		found = append(found, use{g.sources[r.file].path, int(f.line), by, Low})
	}
	slices.SortFunc(found, func(a, b use) int {
		return cmp.Or(cmp.Compare(near[b.file], near[a.file]), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	return slices.CompactFunc(found, func(a, b use) bool { return a.file == b.file && a.by == b.by })
}

// linked returns how near files are to a file: 2 is the file, 1 what uses it or is used.
func (g *Graph) linked(file string) map[string]int {
	near := map[string]int{}
	for _, n := range g.InFile(file) {
		for _, e := range g.In(n.ID) {
			near[e.File] = 1
		}
	}
	near[file] = 2
	return near
}

// byFile returns uses as text, a line for each file: "a.go:3 f, :9 g". Each user counts
// once, with its first line.
func byFile(list []use, most int) (lines []string) {
	slices.SortFunc(list, byPlace)
	seen := map[use]bool{}
	last, more := "", 0
	for _, u := range list {
		key := use{file: u.file, by: u.by}
		if seen[key] {
			continue
		}
		seen[key] = true
		text := ":" + itoa(u.line)
		if u.by != "" {
			text += " " + u.by
		}
		if u.sure == Low || u.sure == Medium {
			text += " (" + string(u.sure) + ")"
		}
		switch {
		case u.file == last && len(lines[len(lines)-1]) < 300:
			lines[len(lines)-1] += ", " + text
		case len(lines) == most:
			more++
		default:
			lines, last = append(lines, u.file+text), u.file
		}
	}
	if more > 0 {
		lines = append(lines, "… "+itoa(more)+" more")
	}
	return lines
}

// maxByName is how many users of a name are told if it is only the name that they use.
const maxByName = 20

// callerLines returns who uses some nodes.
func (g *Graph) callerLines(nodes ...Node) []string {
	const most = 100 // files; the budget cuts them
	u := g.usagesOf(nodes...)
	lines := byFile(u.calls, most)
	if values := byFile(u.values, most); len(values) > 0 {
		lines = append(lines, "used without a call:")
		lines = append(lines, values...)
	}
	if len(u.names) > 0 {
		lines = append(lines, "calls of a "+lastPart(nodes[0].Name())+" that may be this one:")
		lines = append(lines, byFile(sureAll(nearest(u.names, maxByName)), most)...)
		if more := len(u.names) - maxByName; more > 0 {
			lines = append(lines, "… "+itoa(more)+" more calls by this name")
		}
	}
	if len(lines) == 0 {
		return []string{"none that is known"}
	}
	return lines
}

// sureAll leaves out the marks of what is not sure, where all of a list is not.
func sureAll(list []use) []use {
	for i := range list {
		list[i].sure = High
	}
	return list
}

// definitionLines returns where nodes are defined, and what they are.
func definitionLines(nodes []Node) (lines []string) {
	for _, n := range nodes {
		lines = append(lines, definitionLine(n))
	}
	return lines
}

func definitionLine(n Node) string {
	line := fmt.Sprintf("%s:%d %s", n.File, n.Line, cmp.Or(n.Signature, n.Name()))
	if n.Doc != "" {
		line += " — " + clip(n.Doc, maxDoc)
	}
	return line
}

// impactLines returns what a change may break in up to a number of characters: who uses
// the nodes themselves with their lines, then by directory the other files.
func (g *Graph) impactLines(r *Report, nodes []Node, room int) []string {
	var direct []use
	u := g.usagesOf(nodes...)
	direct = append(append(direct, u.calls...), u.values...)
	told := map[string]bool{}
	lines := byFile(direct, maxCallerFiles)
	for _, u := range direct {
		told[u.file] = told[u.file] || slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, u.file+":") })
	}
	for _, line := range lines {
		room -= len(line) + 3
	}
	for _, n := range nodes {
		told[n.File] = true
	}
	var maybe []string
	for _, u := range u.names {
		if !told[u.file] && !slices.Contains(maybe, u.file) && len(maybe) < maxCallerFiles {
			maybe = append(maybe, u.file)
		}
	}
	more := slices.DeleteFunc(slices.Clone(r.Files), func(f AffectedFile) bool { return told[f.Path] })
	lines = append(lines, grouped(more, room)...)
	maybe = slices.DeleteFunc(maybe, func(name string) bool {
		return slices.ContainsFunc(more, func(f AffectedFile) bool { return f.Path == name })
	})
	if len(maybe) > 0 {
		lines = append(lines, "calls of this name that may be this one: "+strings.Join(maybe, ", "))
	}
	if len(lines) == 0 && len(r.Tests) == 0 {
		lines = []string{"nothing that is known"}
	}
	return lines
}

// grouped returns files by directory, in lines of up to a number of characters: those
// that are sure and near come first.
func grouped(files []AffectedFile, room int) (lines []string) {
	type set struct {
		dir string
		c   Confidence
	}
	names := map[set][]string{}
	var order []set
	shown := 0
	for _, f := range files {
		at := set{path.Dir(f.Path), f.Confidence}
		cost := len(path.Base(f.Path)) + 2
		if names[at] == nil {
			cost += len(at.dir) + 24
		}
		if room -= cost; room < 0 {
			break
		}
		if names[at] == nil {
			order = append(order, at)
		}
		names[at] = append(names[at], path.Base(f.Path))
		shown++
	}
	for _, at := range order {
		head := at.dir + "/" + sure(at.c) + ": "
		if len(names[at]) == 1 {
			lines = append(lines, path.Join(at.dir, names[at][0])+sure(at.c))
			continue
		}
		lines = append(lines, head+strings.Join(names[at], ", "))
	}
	if shown < len(files) {
		lines = append(lines, "… "+plural(len(files)-shown, "more file", "more files"))
	}
	return lines
}

// maxCommand is how long a command may be to be told.
const maxCommand = 200

// testLines names the tests of a report, with the command that runs them.
func (r *Report) testLines() []string {
	if len(r.Tests) == 0 {
		return nil
	}
	var names []string
	for _, t := range nearest(r.Tests, maxTests) {
		names = append(names, t.Name())
	}
	text := fmt.Sprintf("tests (%d): %s", len(r.Tests), strings.Join(names, ", "))
	if n := len(r.Tests) - len(names); n > 0 {
		text += ", … " + itoa(n) + " more"
	}
	lines := []string{text}
	for _, c := range r.Commands {
		if run := c.String(); len(run) <= maxCommand {
			lines = append(lines, "run: "+run)
		} else {
			lines = append(lines, "get_impact has the command that runs them")
		}
	}
	return slices.Compact(lines)
}

// unsafeLine says in a line where the report may be incomplete.
func (r *Report) unsafeLine() []string {
	if len(r.Unsafe) == 0 {
		return nil
	}
	at := map[string]bool{}
	for _, w := range r.Unsafe {
		at[w.File+":"+itoa(w.Line)] = true
	}
	places := slices.Sorted(maps.Keys(at))
	text := "may be incomplete: targets of " + strings.Join(nearest(places, 3), ", ") + " are not known"
	if n := len(places) - 3; n > 0 {
		text = "may be incomplete: targets of " + strings.Join(nearest(places, 3), ", ") + " and " + plural(n, "more place", "more places") + " are not known"
	}
	return []string{text}
}
