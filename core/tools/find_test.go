package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

// project is a small tree, including what a search must skip.
func project() *env.Memory {
	return env.NewMemory("", map[string]string{
		".git/config":          "needle in git\n",
		".git/info/exclude":    "excluded.txt\n",
		".gitignore":           "*.log\n/build/\n",
		".github/ci.yml":       "run: needle\n",
		"README.md":            "# A needle\n\nNo more.\n",
		"build/out.txt":        "needle\n",
		"debug.log":            "needle\n",
		"excluded.txt":         "needle\n",
		"src/.gitignore":       "gen/\n!keep.log\n",
		"src/a.go":             "package a\n\n// Needle and needle.\nvar needle = 1\n",
		"src/b.go":             "package b\r\n\r\nvar x = \"needle\"\r\n",
		"src/gen/c.go":         "var needle = 2\n",
		"src/keep.log":         "needle\n",
		"src/image.bin":        "needle\x00\n",
		"src/deep/er/build/d":  "the last needle, no line feed",
		"src/deep/er/empty.go": "",
	})
}

func TestGrep(t *testing.T) {
	where := project()
	tests := []struct {
		name string
		in   args
		want string
	}{
		{
			"whole tree",
			args{"pattern": "needle"},
			".github/ci.yml:1:run: needle\nREADME.md:1:# A needle\nsrc/a.go:3:// Needle and needle.\nsrc/a.go:4:var needle = 1\n" +
				"src/b.go:3:var x = \"needle\"\nsrc/deep/er/build/d:1:the last needle, no line feed\nsrc/keep.log:1:needle",
		},
		{
			"from a directory, rules above it count",
			args{"pattern": "needle", "path": "src/deep"},
			"src/deep/er/build/d:1:the last needle, no line feed",
		},
		{"absolute path", args{"pattern": "^var x", "path": "/workspace/src"}, "/workspace/src/b.go:3:var x = \"needle\""},
		{"one file, also an ignored one", args{"pattern": "needle", "path": "debug.log"}, "debug.log:1:needle"},
		{"case", args{"pattern": "NEEDLE and", "case_insensitive": true}, "src/a.go:3:// Needle and needle."},
		{"end of a CRLF line", args{"pattern": `needle"$`}, "src/b.go:3:var x = \"needle\""},
		{"blank lines", args{"pattern": "^$", "glob_filter": "*.md"}, "README.md:2:"},
		{"a class does not cross lines", args{"pattern": `A needle[^x]*No`}, "No matches for A needle[^x]*No in . (9 files searched)."},
		{"filter by name", args{"pattern": "needle", "glob_filter": "*.{md,yml}"}, ".github/ci.yml:1:run: needle\nREADME.md:1:# A needle"},
		{"filter by path", args{"pattern": "var", "glob_filter": "src/*.go"}, "src/a.go:4:var needle = 1\nsrc/b.go:3:var x = \"needle\""},
		{
			"filter negated",
			args{"pattern": "needle", "glob_filter": "!*.go", "path": "src"},
			"src/deep/er/build/d:1:the last needle, no line feed\nsrc/keep.log:1:needle",
		},
		{"files", args{"pattern": "needle", "output_mode": "files_with_matches", "glob_filter": "*.go"}, "src/a.go\nsrc/b.go"},
		{"count", args{"pattern": "(?i)needle", "output_mode": "count", "path": "src"}, "src/a.go:2\nsrc/b.go:1\nsrc/deep/er/build/d:1\nsrc/keep.log:1"},
		{
			"cap",
			args{"pattern": "needle", "max_results": 2},
			".github/ci.yml:1:run: needle\nREADME.md:1:# A needle\n" +
				"(Only the first 2 matching lines are shown. Narrow pattern, path or glob_filter, or raise max_results.)",
		},
		{
			"cap within a file",
			args{"pattern": "(?i)needle", "max_results": 1, "path": "src"},
			"src/a.go:3:// Needle and needle.\n" +
				"(Only the first 1 matching lines are shown. Narrow pattern, path or glob_filter, or raise max_results.)",
		},
		{"exactly as many as wanted", args{"pattern": "needle", "max_results": 2, "path": "src/a.go"}, "src/a.go:3:// Needle and needle.\nsrc/a.go:4:var needle = 1"},
		{
			"cap on files",
			args{"pattern": "needle", "max_results": 1, "output_mode": "count"},
			".github/ci.yml:1\n(Only the first 1 matching files are shown. Narrow pattern, path or glob_filter, or raise max_results.)",
		},
		{
			"context",
			args{"pattern": "needle =|var x", "context": 1, "path": "src"},
			"src/a.go-3-// Needle and needle.\nsrc/a.go:4:var needle = 1\n--\nsrc/b.go-2-\nsrc/b.go:3:var x = \"needle\"",
		},
		{"nothing", args{"pattern": "no such thing", "path": "src"}, "No matches for no such thing in src (6 files searched)."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { check(t, tools.Grep(), where, tt.in, "", tt.want) })
	}
}

