package root

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
)

// TestEventsAreDocumented holds docs/events.md against the source of
// core/event: each type has a section, which names all its members.
func TestEventsAreDocumented(t *testing.T) {
	page := eventsPage(t)
	sections := map[string]string{}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		sections[strings.Trim(title, "`")] = body
	}
	types := eventTypes(t)
	for kind, members := range types {
		section, ok := sections[kind]
		if !ok {
			t.Errorf("docs/events.md has no section ### `%s`", kind)
			continue
		}
		for _, name := range members {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("docs/events.md: the section on %s does not name `%s`", kind, name)
			}
		}
		delete(sections, kind)
	}
	for title := range sections {
		t.Errorf("docs/events.md describes %s, which is no type of core/event", title)
	}
	envelope, _, _ := strings.Cut(page, "\n### ")
	for _, name := range []string{"v", "seq", "id", "time", "session", "parent", "iteration", "tokens", "trace", "span", "call", "required", "type"} {
		if !strings.Contains(envelope, "| `"+name+"` |") {
			t.Errorf("docs/events.md does not describe the envelope's `%s`", name)
		}
	}
}

// TestEventsSample reads the sample as a program would.
func TestEventsSample(t *testing.T) {
	_, rest, _ := strings.Cut(eventsPage(t), "\n```jsonl\n")
	sample, _, found := strings.Cut(rest, "\n```")
	if !found {
		t.Fatal("docs/events.md has no sample")
	}
	if err := checkStream(sample); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(sample) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(again), strings.TrimSpace(line); got != want {
			t.Errorf("the sample is not what is printed:\n got %s\nwant %s", want, got)
		}
	}
}

func eventsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(docs("events.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(page), "\r\n", "\n")
}

// eventTypes reads from the source which types there are, by the names that
// they have in JSON, and the members of each.
func eventTypes(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "..", "core", "event", "types*.go"))
	if err != nil {
		t.Fatal(err)
	}
	structs, kinds := map[string][]string{}, map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					structs[n.Name.Name] = jsonMembers(s)
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Type" {
					if lit, ok := n.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit); ok {
						kind, _ := strconv.Unquote(lit.Value) // Go source that compiles
						kinds[kind] = n.Recv.List[0].Type.(*ast.Ident).Name
					}
				}
			}
			return true
		})
	}
	types := map[string][]string{}
	for kind, name := range kinds {
		types[kind] = structs[name]
	}
	if len(types) < 20 {
		t.Fatalf("only %d types of events were found in the source", len(types))
	}
	return types
}

var jsonTag = regexp.MustCompile(`json:"([^",]+)`)

func jsonMembers(s *ast.StructType) []string {
	var names []string
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		if m := jsonTag.FindStringSubmatch(f.Tag.Value); m != nil && m[1] != "-" {
			names = append(names, m[1])
		}
	}
	return names
}
