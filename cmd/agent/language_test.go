package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// ban is a phrase that docs/glossary.md replaces.
type ban struct {
	phrase *regexp.Regexp
	except *regexp.Regexp // what follows from the phrase on is fine, nil for nothing
	use    string         // what to write instead
}

// banned makes a ban: a space in phrase matches any white space, case is ignored.
func banned(phrase, use string, except ...string) ban {
	b := ban{use: use, phrase: regexp.MustCompile(`(?i)(?:\b|%)(?:` + strings.ReplaceAll(phrase, " ", `\s+`) + `)\b`)}
	if len(except) > 0 {
		b.except = regexp.MustCompile(`^(?:` + strings.Join(except, "|") + `)`)
	}
	return b
}

var bans = []ban{
	banned(`heed(s|ed|ing)?`, "handle, obey, cancel"),
	banned(`(\w+ )?of (its|their|your|his|our|my) own`, `"its own X", "a separate X"`, `(?i)(one|two|some|any|many|each|all|none) of`),
	banned(`by (itself|themselves)`, `"automatically", "alone", or nothing`),
	banned(`(go|goes|went|going|gone) on`, "continue, resume", `go on PATH`),
	banned(`persons?`, "user", `person people`, "person[`\"|]"),
	banned(`nobody( is| was)? (there|to ask|asked|agreed|signed)`, `"non-interactive", or the passive`),
	banned(`what holds`, "the rule, the value, or what it is"),
	banned(`\w+ (is|are) none`, "invalid, unknown, missing, not found", `[Tt]here`, `\w+ is None`),
	banned(`\w+ (is|are) no \w+`, `"is not a", invalid`, `[Tt]here`, `%?\w+ (is|are) no (longer|more|less|fewer|later|earlier|older|newer|limit|need)\b`),
	banned(`look(s|ed|ing)? after`, "manage"),
	banned(`would be asked`, `"needs approval"`),
	banned(`unasked`, `"without asking"`),
	banned(`questions? of permission`, "permission request"),
	banned(`agree[ds]? to|agreeing to`, "approve, trust"),
	banned(`says? no to|would not do|will not do`, "deny, invalid"),
	banned(`(bring|brings|brought|bringing) up`, "match, activate"),
	banned(`(break|breaks|broke|broken|breaking) off`, "abort, interrupt, end early"),
	banned(`puts? aside`, "move to, rename, repair"),
	banned(`(who|whoever) runs (the|a|this) machine`, "administrator; managed settings"),
	banned(`where (the )?models are reached`, "model providers"),
	banned(`kinds? of (agents?|access)`, "agent type, scope"),
	banned(`workplaces?`, "environment"),
	banned(`deaf`, "wait, time out"),
	banned(`cages?`, "sandbox"),
	banned(`tapes?`, "recording"),
	banned(`wish(es)?`, "tool call"),
	banned(`anew`, "again"),
	banned(`cannot be told`, `"is unknown", "cannot be determined"`),
	banned(`(is|are|was|were) meant`, "ambiguous, matches", `\w+ meant (to|for|by|as|literally)\b`),
	banned(`where (it|they|that) (lies|lie|stands|stand)`, `"in place", "in that file"`),
	banned(`is whole`, "intact"),
	banned(`(be|is|are) held to`, "enforced, limited to"),
}

// hit is a banned phrase in a file.
type hit struct {
	file string
	line int
	text string // the phrase with what stands around it
	use  string
}

// TestLanguage checks that texts for users and for models use the words of
// docs/glossary.md: string literals, tool descriptions, prompts, skills, docs.
func TestLanguage(t *testing.T) {
	if testing.Short() {
		t.Skip("searches all texts, which takes a minute under the race detector; go test without -short does")
	}
	t.Parallel()
	hits, err := checkLanguage(os.DirFS(moduleRoot(t)))
	if err != nil {
		t.Fatal(err)
	}
	perDir := map[string]int{}
	for _, h := range hits {
		t.Errorf("%s:%d: %q: use %s (docs/glossary.md)", h.file, h.line, h.text, h.use)
		perDir[path.Dir(h.file)]++
	}
	for dir, n := range perDir {
		t.Logf("%4d in %s", n, dir)
	}
}