func TestGrepContext(t *testing.T) {
	where := env.NewMemory("", map[string]string{"f": "1\n2 x\n3\n4\n5 x\n6\n7\n8\n9\n10 x\n"})
	check(t, tools.Grep(), where, args{"pattern": "x", "context": 1, "path": "f"}, "",
		"f-1-1\nf:2:2 x\nf-3-3\nf-4-4\nf:5:5 x\nf-6-6\n--\nf-9-9\nf:10:10 x")
	check(t, tools.Grep(), where, args{"pattern": "x", "context": 2, "path": "f", "max_results": 2}, "",
		"f-1-1\nf:2:2 x\nf-3-3\nf-4-4\nf:5:5 x\nf-6-6\nf-7-7\n"+
			"(Only the first 2 matching lines are shown. Narrow pattern, path or glob_filter, or raise max_results.)")
}

func TestGrepRefusals(t *testing.T) {
	where := project()
	tests := []struct {
		in   args
		code core.ErrorCode
		want string
	}{
		{args{"pattern": ""}, core.CodeValidation, "pattern is empty"},
		{args{"pattern": "a(b"}, core.CodeValidation, "missing closing )"},
		{args{"pattern": `a\nb`}, core.CodeValidation, "one by one"},
		{args{"pattern": "a", "output_mode": "lines"}, core.CodeValidation, "files_with_matches"},
		{args{"pattern": "a", "max_results": -1}, core.CodeValidation, "negative"},
		{args{"pattern": "a", "context": 101}, core.CodeValidation, "100 at most"},
		{args{"pattern": "a", "glob_filter": "[a"}, core.CodeValidation, "glob_filter"},
		{args{"pattern": "a", "path": "nowhere"}, core.CodeNotFound, "nowhere"},
		{args{"pattern": "a", "path": "src/image.bin"}, core.CodeIO, "binary file"},
	}
	for _, tt := range tests {
		checkHas(t, tools.Grep(), where, tt.in, tt.code, tt.want)
	}
}

// Long lines are cut around the match; invalid bytes are replaced.
func TestGrepLongLine(t *testing.T) {
	where := env.NewMemory("", map[string]string{"f": strings.Repeat("é", 5_000) + "needle" + strings.Repeat("x", 1<<20) + "\n\xffneedle\n"})
	_, got := run(t, tools.Grep(), where, args{"pattern": "needle"})
	lines := strings.Split(got, "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "f:1:…é") || !strings.Contains(lines[0], "éneedlex") ||
		!strings.HasSuffix(lines[0], "more bytes]") || len(lines[0]) > 700 || lines[1] != "f:2:\uFFFDneedle" {
		t.Errorf("got %q", got)
	}
}

// Paths excluded from a recursive grant are skipped, and the result says so.
func TestGrepSensitive(t *testing.T) {
	where := env.NewMemory("", map[string]string{"a.txt": "needle", ".env": "needle", "keys/id": "needle", "big.txt": strings.Repeat("needle\n", 1<<20)})
	except := func(path string) bool { return path == "/workspace/.env" || strings.HasPrefix(path, "/workspace/keys") }
	_, got := runContext(t.Context(), t, tools.Grep(), where, args{"pattern": "needle"}, except)
	want := "a.txt:1:needle\n(2 paths not searched: sensitive, or access not granted.)\n(1 path not searched: larger than 4.0 MiB.)"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	_, got = runContext(t.Context(), t, tools.ListDir(), where, args{"depth": 2}, except)
	if !strings.HasSuffix(got, "\n(1 directory left out: access not granted.)") {
		t.Errorf("list_dir: %s", got)
	}
}

func TestGrepCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result, _ := runContext(ctx, t, tools.Grep(), env.NewMemory("", nil), args{"pattern": "x"}, nil)
	if result.Code != core.CodeCancelled {
		t.Errorf("code %q", result.Code)
	}
}

// Files are read in parallel, but reported in the order of the walk.
func TestGrepOrder(t *testing.T) {
	files := map[string]string{}
	var want []string
	for i := range 500 {
		name := fmt.Sprintf("d%02d/f%03d", i/50, i)
		files[name] = strings.Repeat("hay\n", (i*37)%400) + "needle\n"
		want = append(want, name)
	}
	check(t, tools.Grep(), env.NewMemory("", files), args{"pattern": "needle", "output_mode": "files_with_matches", "max_results": 1000}, "", strings.Join(want, "\n"))
}

