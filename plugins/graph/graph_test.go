package graph_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/seed-009c0928/agent/plugins/graph"
)

var update = flag.Bool("update", false, "write the golden files")

// write writes the files of an archive into a new directory.
func write(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(strings.Join(files, "\n"))).Files {
		put(t, dir, f.Name, string(f.Data))
	}
	return dir
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, o graph.Options) *graph.Index {
	t.Helper()
	x, err := graph.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	if err := x.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	return x
}

// listing prints a graph.
func listing(g *graph.Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes() {
		fmt.Fprintf(&b, "node %s %s %d-%d", n.ID, n.Kind, n.Line, n.EndLine)
		for _, text := range []string{n.Signature, n.Doc} {
			if text != "" {
				fmt.Fprintf(&b, " | %s", text)
			}
		}
		b.WriteByte('\n')
	}
	var edges []string
	for _, e := range g.Edges() {
		if e.Kind != graph.Contains {
			edges = append(edges, fmt.Sprintf("edge %s -> %s %s %s (%s) line %d", e.From, e.To, e.Confidence, e.Kind, e.Rule, e.Line))
		}
	}
	slices.Sort(edges)
	for _, e := range edges {
		fmt.Fprintln(&b, e)
	}
	for _, w := range g.Warnings() {
		fmt.Fprintf(&b, "warning %s %s:%d %s\n", w.Code, w.File, w.Line, w.Text)
	}
	return b.String()
}

// TestLanguages compares the graphs of small workspaces with golden files.
func TestLanguages(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 6 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := listing(open(t, write(t, string(data)), graph.Options{}).Graph())
			golden := strings.TrimSuffix(name, ".txtar") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the graph differs from %s; update it with -update if that is right:\n%s", golden, diff(string(want), got))
			}
		})
	}
}

// diff lists the lines that only one of two texts has.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for _, line := range w {
		if !slices.Contains(g, line) {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			fmt.Fprintln(&b, "+", line)
		}
	}
	return b.String()
}

const goSource = `
-- go.mod --
module example.com/m
-- a/a.go --
package a

// Do does it.
func Do() int { return help() }

func help() int { return 1 }

func Unused() {}
-- b/b.go --
package b

import "example.com/m/a"

func Use() int { return a.Do() }
-- b/b_test.go --
package b

import "testing"

func TestUse(t *testing.T) { Use() }

func TestOther(t *testing.T) {}
`

func names(list []graph.Affected) string {
	var all []string
	for _, a := range list {
		all = append(all, fmt.Sprintf("%s/%d", a.Name(), a.Distance))
	}
	return strings.Join(all, " ")
}

func TestImpact(t *testing.T) {
	g := open(t, write(t, goSource), graph.Options{}).Graph()
	r := g.Impact("go:a/a.go#help")
	if got := names(r.Functions); got != "Do/1 Use/2" {
		t.Errorf("functions: %s", got)
	}
	if got := names(r.Tests); got != "TestUse/3" {
		t.Errorf("tests: %s", got)
	}
	if len(r.Commands) != 1 || r.Commands[0].String() != `go test -run '^(TestUse)$' ./b` || !r.Complete {
		t.Errorf("commands %v, complete %t", r.Commands, r.Complete)
	}
	if r := g.Impact("go:a/a.go#Unused"); len(r.Functions)+len(r.Tests) > 0 {
		t.Errorf("nothing uses it: %+v", r)
	}
	if steps := g.Why("go:b/b_test.go#TestUse", "go:a/a.go#help"); len(steps) != 3 || steps[0].Line != 5 {
		t.Errorf("why: %+v", steps)
	}
	if steps := g.Why("go:a/a.go#help", "go:b/b_test.go#TestUse"); steps != nil {
		t.Errorf("why backwards: %+v", steps)
	}
}

func TestFind(t *testing.T) {
	g := open(t, write(t, goSource), graph.Options{}).Graph()
	for text, want := range map[string]string{
		"a/a.go": "go:a/a.go", "./a/a.go": "go:a/a.go", "a/a.go#Do": "go:a/a.go#Do", "Do": "go:a/a.go#Do", "a.Do": "go:a/a.go#Do",
		"go:b/b.go#Use": "go:b/b.go#Use",
	} {
		found, err := g.Find(text)
		if err != nil || len(found) != 1 || found[0].ID != want {
			t.Errorf("%s: %v %v", text, found, err)
		}
	}
	_, err := g.Find("Usee")
	if err == nil || !strings.Contains(err.Error(), "go:b/b.go#Use") {
		t.Errorf("no suggestion: %v", err)
	}
}

