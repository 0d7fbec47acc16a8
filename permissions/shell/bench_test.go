package shell_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// twenty are the commands of a long but ordinary script.
var twenty = strings.Join([]string{
	"cd src && ls -la", "cat README.md | head -n 50", "rg -n 'func main' --type go", "git log --oneline -20", "git diff --stat HEAD~1",
	"find . -type f -name '*.go' -not -path './vendor/*' | wc -l", "sed -n '10,40p' main.go", "awk '{print $1}' data.txt | sort | uniq -c",
	"for f in a.txt b.txt; do wc -l \"$f\"; done", "if [ -f go.mod ]; then head -5 go.mod; fi", "jq -r '.scripts | keys[]' package.json", "go list ./...",
	"echo \"$(date +%F): $(whoami)\"", "timeout 5 grep -rn foo .",
}, "\n")

func BenchmarkAnalyze(b *testing.B) {
	o := shell.Options{Dir: "/work", Home: "/home/me"}
	a := shell.Analyze(twenty, o)
	if a.Effect() != shell.ReadOnly || len(a.Commands) < 20 {
		b.Fatalf("%d commands, %v", len(a.Commands), a.Effect())
	}
	b.ReportAllocs()
	for b.Loop() {
		shell.Analyze(twenty, o)
	}
}

func BenchmarkAnalyzeOne(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		shell.Analyze("git status --short", shell.Options{Dir: "/work"})
	}
}
