package subagent_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-009c0928/agent/core/subagent"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func ExampleLoad() {
	files := fstest.MapFS{"agents/reviewer.md": file("---\ndescription: looks for faults in a change\ntools: read_file, grep\n---\nYou review changes.\n")}
	kinds, broken := subagent.Load(files, "agents")
	for _, k := range kinds {
		fmt.Printf("%s: %s, with %s\n", k.Name, k.Description, strings.Join(k.Tools, " and "))
	}
	fmt.Println(len(broken), "broken")
	// Output:
	// reviewer: looks for faults in a change, with read_file and grep
	// 0 broken
}

// TestLoadBroken: invalid definitions are errors, the others are loaded.
func TestLoadBroken(t *testing.T) {
	const head = "---\ndescription: d\n"
	tests := []struct{ name, text, want string }{
		{"no-front-matter.md", "You review.", "description is missing"},
		{"no-text.md", head + "---\n", "text is missing"},
		{"not-yaml.md", "---\ndescription: {\n---\nx", "front matter"},
		{"name.md", head + "name: Not Good\n---\nx", "lower-case letters"},
		{"tools.md", head + "tools: 7\n---\nx", "expected a list of names"},
		{"tools-of-numbers.md", head + "tools: [7]\n---\nx", "is not a name"},
		{"zz-twice.md", head + "name: good\n---\nx", "the name good is taken"},
		{"long.md", head + "---\n" + strings.Repeat("x", 70_000), "longer than"},
	}
	files := fstest.MapFS{
		"agents/good.md":    file("\ufeff" + head + "tools:\n  - grep\nmodel: small\n---\nYou do.\n"),
		"agents/sub/for.md": file("---\ndescription: Use it: when asked. user: \"hi\"\ndisallowedTools: shell\n---\nYou do.\n"),
		"agents/readme.txt": file("not one"),
		"agents/dir.md/x":   file("a directory"),
	}
	for _, tt := range tests {
		files["agents/"+tt.name] = file(tt.text)
	}
	kinds, broken := subagent.Load(files, "agents")
	if len(kinds) != 2 || strings.Join(kinds[1].Disallowed, " ") != "shell" || kinds[0].Name != "good" || kinds[0].Model != "small" || kinds[0].Prompt != "You do." || len(kinds[0].Tools) != 1 {
		t.Errorf("loaded %+v", kinds)
	}
	if len(broken) != len(tests) {
		t.Errorf("%d errors, want %d: %v", len(broken), len(tests), broken)
	}
	for _, tt := range tests {
		found := false
		for _, err := range broken {
			found = found || strings.Contains(err.Error(), "agents/"+tt.name) && strings.Contains(err.Error(), tt.want)
		}
		if !found {
			t.Errorf("no error names %s with %q: %v", tt.name, tt.want, broken)
		}
	}
	if kinds, broken := subagent.Load(files, "nowhere"); kinds != nil || broken != nil {
		t.Errorf("a missing directory: %v, %v", kinds, broken)
	}
}
