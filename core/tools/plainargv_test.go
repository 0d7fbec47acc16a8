package tools

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestPlainArgv(t *testing.T) {
	plain := map[string][]string{
		"ls":                          {"ls"},
		"  go  test ./... ":           {"go", "test", "./..."},
		"git commit -m 'a $b `c` \"'": {"git", "commit", "-m", "a $b `c` \""},
		"grep ''":                     {"grep", ""},
		"a'b c'd":                     {"ab cd"},
		"make CC=gcc":                 {"make", "CC=gcc"},
		"echo 100%,a:b@c+d_e-f/g":     {"echo", "100%,a:b@c+d_e-f/g"},
		"rg 'é *.go'":                 {"rg", "é *.go"},
		"env if then":                 {"env", "if", "then"},
	}
	for script, want := range plain {
		if got, ok := plainArgv(script); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", script, got, ok, want)
		}
	}
	for _, script := range []string{
		"", " ", "''", "'a", "a\tb", "a\nb", "a;b", "a&", "a|b", "a>b", "a<b", "a&&b", "$a", "a $b", "`a`", `a\b`, `"a"`, "~", "a ~/b", "a *", "a ?", "a [b]",
		"{a,b}", "a {b,c}", "!a", "a !", "#a", "a #b", "(a)", "a ^b", "a=b", "a=b c", "a+=b c", "'a=b' c", "%1", "a 'b\nc'", "a 'b\x1b[2J'", "a 'b\u202ec'",
		"a 'b\u200bc'", "a \xff", "a 'b\xff'", "é", "a\x00b", "a\rb", strings.Repeat("a", 10_001),
		"if a", "for", "while", "time a", "[[ a ]]", "function f", "coproc a", ". a", "source a", "eval a", "exec a", "command a", "builtin a", "'eval' a", "e'va'l a",
		"cd a", "export a", "set a", "unset a", "trap a", "alias a", "test -v a", "printf -v a b", "let a", "read a", "kill 1", "enable a", "hash a",
	} {
		if got, ok := plainArgv(script); ok || got != nil {
			t.Errorf("%q: %q, want none", script, got)
		}
	}
}

// FuzzPlainArgv compares the words with bash's.
func FuzzPlainArgv(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("bash is not installed")
	}
	for _, script := range []string{
		"go test ./...", "a'b c'd ''", "x a=b %1 @+,:-", "git log --format='%h %s'", "a 'é$(x)`y`\\'", "echo a=~", "a -n", "a 'b'\"c\"", "a :~", "a a=b:~",
	} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		want, ok := plainArgv(script)
		if !ok {
			return
		}
		if got := bashWords(t.Context(), t, bash, script); !slices.Equal(got, want) {
			t.Errorf("%q: %q, bash has %q", script, want, got)
		}
	})
}

// bashWords returns the arguments that bash passes to a program started with the
// words of script.
func bashWords(ctx context.Context, t *testing.T, bash, script string) []string {
	out, err := exec.CommandContext(ctx, bash, "--norc", "-c", `printf '%s\0' `+script).Output()
	if err != nil {
		t.Fatalf("bash on %q: %v", script, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}