// TestRefresh checks that after each change the graph is as one built anew.
func TestRefresh(t *testing.T) {
	dir, cache := write(t, goSource, `
-- p/x.py --
from p.y import f

def g():
    return f()
-- p/y.py --
def f():
    return 1
-- p/__init__.py --
-- web/main.ts --
import { f } from "~/lib"
f()
-- web/src/lib.ts --
export function f() {}
`), t.TempDir()
	x := open(t, dir, graph.Options{Cache: cache})
	old := t.TempDir() // the cache of processes that end after each change
	changes := []struct{ name, text string }{
		{"a/a.go", "package a\n\nfunc Do() int { return 2 }\n"},
		{"a/c.go", "package a\n\ntype I interface{ M() }\n"},
		{"b/t.go", "package b\n\nimport \"example.com/m/a\"\n\ntype T struct{}\n\nfunc (T) M() {}\n\nvar _ a.I = T{}\n"},
		{"a/c.go", ""},
		{"p/y.py", "def h():\n    return 1\n"},
		{"p/y.py", "def f():\n    return h()\n\ndef h():\n    pass\n"},
		{"b/b.go", "package b\n\nfunc broken( {\n"},
		{"b/b.go", "package b\n\nfunc Use() int { return 1 }\n"},
		{"p/x.py", ""},
		{"go.mod", "module example.com/other\n"},
		{"go.mod", "module example.com/m\n"},
		{"web/tsconfig.json", `{"compilerOptions": {"paths": {"~/*": ["./src/*"]}}}`},
		{"web/tsconfig.json", ""},
	}
	for i, c := range changes {
		if c.text == "" {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(c.name))); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, dir, c.name, c.text)
		}
		if err := x.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := listing(open(t, dir, graph.Options{}).Graph())
		if got := listing(x.Graph()); got != want {
			t.Fatalf("change %d of %s:\n%s", i, c.name, diff(want, got))
		}
		for _, cache := range []string{cache, old} {
			if got := listing(open(t, dir, graph.Options{Cache: cache}).Graph()); got != want {
				t.Fatalf("change %d of %s, from the cache:\n%s", i, c.name, diff(want, got))
			}
		}
	}
}

