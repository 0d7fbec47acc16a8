package shell_test

import (
	"fmt"

	"github.com/seed-009c0928/agent/permissions/shell"
)

func ExampleAnalyze() {
	a := shell.Analyze("cd docs && cat *.md | mystery --all", shell.Options{Dir: "/work"})
	for _, c := range a.Commands {
		fmt.Println(c.Argv, c.Effect)
	}
	for access := range a.Accesses() {
		fmt.Println(access.Kind, access.Path)
	}
	f, _ := a.Offence()
	fmt.Println(f.Text+":", f.Why)
	// Output:
	// [cd docs] read-only
	// [cat *.md] read-only
	// [mystery --all] unknown
	// list /work/docs
	// read /work/docs/*.md
	// mystery --all: mystery is not known to be read-only
}