func TestCheckLanguage(t *testing.T) {
	t.Parallel()
	code := func(literal string) string { return "package p\n\nvar s = " + literal + "\n" }
	tests := []struct {
		name, file, text string
		want             string // part of the one hit, "" for none
	}{
		{"string", "a/a.go", code(`"It is not heeded."`), "a/a.go:3: heeded"},
		{"raw string", "a/a.go", code("`\n\nlook after plugins`"), "a/a.go:5: look after"},
		{"concatenation", "a/a.go", code(`"the tool is of its " +` + "\n\"own\""), "of its own"},
		{"format", "a/a.go", code(`"%q is no name"`), "%q is no"},
		{"format, no longer", "a/a.go", code(`"%s is no longer used"`), ""},
		{"struct tag", "a/a.go", "package p\n\ntype t struct {\n\tA int `jsonschema:\"what holds here\"`\n}\n", "a/a.go:4: what holds"},
		{"comment", "a/a.go", "// Package p goes on.\npackage p\n", ""},
		{"test", "a/a_test.go", code(`"goes on"`), ""},
		{"testdata", "a/testdata/a.go", code(`"goes on"`), ""},
		{"tool description", "core/tools/grep.md", "Searches files\nby itself.\n", "core/tools/grep.md:2: by itself"},
		{"page", "docs/a.md", "# A\n\nThe person is asked.\n", "docs/a.md:3: person"},
		{"glossary", "docs/glossary.md", "| user | | person |\n", ""},
		{"demo script", "cmd/demo/script.yaml", "text: It goes\n  on.\n", "goes on"},
		{"upper case", "README.md", "Goes on.", "Goes on"},
		{"a value", "a/a.go", code(`"person"`), ""},
		{"a value in a page", "README.md", "One of `person`, `headless`.", ""},
		{"test support", "core/coretest/a.go", code(`"it goes on"`), ""},
		{"python", "a/plugin.py", "if value is None:", ""},
		{"part of a word", "README.md", "A personal workplacement, wholesome; the argument is nonempty.", ""},
		{"go the language", "README.md", "needs go on PATH", ""},
		{"there is none", "README.md", "There is none, and there are no others; it is no longer used, and no more than 5.", ""},
		{"hold", "a/a.go", code(`"the lock is held; holds the rules"`), ""},
		{"one of its own", "a/a.go", code(`"it runs one of its own programs"`), ""},
		{"meant to", "README.md", "It is meant to be read.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hits, err := checkLanguage(fstest.MapFS{tt.file: {Data: []byte(tt.text)}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, fmt.Sprintf("%s:%d: %s", h.file, h.line, h.text))
			}
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("hits = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEveryBanCatches finds a ban with a mistake in its expression, which
// would never catch anything.
func TestEveryBanCatches(t *testing.T) {
	t.Parallel()
	const sample = `heeded. of its own. by itself. goes on. person. nobody is there. what holds. which is none. %q is no name. looks after.
would be asked. unasked. question of permission. agreed to. would not do. brings up. breaks off. put aside. who runs the machine.
where models are reached. kinds of agents. workplace. deaf. cage. tape. wishes. anew. cannot be told. is meant. where it lies.
is whole. is held to.`
	found := searchText("sample", 1, sample)
	if len(found) != len(bans) {
		t.Errorf("%d hits in the sample, want %d, one for each ban: %v", len(found), len(bans), found)
	}
	for i, h := range found {
		if i < len(bans) && h.use != bans[i].use {
			t.Fatalf("hit %d is %q, want one for %q", i, h.text, bans[i].phrase)
		}
	}
}

// checkLanguage searches all texts of the module whose root is tree.
func checkLanguage(tree fs.FS) ([]hit, error) {
	var hits []hit
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enterTexts(name)
		}
		found, err := searchFile(tree, name)
		hits = append(hits, found...)
		return err
	})
	return hits, err
}

// enterTexts returns fs.SkipDir for directories without texts for users, such
// as test support.
func enterTexts(dir string) error {
	base := path.Base(dir)
	if dir != "." && (base == "testdata" || base == "node_modules" || base[0] == '.' || strings.HasSuffix(base, "test")) {
		return fs.SkipDir
	}
	return nil
}

func searchFile(tree fs.FS, name string) ([]hit, error) {
	switch {
	case name == "docs/glossary.md", strings.HasSuffix(name, "_test.go"):
		return nil, nil
	case slices.Contains([]string{".go", ".md", ".yaml", ".txtar", ".html", ".proto", ".tmpl", ".py", ".svg"}, path.Ext(name)):
	case path.Base(name) == "events.schema.json":
	default:
		return nil, nil
	}
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	if path.Ext(name) == ".go" {
		return searchGo(name, src)
	}
	return searchText(name, 1, string(src)), nil
}

// searchGo searches the string literals of Go source, joined where they are
// concatenated.
func searchGo(name string, src []byte) ([]hit, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var hits []hit
	ast.Inspect(file, func(n ast.Node) bool {
		expr, ok := n.(ast.Expr)
		if _, isImport := n.(*ast.ImportSpec); isImport || !ok {
			return !isImport
		}
		text, ok := literalText(expr)
		if ok && strings.Contains(text, " ") { // a single word is a name or a value
			hits = append(hits, searchText(name, fset.Position(expr.Pos()).Line, text)...)
		}
		return !ok
	})
	return hits, nil
}

// literalText returns the text of a string literal or a sum of some.
func literalText(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil && x.Kind == token.STRING
	case *ast.ParenExpr:
		return literalText(x.X)
	case *ast.BinaryExpr:
		left, ok := literalText(x.X)
		right, alsoOK := literalText(x.Y)
		return left + right, ok && alsoOK
	}
	return "", false
}

// searchText searches one text, whose first line has the number given.
func searchText(file string, line int, text string) []hit {
	var hits []hit
	for _, b := range bans {
		for _, at := range b.phrase.FindAllStringIndex(text, -1) {
			around := strings.Join(strings.Fields(text[at[0]:min(len(text), at[1]+20)]), " ")
			if b.except == nil || !b.except.MatchString(around) {
				hits = append(hits, hit{file, line + strings.Count(text[:at[0]], "\n"), around, b.use})
			}
		}
	}
	return hits
}