// TestDamagedCache checks that a cache that was cut or changed is not believed.
func TestDamagedCache(t *testing.T) {
	dir, cache := write(t, goSource), t.TempDir()
	want := listing(open(t, dir, graph.Options{Cache: cache}).Graph())
	files, err := filepath.Glob(filepath.Join(cache, "*.graph"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 97 {
		for _, damaged := range [][]byte{data[:n], append(append(slices.Clone(data[:n]), data[n]^0x55), data[n+1:]...)} {
			if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := listing(open(t, dir, graph.Options{Cache: cache}).Graph()); got != want {
				t.Fatalf("damaged at %d:\n%s", n, diff(want, got))
			}
		}
	}
}

// TestBadInput checks files that cannot be read well: they give warnings, and what
// is around them is still right.
func TestBadInput(t *testing.T) {
	dir := write(t, goSource)
	put(t, dir, "a/huge.go", "package a\n\n// "+strings.Repeat("x", 2<<20))
	put(t, dir, "a/bytes.go", "package a\n\nfunc \xff\xfe() {}\n")
	put(t, dir, "x.py", "def f(:\n  'unclosed\n\xff")
	put(t, dir, "x.js", "function f( { `${ /[/ \n class")
	put(t, dir, "x.java", "class A { void f( { \"")
	put(t, dir, "x.rs", "fn f( { r#\" impl")
	put(t, dir, "x.c", "int f( { \" #include \\")
	put(t, dir, "empty.go", "")
	put(t, dir, "min.js", "function f() {}\n"+strings.Repeat("f();", 20_000))
	put(t, dir, "deep.js", strings.Repeat("(\n", 100_000))
	put(t, dir, "deep.go", "package m\n\nvar x = "+strings.Repeat("[]", 1000)+"int{}\n")
	if runtime.GOOS != "windows" {
		if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out.py")); err != nil {
			t.Fatal(err)
		}
	}
	g := open(t, dir, graph.Options{}).Graph()
	if got := names(g.Impact("go:a/a.go#help").Tests); got != "TestUse/3" {
		t.Errorf("tests: %s", got)
	}
	codes := map[string]string{}
	for _, w := range g.Warnings() {
		codes[w.File] = w.Code
	}
	if codes["a/huge.go"] != "unreadable" || codes["empty.go"] != "syntax" || codes["min.js"] != "generated" {
		t.Errorf("warnings: %v", codes)
	}
	for _, n := range g.Nodes() {
		if strings.HasPrefix(n.File, "loop") || n.File == "out.py" {
			t.Errorf("a link was followed: %s", n.ID)
		}
	}
}

// TestIgnored checks what is no source of the workspace.
func TestIgnored(t *testing.T) {
	dir := write(t, goSource, `
-- .gitignore --
gen/
-- gen/x.go --
package gen
-- node_modules/x.js --
function x() {}
-- lib/skip.py --
def f(): pass
-- lib/keep.py --
def f(): pass
`)
	g := open(t, dir, graph.Options{Ignore: []string{"skip.py"}}).Graph()
	for _, name := range []string{"gen/x.go", "node_modules/x.js", "lib/skip.py"} {
		if len(g.InFile(name)) > 0 {
			t.Errorf("%s is in the graph", name)
		}
	}
	if len(g.InFile("lib/keep.py")) == 0 {
		t.Error("lib/keep.py is missing")
	}
	if g := open(t, dir, graph.Options{Languages: []string{"python"}}).Graph(); len(g.InFile("a/a.go")) > 0 || len(g.InFile("lib/keep.py")) == 0 {
		t.Error("languages does not select")
	}
}

func TestCycles(t *testing.T) {
	g := open(t, write(t, "-- a.py --\nimport b\n-- b.py --\nimport c\n-- c.py --\nimport a\n-- d.py --\nimport a\n"), graph.Options{}).Graph()
	if got := fmt.Sprint(g.Cycles()); got != "[[python:a.py python:b.py python:c.py]]" {
		t.Error(got)
	}
}

// TestSection checks the context for an input: its order, and that it fits.
func TestSection(t *testing.T) {
	x := open(t, write(t, goSource), graph.Options{})
	full := x.Section(graph.Focus{Input: "why is `help` slow?", Errors: []string{"b/b_test.go:5:30: boom"}, Tokens: 1500})
	places := strings.Index(full, "b/b_test.go:5 is in TestUse")
	impact := strings.Index(full, "What changing help (a/a.go:6) may break")
	if places < 0 || impact < places || !strings.Contains(full, "tests (1): TestUse") {
		t.Errorf("section:\n%s", full)
	}
	if got := x.Section(graph.Focus{Input: "hello there", Tokens: 1500}); got != "" {
		t.Errorf("nothing is named: %s", got)
	}
	for tokens := range 400 {
		if got := x.Section(graph.Focus{Input: "change a.Do", Files: []string{"b/b.go"}, Tokens: tokens}); len(got) > 4*tokens {
			t.Fatalf("%d tokens: %d bytes", tokens, len(got))
		}
	}
	limited := x.Section(graph.Focus{Input: "change a.Do", Tokens: 1500, Limits: map[string]int{"impact": 0}})
	if strings.Contains(limited, "may break") {
		t.Errorf("without a budget for it:\n%s", limited)
	}
}

func TestDiff(t *testing.T) {
	before := open(t, write(t, goSource), graph.Options{}).Graph()
	dir := write(t, goSource)
	put(t, dir, "a/a.go", "package a\n\n// Do does it.\nfunc Do() int { return 7 }\n\nfunc Unused() {}\n")
	put(t, dir, "notes.py", "")
	r := graph.Diff(before, open(t, dir, graph.Options{}).Graph(), []string{"a/a.go", "README.md", "gone.go"})
	var changed []string
	for _, n := range r.Changed {
		changed = append(changed, n.Name())
	}
	if got := strings.Join(changed, " "); got != "Do help" {
		t.Errorf("changed: %s", got)
	}
	if got := names(r.Tests); got != "TestUse/2" || r.Complete || strings.Join(r.Unknown, " ") != "gone.go" {
		t.Errorf("tests %s, unknown %v, complete %t", got, r.Unknown, r.Complete)
	}
}

func BenchmarkCold(b *testing.B) {
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	lines := 0
	for b.Loop() {
		x := open(b, root, graph.Options{})
		lines = x.Summary().Lines
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds()/1000, "klines/s")
}

func BenchmarkUnchanged(b *testing.B) {
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	x := open(b, root, graph.Options{})
	for b.Loop() {
		if err := x.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