func TestGlob(t *testing.T) {
	where := project()
	for _, name := range []string{"src/b.go", "README.md"} { // which makes them the newest
		if err := where.Files().Write(t.Context(), name, strings.NewReader("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		in   args
		want string
	}{
		{"everywhere", args{"pattern": "**/*.go"}, "src/b.go\nsrc/a.go\nsrc/deep/er/empty.go"},
		{"here only", args{"pattern": "*.md"}, "README.md"},
		{"below a path", args{"pattern": "**/*.go", "path": "src/deep"}, "src/deep/er/empty.go"},
		{"absolute path", args{"pattern": "*.go", "path": "/workspace/src"}, "/workspace/src/b.go\n/workspace/src/a.go"},
		{"directories in the pattern", args{"pattern": "./src/*/er/**"}, "src/deep/er/build/d\nsrc/deep/er/empty.go"},
		{"alternatives", args{"pattern": "{src/*.go,*.md}"}, "README.md\nsrc/b.go\nsrc/a.go"},
		{"class", args{"pattern": "src/[ab].go"}, "src/b.go\nsrc/a.go"},
		{"hidden", args{"pattern": ".github/*"}, ".github/ci.yml"},
		{"an absolute pattern", args{"pattern": "/workspace/src/*.go"}, "/workspace/src/b.go\n/workspace/src/a.go"},
		{"a pattern out of the path", args{"pattern": "../*.go", "path": "src/deep"}, "src/b.go\nsrc/a.go"},
		{
			"ignored",
			args{"pattern": "**/*.bak"},
			"No files in . match **/*.bak. (* does not cross directories, **/ does; what .gitignore names is left out.)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { check(t, tools.Glob(), where, tt.in, "", tt.want) })
	}
	for _, pattern := range []string{"", "[a", "{a", "..", "a/../.."} {
		checkHas(t, tools.Glob(), where, args{"pattern": pattern}, core.CodeValidation, "pattern")
	}
	checkHas(t, tools.Glob(), where, args{"pattern": "*", "path": "none"}, core.CodeNotFound, "does not exist")
	checkHas(t, tools.Glob(), where, args{"pattern": "*", "path": "README.md"}, core.CodeIO, "not a directory")
}

func TestListDir(t *testing.T) {
	where := project()
	tests := []struct {
		name string
		in   args
		want string
	}{
		{
			"one level",
			args{},
			".git/\n.github/\n.gitignore (14 bytes)\nREADME.md (21 bytes)\nbuild/\ndebug.log (7 bytes)\nexcluded.txt (7 bytes)\nsrc/",
		},
		{
			"two levels",
			args{"depth": 2, "path": "src"},
			".gitignore (15 bytes)\na.go (48 bytes)\nb.go (31 bytes)\ndeep/\n  er/\ngen/ (not shown)\nimage.bin (8 bytes)\nkeep.log (7 bytes)",
		},
		{"to the end", args{"depth": 9, "path": "src/deep"}, "er/\n  build/\n    d (29 bytes)\n  empty.go (0 bytes)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { check(t, tools.ListDir(), where, tt.in, "", tt.want) })
	}
	empty := env.NewMemory("", nil)
	check(t, tools.ListDir(), empty, args{}, "", "(The directory is empty.)")
	checkHas(t, tools.ListDir(), where, args{"path": "README.md"}, core.CodeIO, "read_file")
	checkHas(t, tools.ListDir(), where, args{"path": "none"}, core.CodeNotFound, "does not exist")
	checkHas(t, tools.ListDir(), where, args{"depth": -1}, core.CodeValidation, "depth")

	files := map[string]string{}
	for i := range 1001 {
		files[fmt.Sprintf("f%04d", i)] = ""
	}
	checkHas(t, tools.ListDir(), env.NewMemory("", files), args{}, "", "f0999", "(Only the first 1000 entries are shown.")
}

// A file name that looks like a handle or "~" is taken literally.
func TestOddNames(t *testing.T) {
	where := env.NewMemory("", map[string]string{"/workspace/~/x": "needle\n", "context:1": "needle\n", "/home/user/x": "needle at home\n"})
	check(t, tools.Grep(), where, args{"pattern": "needle"}, "", "context:1:1:needle\n~/x:1:needle")
	check(t, tools.Glob(), where, args{"pattern": "**/x"}, "", "~/x")
	check(t, tools.ListDir(), where, args{"depth": 2}, "", "context:1 (7 bytes)\n~/\n  x (7 bytes)")
}

func benchmarkTree() *env.Memory {
	files := map[string]string{".gitignore": "*.log\n/build/\n**/node_modules/\n"}
	for i := range 2_000 {
		files[fmt.Sprintf("pkg%02d/sub%d/file%04d.go", i/100, i%5, i)] = numberedLines(100)
	}
	return env.NewMemory("", files)
}

func BenchmarkGrep(b *testing.B) {
	where := benchmarkTree()
	for name, raw := range map[string]string{
		"literal": `{"pattern":"no such text"}`,
		"class":   `{"pattern":"[a-z]+ of nothing"}`,
		"nocase":  `{"pattern":"NO SUCH","case_insensitive":true}`,
		"many":    `{"pattern":"line 42$"}`,
	} {
		b.Run(name, func(b *testing.B) { benchmarkTool(b, tools.Grep(), where, raw) })
	}
}

func BenchmarkGlob(b *testing.B) {
	benchmarkTool(b, tools.Glob(), benchmarkTree(), `{"pattern":"**/*1.go"}`)
}

func benchmarkTool(b *testing.B, tool core.Tool, where core.Environment, raw string) {
	b.ReportAllocs()
	for b.Loop() {
		if result, err := tool.Run(b.Context(), &core.Call{Args: []byte(raw), Env: where}); err != nil || result.Code != "" {
			b.Fatal(result, err)
		}
	}
}
