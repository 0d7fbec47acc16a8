package lsp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// realPlace is a workspace with the servers on this machine; it skips the test if
// there is not that one.
func realPlace(t *testing.T, name string, dirs ...string) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	found, problems := Find(FindOptions{Roots: append([]string{dir}, dirs...), Trusted: true, Home: home, Getenv: os.Getenv})
	if len(problems) > 0 {
		t.Error(problems)
	}
	p := &place{t: t, dir: dir}
	for i := range found {
		if found[i].Name == name {
			p.all = newServers(Options{Roots: []string{dir}, Servers: found[i : i+1]}, serverEnviron(os.Environ(), t.TempDir()))
		}
	}
	if p.all == nil {
		t.Skipf("%s is not installed", name)
	}
	p.spec = &p.all.options.Servers[0]
	t.Cleanup(func() { _ = p.all.close() })
	return p
}

// ask asks and wants an answer with these parts, as text.
func (p *place) ask(q Query, want ...string) Answer {
	p.t.Helper()
	a, err := p.query(q)
	if err != nil {
		p.t.Fatalf("%s of %s: %v", q.Action, q.Symbol, err)
	}
	text := a.Text
	for _, l := range a.Locations {
		text += problemPlace(p.dir, l)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			p.t.Errorf("%s of %s: %q, want %q", q.Action, q.Symbol, text, w)
		}
	}
	return a
}

func problemPlace(dir string, l Location) string {
	return strings.Join([]string{relative(dir, l.Path), strings.Repeat("i", l.Line)}, ":") + ";"
}

// renamed applies the edits of a rename.
func (p *place) renamed(a Answer) {
	p.t.Helper()
	for _, e := range a.Edits {
		before, err := os.ReadFile(e.Path)
		if err != nil {
			p.t.Fatal(err)
		}
		after, err := e.Apply(before)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(e.Path, after, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestGopls(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	p := realPlace(t, "gopls")
	p.write("go.mod", "module example.com/x\n\ngo 1.21\n")
	a := p.write("a.go", "package x\r\n\r\n// Add adds.\r\nfunc Add(a, b int) int { return a + b }\r\n")
	b := p.write("b/b.go", "package b\n\nimport \"example.com/x\"\n\nvar S = \"😀\" + string(rune(x.Add(1, 2)))\n")
	p.ask(Query{Action: Definition, File: File{Path: b}, Symbol: "x.Add", Line: 5}, "a.go:iiii;")
	p.ask(Query{Action: References, File: File{Path: a}, Symbol: "Add", Line: 4}, "a.go:iiii;", "b/b.go:iiiii;")
	p.renamed(p.ask(Query{Action: Rename, File: File{Path: a}, Symbol: "Add", Line: 4, NewName: "Sum"}))
	data, err := os.ReadFile(b)
	if err != nil || !strings.Contains(string(data), "x.Sum(1, 2)") {
		t.Errorf("b.go: %s %v", data, err)
	}
	p.write("a.go", "package x\n\nfunc Sum(a int) int { return a + c }\n")
	if got := p.await("s", File{Path: a}, File{Path: b}); !strings.Contains(got, "a.go:3:34: error: undefined: c") || !strings.Contains(got, "b/b.go:5:") {
		t.Errorf("problems: %s", got)
	}
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "typescript-language-server"))); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), npm, "ci", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline").CombinedOutput(); err != nil {
		t.Skipf("npm ci does not work here: %v\n%s", err, out)
	}
	p := realPlace(t, "typescript-language-server", dir)
	p.write("tsconfig.json", `{"compilerOptions": {"strict": true}}`)
	a := p.write("a.ts", "export function greet(name: string): string { return \"😀\" + name; }\r\n")
	b := p.write("b.ts", "import { greet } from \"./a\";\n/* 😀 */ const x: string = greet(\"a\");\nconsole.log(x);\n")
	p.ask(Query{Action: Definition, File: File{Path: b}, Symbol: "greet", Line: 2}, "a.ts:i;")
	p.ask(Query{Action: References, File: File{Path: a}, Symbol: "greet"}, "a.ts:i;", "b.ts:ii;")
	p.renamed(p.ask(Query{Action: Rename, File: File{Path: a}, Symbol: "greet", NewName: "hello"}))
	data, err := os.ReadFile(b)
	if err != nil || !strings.Contains(string(data), "= hello(\"a\")") {
		t.Errorf("b.ts: %s %v", data, err)
	}
	p.write("b.ts", "import { hello } from \"./a\";\n/* 😀 */ const x: number = hello(\"a\");\nconsole.log(x);\n")
	if got := p.await("s", File{Path: a}, File{Path: b}); !strings.Contains(got, "b.ts:2:15: error: Type 'string' is not assignable to type 'number'.") {
		t.Errorf("problems: %s", got)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root, home, bin := t.TempDir(), t.TempDir(), t.TempDir()
	program := func(elem ...string) string {
		path := filepath.Join(elem...)
		if filepath.Ext(path) == "" && os.PathSeparator == '\\' {
			path += ".exe"
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gopls, pyright := program(home, "go", "bin", "gopls"), program(root, "node_modules", ".bin", "pyright-langserver")
	own := program(bin, "own-server")
	find := func(trusted bool, set map[string]Config) (map[string]string, string) {
		found, problems := Find(FindOptions{Roots: []string{root}, Trusted: trusted, Home: home, Servers: set, Getenv: func(name string) string {
			return map[string]string{"PATH": bin + string(os.PathListSeparator) + filepath.Join(root, "node_modules", ".bin")}[name]
		}})
		paths, text := map[string]string{}, ""
		for _, s := range found {
			paths[s.Name] = s.Command[0]
		}
		for _, p := range problems {
			text += p.Error() + "\n"
		}
		return paths, text
	}
	if got, problems := find(true, nil); got["gopls"] != gopls || got["pyright"] != pyright || problems != "" {
		t.Errorf("trusted: %v %s", got, problems)
	}
	if got, problems := find(false, nil); got["pyright"] != "" || !strings.Contains(problems, "not trusted") {
		t.Errorf("a program of the workspace without trust: %v %s", got, problems)
	}
	got, problems := find(false, map[string]Config{
		"gopls": {Disabled: true}, "pyright": {Disabled: true}, "own": {Command: "own-server", Extensions: map[string]string{".own": "own"}},
		"gone": {Command: "gone", Languages: []string{"ruby"}}, "odd": {Command: "own-server", Languages: []string{"klingon"}}, "none": {Command: "own-server"},
		"planted": {Command: "./node_modules/.bin/pyright-langserver", Languages: []string{"python"}},
	})
	if got["own"] != own || got["gopls"] != "" || got["planted"] != "" {
		t.Errorf("servers %v", got)
	}
	for _, want := range []string{"gone is not installed", `unknown language "klingon"`, "lsp.servers.none: set the languages", "is in the workspace, which is not trusted"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems %s, want %s", problems, want)
		}
	}
	if HasFiles(root, []Server{{Extensions: languages["go"]}}) {
		t.Error("it has Go files")
	}
	program(root, "sub", "x.go")
	if !HasFiles(root, []Server{{Extensions: languages["go"]}}) {
		t.Error("it has no Go files")
	}
}
