package gitignore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClasses(t *testing.T) {
	for _, tt := range []struct{ rule, ignored, kept string }{
		{"[[:digit:]]*.log", "1.log|2x.log", "x.log|.log"},
		{"[[:upper:]][[:lower:]]", "Ab", "ab|AB"},
		{"x[[:space:][:punct:]]y", "x y|x-y|x_y", "xay|xy"},
		{"[![:alnum:]]", "-|_", "a|9"},
		{"[^[:alpha:]0-4]", "5|.", "a|3"},
		{"[[:xdigit:]-z]", "f|-|z", "g|y"},
		{"[[:nonsense:]]", "", "n|:|["},
		{"[[:alpha]", "a|:|[", "b"},
		{"[]-a]", "]|^|a", "b|\\"},
		{`[\]a]`, "]|a", `\`},
		{"[a-]", "a|-", "b"},
		{"[[-a]", "[|a|_", "b"},
		{`[\\-a]`, `\|a|]`, "b"},
	} {
		levels := []Level{{Rules: Parse(tt.rule)}}
		for names, want := range map[string]bool{tt.ignored: true, tt.kept: false} {
			for name := range strings.SplitSeq(names, "|") {
				if name != "" && Ignored(levels, name, false) != want {
					t.Errorf("%s: %q ignored %v", tt.rule, name, !want)
				}
			}
		}
	}
}

// TestRandomPatternsAsGit compares random patterns with git, each in a directory
// of its own, so that one process answers all.
func TestRandomPatternsAsGit(t *testing.T) {
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
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	random := func(parts []string, most int) string {
		var b strings.Builder
		for range 1 + rng.IntN(most) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		return b.String()
	}
	patterns := []string{
		"a", "b", "B", "0", "/", "/", "*", "**", "**/", "/**", "?", "[ab]", "[!a]", "[^b]", "[a-b]", "[[:alpha:]]", "[[:digit:][:upper:]]",
		"[![:space:]]", "[[:foo:]]", "[", "]", "-", "!", `\`, `\*`, "{", "}", ",", ":", " ", "é", "[[:punct:]-b]", "[]a]", "#",
	}
	names := []string{"a", "b", "B", "0", "ab", "/", "/", "-", "]", "[", " ", "é", "*", "!", "{", ":"}
	type question struct{ pattern, path string }
	var asked []question
	var stdin strings.Builder
	for i := range 1500 {
		pattern := random(patterns, 6)
		sub := fmt.Sprintf("d%d", i)
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, sub, ".gitignore"), []byte(pattern+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			name := strings.Trim(random(names, 6), "/")
			if name == "" || strings.Contains(name, "//") {
				continue
			}
			asked = append(asked, question{pattern, name})
			stdin.WriteString(sub + "/" + name + "\x00")
		}
	}
	ignored := map[string]bool{}
	for p := range strings.SplitSeq(run(stdin.String(), "check-ignore", "-z", "--no-index", "--stdin"), "\x00") {
		ignored[p] = true
	}
	for i, p := range strings.Split(strings.TrimSuffix(stdin.String(), "\x00"), "\x00") {
		q := asked[i]
		if got := ignoredWithParents([]Level{{Rules: Parse(q.pattern)}}, q.path); got != ignored[p] {
			t.Errorf("%q: %q ignored %v, git says %v", q.pattern, q.path, got, ignored[p])
		}
	}
}

// A hostile pattern ends soon.
func TestManyAsterisks(t *testing.T) {
	start := time.Now()
	for _, pattern := range []string{strings.Repeat("**/", 60) + "x", strings.Repeat("a*", 200) + "b", strings.Repeat("*a**", 100) + "/b"} {
		Ignored([]Level{{Rules: Parse(pattern)}}, strings.Repeat("a/", 200)+strings.Repeat("a", 200), false)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func FuzzWildmatch(f *testing.F) {
	f.Add("[[:alpha:]]*/**/b", "x/y/b")
	f.Add(`[\]-a][!a-`, "]")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ContainsAny(pattern, `*?[\`) {
			wildmatch(pattern, text, true)
			wildmatch(pattern, text, false)
			return
		}
		if got := wildmatch(pattern, text, true); got != (pattern == text) {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
	})
}
