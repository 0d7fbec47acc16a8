package graph

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// outline is the structure of a file in a language that is not type-checked: what
// it defines, imports and calls, by name. Names are dotted.
type outline struct {
	Module  string // what others import it by, of languages whose files say so
	Defs    []definition
	Imports []imported
	Calls   []call
	Vars    []variable
}

// definition is something that a file defines.
type definition struct {
	Name   string // "Class.method"
	Kind   Kind
	Line   int
	End    int
	Sig    string
	Doc    string
	Hash   string
	Bases  []string // of a class
	Local  bool     // not visible in other files
	Result string   // the type of what it returns, if the source says so
}

// imported is a name that an import binds.
type imported struct {
	Module string
	Name   string // in the module; "*" is all names, "" the module itself
	As     string // the local name; "" if none
	Line   int
	Type   bool // only for types: nothing runs
	Again  bool // it is visible to those who import this file
}

// call is a call of a dotted name, or of a method on some expression (".name").
type call struct {
	Scope int // index in Defs of what it is in; -1 is the file itself
	Name  string
	Line  int
	Value bool // not a call: the function is used as a value
}

// variable is a local name, parameter or field, with its type where it is known.
type variable struct {
	Scope int // as of a call; the class of a field
	Name  string
	Type  string // dotted; "" if unknown
}

// outlineFile reads the structure of a file.
func outlineFile(f *fileFacts, data []byte) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	o := &outline{}
	switch f.language {
	case "python":
		scanPython(o, f, data)
	case "javascript":
		scanJavaScript(o, f, data)
	case "rust":
		scanRust(o, f, data)
	default:
		scanBraces(o, f, data)
	}
	o.merge()
	f.outline = o
	file := f.language + ":" + f.path
	lines := bytes.Count(data, []byte{'\n'}) + 1
	f.nodes = append(f.nodes, Node{ID: file, Kind: File, File: f.path, Line: 1, EndLine: lines, Hash: f.hash})
	for _, d := range o.Defs {
		f.nodes = append(f.nodes, Node{f.language + ":" + f.path + "#" + d.Name, d.Kind, f.path, d.Line, max(d.End, d.Line), clip(oneLine(d.Sig), 200), clip(oneLine(d.Doc), 100), d.Hash})
	}
	f.warnings = append(f.warnings, dynamicCalls(o, f)...)
}

// merge makes one of all definitions with the same name, such as overloads.
func (o *outline) merge() {
	index := make(map[string]int, len(o.Defs))
	place := make([]int, len(o.Defs))
	var defs []definition
	for i, d := range o.Defs {
		j, twice := index[d.Name]
		if !twice {
			j = len(defs)
			index[d.Name] = j
			defs = append(defs, d)
		} else {
			defs[j].Hash = contentHash([]byte(defs[j].Hash + d.Hash))
			defs[j].Bases = append(defs[j].Bases, d.Bases...)
			if defs[j].Kind == Variable && d.Kind != Variable { // a field and a method
				hash, bases := defs[j].Hash, defs[j].Bases
				defs[j] = d
				defs[j].Hash, defs[j].Bases = hash, bases
			}
			if defs[j].Result != d.Result {
				defs[j].Result = ""
			}
		}
		place[i] = j
	}
	o.Defs = defs
	for i := range o.Calls {
		if s := o.Calls[i].Scope; s >= 0 {
			o.Calls[i].Scope = place[s]
		}
	}
	for i := range o.Vars {
		if s := o.Vars[i].Scope; s >= 0 {
			o.Vars[i].Scope = place[s]
		}
	}
}

// dynamic are calls whose target only shows when the program runs.
var dynamic = map[string][]string{
	"python":     {"getattr", "eval", "exec", "__import__", "importlib.import_module", "import_module", "globals"},
	"javascript": {"eval", "Function", "import", "require"},
	"java":       {"Class.forName", ".invoke", ".getMethod", ".getDeclaredMethod"},
	"rust":       {"transmute", "mem.transmute", "std.mem.transmute"},
	"c":          {"dlsym", "dlopen", "GetProcAddress"},
}

// dynamicCalls warns of them; the scanners list import and require only where the
// module is not a literal.
func dynamicCalls(o *outline, f *fileFacts) []Warning {
	var all []Warning
	for _, c := range o.Calls {
		name := c.Name
		if i := strings.LastIndexByte(name, '.'); i > 0 && slices.Contains(dynamic[f.language], name[i:]) {
			name = name[i:]
		}
		if !c.Value && slices.Contains(dynamic[f.language], name) {
			in := f.path
			if c.Scope >= 0 {
				in = o.Defs[c.Scope].Name
			}
			all = append(all, Warning{"unsafe", f.path, c.Line, fmt.Sprintf("%s calls %s: what it reaches is unknown", in, strings.TrimPrefix(name, "."))})
		}
	}
	return all
}

func (o *outline) encode(e *encoder) {
	e.str(o.Module)
	e.num(len(o.Defs))
	for _, d := range o.Defs {
		e.str(d.Name)
		e.str(string(d.Kind))
		e.num(d.Line)
		e.num(d.End)
		e.list(d.Bases)
		e.bool(d.Local)
		e.str(d.Result)
	}
	e.num(len(o.Imports))
	for _, i := range o.Imports {
		e.str(i.Module)
		e.str(i.Name)
		e.str(i.As)
		e.num(i.Line)
		e.bool(i.Type)
		e.bool(i.Again)
	}
	e.num(len(o.Calls))
	for _, c := range o.Calls {
		e.num(c.Scope)
		e.str(c.Name)
		e.num(c.Line)
		e.bool(c.Value)
	}
	e.num(len(o.Vars))
	for _, v := range o.Vars {
		e.num(v.Scope)
		e.str(v.Name)
		e.str(v.Type)
	}
}

func decodeOutline(d *decoder) *outline {
	o := &outline{Module: d.str()}
	for range d.count() {
		o.Defs = append(o.Defs, definition{Name: d.str(), Kind: Kind(d.str()), Line: d.num(), End: d.num(), Bases: d.list(), Local: d.bool(), Result: d.str()})
	}
	for range d.count() {
		o.Imports = append(o.Imports, imported{d.str(), d.str(), d.str(), d.num(), d.bool(), d.bool()})
	}
	scope := func() int {
		s := d.num()
		if s < -1 || s >= len(o.Defs) {
			d.bad = true
			return -1
		}
		return s
	}
	for range d.count() {
		o.Calls = append(o.Calls, call{scope(), d.str(), d.num(), d.bool()})
	}
	for range d.count() {
		o.Vars = append(o.Vars, variable{scope(), d.str(), d.str()})
	}
	return o
}
