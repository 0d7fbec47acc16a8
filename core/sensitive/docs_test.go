package sensitive_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/sensitive"
)

var update = flag.Bool("update", false, "write docs/sensitive-paths.md")

const page = "../../docs/sensitive-paths.md"

func TestDocs(t *testing.T) {
	want := document()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not current: run go test ./core/sensitive -run TestDocs -update", page)
	}
}

// document returns the page with all entries.
func document() string {
	return "# Sensitive and protected paths\n\n" +
		"Generated from `core/sensitive`. Letter case does not matter, `*` is any characters in a name, and a path includes everything\n" +
		"below it. [permissions.md](permissions.md) says what the policy does with them, [sandbox.md](sandbox.md) what the sandbox hides.\n\n" +
		"## Secrets\n\nEvery access to them, except to their names, asks. Sandboxes hide them.\n\n" + rows(sensitive.Secret) +
		"\n## Protected from writes\n\nPrograms run, load or obey them later. Writing, deleting and replacing them asks.\n\n" + rows(sensitive.Protected) +
		"\nNext: [skills](skills.md)\n"
}

// rows returns the table of a class: a row for the entries with the same reason.
func rows(class sensitive.Class) string {
	where := map[sensitive.Scope]string{
		sensitive.System: "/", sensitive.Home: "home directory", sensitive.AgentHome: "the agent's directory", sensitive.Anywhere: "anywhere",
	}
	var b strings.Builder
	b.WriteString("| Contents | In | Paths | Except |\n| --- | --- | --- | --- |\n")
	all := sensitive.Entries()
	for len(all) > 0 {
		first, n := all[0], 1
		for n < len(all) && all[n].Reason == first.Reason && all[n].Scope == first.Scope {
			n++
		}
		if first.Class == class {
			var paths []string
			for _, e := range all[:n] {
				paths = append(paths, e.Pattern)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", first.Reason, where[first.Scope], code(paths), code(first.Except))
		}
		all = all[n:]
	}
	return b.String()
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
