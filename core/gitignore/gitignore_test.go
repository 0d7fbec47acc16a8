package gitignore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestIgnored(t *testing.T) {
	tests := []struct {
		name    string
		rules   string
		ignored string // paths, a directory with "/" at its end
		kept    string
	}{
		{"name anywhere", "build", "build build/ a/build a/b/build/", "builds rebuild"},
		{"directories only", "build/", "build/ a/build/", "build a/build"},
		{"anchored", "/build", "build build/", "a/build"},
		{"anchored by a slash within", "a/build", "a/build", "b/a/build build"},
		{"star stays in a directory", "a/*.log", "a/x.log", "a/b/x.log x.log"},
		{"suffix", "*.log", "x.log a/b/x.log .log", "x.log2 log"},
		{"question mark and class", "?.[ch]", "a.c b/x.h", "ab.c a.x"},
		{"negated class", "x[!0-9]", "xa", "x1"},
		{"leading double star", "**/out", "out a/out a/b/out/", "outs"},
		{"double star within", "a/**/z", "a/z a/b/z a/b/c/z", "z b/a/z"},
		{"trailing double star", "a/**", "a/b a/b/c", "a a/ b/a/c"},
		{"negation", "*.log\n!keep.log", "x.log", "keep.log a/keep.log"},
		{"the last rule decides", "!x\nx", "x", ""},
		{"comment and blank lines", "# x\n\n  \nx", "x", "# a"},
		{"escaped", "\\#x\n\\!y\nz\\*", "#x !y z*", "x y za"},
		{"spaces at the end", "x   \ny\\ ", "x", "y"},
		{"braces are plain", "{a,b}", "{a,b}", "a b"},
		{"CRLF and byte order mark", "\uFEFFx\r\ny/\r\n", "x y/", "y"},
		{"broken patterns match nothing", "[a\nb\\", "", "[a a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			levels := []Level{{Rules: Parse(tt.rules)}}
			check := func(paths string, want bool) {
				for p := range strings.FieldsSeq(paths) {
					name, dir := strings.CutSuffix(p, "/")
					if got := Ignored(levels, name, dir); got != want {
						t.Errorf("%s: ignored %v, want %v", p, got, want)
					}
				}
			}
			check(tt.ignored, true)
			check(tt.kept, false)
		})
	}
}

func TestIgnoredLevels(t *testing.T) {
	levels := []Level{
		{Below: "src/app/", Rules: Parse("/src/app/gen\n*.tmp")},
		{Rules: Parse("*.out")},
		{Dir: "lib/", Rules: Parse("!keep.out\n/top.txt")},
	}
	for path, want := range map[string]bool{
		"gen": true, "lib/gen": false, "a.tmp": true, "lib/a.tmp": true, "a.out": true, "lib/a.out": true, "lib/keep.out": false,
		"lib/top.txt": true,
	} {
		if got := Ignored(levels, path, false); got != want {
			t.Errorf("%s: ignored %v, want %v", path, got, want)
		}
	}
}

// TestIgnoredAsGit compares with git.
func TestIgnoredAsGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	run := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) { // 1: none is ignored
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	run("", "init", "-q")
	paths := []string{
		"a", "b", "a/b", "a/b/c", "b/a", "x.log", "a/x.log", "a/b/x.log", "c/a/b", "{a,b}", "a{b}", "#a", "!a", "a ", "aXb", "a.b.c", "ab", "a/bb/c", "a/c",
	}
	for _, rules := range []string{
		"a", "/a", "a/b", "/a/b", "*.log", "a/*.log", "**/b", "a/**", "a/**/c", "**/a/b", "*", "*\n!a", "?", "[ab]", "[!a]", "[^a]", "[a-b]b",
		"{a,b}", "a{b}", `\#a`, `\!a`, `a\ `, "a ", "a*b", "a**b", "*.b.*", "**", "/**", "a//b", "!a", "*/b", "/*/b", `a\b`, "a/*/c",
	} {
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out := run(strings.Join(paths, "\x00")+"\x00", "check-ignore", "-z", "--no-index", "--stdin")
		want := map[string]bool{}
		for p := range strings.SplitSeq(out, "\x00") {
			want[p] = true
		}
		levels := []Level{{Rules: Parse(rules)}}
		for _, p := range paths {
			if got := ignoredWithParents(levels, p); got != want[p] {
				t.Errorf("%q: %q ignored %v, git says %v", rules, p, got, want[p])
			}
		}
	}
}

// ignoredWithParents checks a file's directories first, as a walk does.
func ignoredWithParents(levels []Level, p string) bool {
	for i := range p {
		if p[i] == '/' && Ignored(levels, p[:i], true) {
			return true
		}
	}
	return Ignored(levels, p, false)
}

func FuzzIgnored(f *testing.F) {
	f.Add("*.log\n!x.log", "a/x.log", true)
	f.Add("a/**\n/b/\n[", "b", false)
	f.Add(`{a\{,**/}`, "a{", false)
	f.Fuzz(func(t *testing.T, rules, p string, dir bool) {
		got := Ignored([]Level{{Rules: Parse(rules)}}, p, dir)
		// A last rule that negates everything overrides all others.
		if Ignored([]Level{{Rules: Parse(rules + "\n!*\n")}}, "x"+strings.ReplaceAll(p, "/", ""), dir) {
			t.Error("the last rule did not decide")
		}
		if none := Ignored([]Level{{Rules: Parse("#" + strings.ReplaceAll(rules, "\n", ""))}}, p, dir); none {
			t.Errorf("a comment ignores %q (the Rules: %v)", p, got)
		}
	})
}
