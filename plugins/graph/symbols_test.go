package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/plugins/graph"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

// TestSearch checks what a completion of symbols lists, and in which order.
func TestSearch(t *testing.T) {
	g := open(t, write(t, `
-- go.mod --
module example.com/m
-- core/session.go --
package core

type Session struct{}

func (s *Session) Submit() {}

func NewSession() *Session { return nil }

var sessions int
-- web/session.py --
class WebSession:
    def submit(self): pass
`), graph.Options{}).Graph()
	for query, want := range map[string]string{
		"session":             "Session sessions Session.Submit NewSession WebSession WebSession.submit",
		"Session":             "Session sessions Session.Submit NewSession WebSession WebSession.submit",
		"ns":                  "NewSession sessions Session.Submit WebSession.submit",
		"submit":              "Session.Submit WebSession.submit",
		"Session.Sub":         "Session.Submit WebSession.submit",
		"core/session.go#ses": "Session sessions Session.Submit NewSession",
		"session.py#":         "WebSession WebSession.submit",
		"wsubmit":             "WebSession.submit",
		"xyz":                 "",
	} {
		var got []string
		for _, n := range g.Search(query, 10) {
			got = append(got, n.Name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", query, strings.Join(got, " "), want)
		}
	}
	if got := g.Search("s", 2); len(got) != 2 {
		t.Errorf("%d of 2", len(got))
	}
}

// TestTouches checks which definitions a change of a file is said to touch.
func TestTouches(t *testing.T) {
	const goBefore = "package p\n\ntype T struct{ a int }\n\nfunc (T) M() {}\n\nfunc old() {}\n\nfunc same() {}\n\ntype I interface{ A() }\n"
	for _, c := range []struct{ name, before, after, want string }{
		{
			"a.go", goBefore, strings.NewReplacer("a int", "b int", "M() {}", "M() { _ = 1 }", "old", "now", "A()", "A(int)").Replace(goBefore),
			"modify class T, modify method T.M, create function now, delete function old, modify method I.A",
		},
		{"a.go", "", "package p\n\nfunc f() {}\n", "create function f"},
		{"a_windows.go", "package p\n\nfunc f() {}\n", "package p\n\nfunc f( {\n", "modify function f"},
		{"a.py", "class A:\n    def m(self):\n        return 1\n", "class A:\n    def m(self):\n        return 2\n", "modify method A.m"},
		{"a.ts", "export class A {\n  x() { return 1 }\n}\n", "", "delete class A, delete method A.x"},
		{"a.md", "# a", "# b", ""},
		{"a.c", "int f() { return 1; }\n", "int f() { return 1; } // now\n", ""},
	} {
		var got []string
		for _, s := range graph.Touches(c.name, []byte(c.before), []byte(c.after)) {
			got = append(got, fmt.Sprintf("%s %s %s", s.Change, s.Kind, s.Name()))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", c.name, strings.Join(got, ", "), c.want)
		}
	}
}

// TestPlugin asks the plugin over its wire.
func TestPlugin(t *testing.T) {
	t.Setenv("PLUGIN_DATA_DIR", t.TempDir())
	p := sdktest.Start(t, graph.Plugin("1.0.0", graph.PluginOptions{Tokens: 1500}))
	p.Workspace = write(t, goSource)
	t.Chdir(p.Workspace)
	sdktest.Conforms(t, p, sdktest.Sample{Tool: "get_impact", Args: `{"path": "help"}`}, sdktest.Sample{Tool: "graph_query", Args: `{"query": "symbols", "name": "do"}`})
	if r := p.Call(t, "graph_query", map[string]string{"query": "symbols", "name": "do"}); r.Text != "a/a.go:4 function Do func Do() int" {
		t.Errorf("symbols: %q", r.Text)
	}
	if r := p.Command(t, "impact", "@a/a.go#help b.Use"); !strings.Contains(r.Text, "Affected functions (1):\n  a/a.go:4 Do\n") {
		t.Errorf("/impact: %q", r.Text)
	}
	for args, want := range map[string]string{"": "name files or symbols", "hlp": "similar: go:a/a.go#help"} {
		if r := p.Command(t, "impact", args); r.Code == "" || !strings.Contains(r.Text, want) {
			t.Errorf("/impact %s: %q", args, r.Text)
		}
	}
}

// TestCallersThroughInterfaces: who calls a method of an interface is told as a caller
// of what implements it.
func TestCallersThroughInterfaces(t *testing.T) {
	x := open(t, write(t, `
-- go.mod --
module m
-- a.go --
package m

type shape interface{ area() int }

type square struct{}

func (square) area() int { return 1 }

func total(s shape) int { return s.area() }

func direct() int { return square{}.area() }
`), graph.Options{})
	nodes, err := x.Graph().Find("square.area")
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.go:11 direct call a.go#square.area\n" +
		"a.go#shape.area implement a.go#square.area (medium confidence)\n" +
		"a.go:9 total call a.go#shape.area (medium confidence)"
	if got := graph.EdgeText(x.Graph().Neighbours(nodes, true), true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
