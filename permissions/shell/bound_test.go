package shell_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// TestBounded shows that scripts that branch, loop and nest as much as possible do
// not make the analysis unbounded.
func TestBounded(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, 10_000/len(unit)) }
	assignments := &strings.Builder{}
	for i := range 600 {
		fmt.Fprintf(assignments, "v%d=a%d;", i, i)
	}
	nested := "ls"
	for i := range 12 {
		nested = fmt.Sprintf("for i%d in {1..30}; do %s; done", i, nested)
	}
	for name, script := range map[string]string{
		"branches":     fill("if a; then x=1; else x=2; fi; "),
		"conditions":   fill("x=1 && y=2 || z=3; "),
		"names":        assignments.String() + "if a; then " + assignments.String()[:2000] + " :; fi",
		"loops":        nested,
		"while loops":  strings.Repeat("while a; do x=$x; ", 50) + ":" + strings.Repeat("; done", 50),
		"functions":    fill("f() { x=1; }; f; "),
		"substitution": strings.Repeat("echo $(", 55) + "ls" + strings.Repeat(")", 55),
		"backquotes":   fill("echo `echo a`; "),
		"braces":       fill("echo {a,b}{c,d}{e,f}{g,h}{i,j}; "),
		"globs":        fill("cat *?[a]* "),
		"directories":  fill("cd a; cat b; "),
		"cases":        fill("case a in a) x=1;; b) x=2;& *) x=3;; esac; "),
		"arithmetic":   "echo $((" + strings.Repeat("- ", 4900) + "1))",
		"signs":        "((" + strings.Repeat("1+", 4900) + "1))",
		"pipes":        strings.Repeat("a|", 4999) + "a",
		"and":          strings.Repeat("a&&", 3333) + "a",
		"quotes":       fill(`"a"'b'\c`),
		"expansions":   fill("${a:-b}"),
		"redirects":    "ls " + fill(">a ")[:9900],
		"here":         fill("cat <<a\nb\na\n"),
		"words":        "cat " + fill("a ")[:9900],
		"shells":       strings.Repeat("timeout 1 ", 900) + "ls",
		"many loops":   "for a in {1..30}; do for b in {1..30}; do " + fill("x=$x$y; ")[:8000] + " :; done; done",
	} {
		var a shell.Analysis
		allocations := testing.AllocsPerRun(1, func() { a = shell.Analyze(script, shell.Options{Dir: "/work"}) })
		const most = 150_000
		if len(script) > 10_000 && name != "names" || allocations > most {
			t.Errorf("%s, %d bytes: %.0f allocations, %d commands; want at most %d allocations", name, len(script), allocations, len(a.Commands), most)
		}
		t.Logf("%-12s %7.0f allocations %4d commands %v", name, allocations, len(a.Commands), a.Effect())
	}
}
