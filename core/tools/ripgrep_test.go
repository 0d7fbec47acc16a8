package tools_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

// grepPatterns are searched for in the standard library with grep and ripgrep.
// Some turn off ripgrep's Unicode mode, because \w, \d, \s and \b are ASCII in
// Go.
var grepPatterns = []struct {
	name, pattern string
	fold, ascii   bool
	literal       bool // every match contains a fixed text
}{
	{name: "word", pattern: `ErrUnexpectedEOF`, literal: true},
	{name: "call", pattern: `func \(.*\) Close\(\)`, literal: true},
	{name: "two words", pattern: `sync\.Mutex|atomic\.Int64`, literal: true},
	{name: "any case", pattern: `deadline exceeded`, fold: true, literal: true},
	{name: "k and s in any case", pattern: `sticky keys|mask`, fold: true, literal: true},
	{name: "start", pattern: `^package http$`, literal: true},
	{name: "identifier", pattern: `\bnew[A-Z]\w+\(`, ascii: true, literal: true},
	{name: "beyond ASCII", pattern: `世界|naïve`, literal: true},
	{name: "no literal", pattern: `[A-Z]{3,}_[A-Z]{3,}\s*=`, ascii: true},
	{name: "number", pattern: `\b0x[0-9a-f]{12,}\b`, ascii: true},
	{name: "repeated", pattern: `(if|for) .*\{ (return|break) `, ascii: true},
	{name: "digits", pattern: `\d{9}`, ascii: true},
	{name: "any line end", pattern: `\}\)\)\)$`},
	{name: "in order", pattern: `a.*b.*c.*d.*e`, ascii: true},
}

// TestGrepAgreesWithRipgrep searches a tree with both and compares each line.
func TestGrepAgreesWithRipgrep(t *testing.T) {
	rg := ripgrep(t)
	library := standardLibrary(t)
	trees := map[string]string{
		"net": filepath.Join(library, "net"), "go command": filepath.Join(library, "cmd", "go"), "ignored files": ignoredTree(t),
	}
	for name, dir := range trees {
		t.Run(name, func(t *testing.T) {
			where := at(t, dir)
			for _, p := range grepPatterns {
				compareGrep(t, rg, where, dir, p.pattern, p.fold, p.ascii)
			}
			compareGrep(t, rg, where, dir, `needle`, true, false)
		})
	}
}

// ignoredTree is a tree with files that git ignores in various ways.
func ignoredTree(t *testing.T) string {
	t.Helper()
	_, dir := local(t, map[string]string{
		".git/config":         "needle\n",
		".git/info/exclude":   "excluded/\n",
		".gitignore":          "*.log\n/build/\nfoo/**/bar\n!important.log\ndeep/*\n!deep/kept\n\\#odd\nspace\\ \n**/logs\nabc/**\n[ab].txt\n",
		".hidden/needle":      "needle\n",
		"a.log":               "needle\n",
		"important.log":       "needle\n",
		"build/x":             "needle\n",
		"sub/build/x":         "needle\n",
		"foo/bar":             "needle\n",
		"foo/1/2/bar":         "needle\n",
		"foo/1/2/baz":         "needle\n",
		"deep/dropped/x":      "needle\n",
		"deep/kept/x":         "needle\nNEEDLE\n",
		"#odd":                "needle\n",
		"space ":              "needle\n",
		"x/logs/y":            "needle\n",
		"abc/x/y":             "needle\n",
		"a.txt":               "needle\n",
		"c.txt":               "needle\r\nno\r\nNeedle, again\r\n",
		"excluded/x":          "needle\n",
		"inner/.gitignore":    "!*.log\nown\n",
		"inner/b.log":         "needle\n",
		"inner/own":           "needle\n",
		"inner/deeper/own":    "needle\n",
		"inner/build/x":       "needle",
		"empty":               "",
		"binary":              "needle\x00needle\n",
		"quite/a/long/way/to": strings.Repeat("hay\n", 5000) + "the needle" + strings.Repeat("\nhay", 9),
	})
	return dir
}

func compareGrep(t *testing.T, rg string, where *env.Local, dir, pattern string, fold, ascii bool) {
	t.Helper()
	_, got := run(t, tools.Grep(), where, args{"pattern": pattern, "case_insensitive": fold, "max_results": 10_000, "output_mode": "count"})
	ours := strings.Split(got, "\n")
	if strings.HasPrefix(got, "No matches") {
		ours = nil
	}
	theirs := ripgrepLines(t, rg, dir, pattern, fold, ascii, "--count")
	slices.Sort(ours)
	if !slices.Equal(ours, theirs) {
		t.Errorf("%s: matching lines by file differ:\n%s", pattern, difference(ours, theirs))
	}
	_, got = run(t, tools.Grep(), where, args{"pattern": pattern, "case_insensitive": fold, "max_results": 10_000})
	if strings.HasSuffix(got, ")") && strings.Contains(got, "are shown. ") {
		return // counted above
	}
	ours = nil
	for line := range strings.SplitSeq(got, "\n") {
		if !strings.HasPrefix(got, "No matches") {
			ours = append(ours, placeOf(line))
		}
	}
	theirs = ripgrepLines(t, rg, dir, pattern, fold, ascii, "--line-number", "--no-heading")
	for i, line := range theirs {
		theirs[i] = placeOf(line)
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if !slices.Equal(ours, theirs) {
		t.Errorf("%s: lines differ:\n%s", pattern, difference(ours, theirs))
	}
}

// placeOf returns the "file:line:" of a line; the texts are clipped differently.
func placeOf(line string) string {
	parts := strings.SplitN(line, ":", 3)
	return strings.Join(parts[:min(2, len(parts))], ":")
}

func difference(ours, theirs []string) string {
	var b strings.Builder
	for _, side := range []struct {
		name       string
		have, miss []string
	}{{"only grep", ours, theirs}, {"only ripgrep", theirs, ours}} {
		n := 0
		for _, line := range side.have {
			if !slices.Contains(side.miss, line) && n < 5 {
				fmt.Fprintf(&b, "  %s: %s\n", side.name, line)
				n++
			}
		}
	}
	return b.String()
}

// ripgrepArgs make ripgrep search the same files as grep.
func ripgrepArgs(pattern string, fold, ascii bool, more ...string) []string {
	list := append([]string{
		"--no-config", "--hidden", "--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git",
		"--max-filesize=4M", "--crlf", "--no-messages", "--with-filename", "--color=never",
	}, more...)
	if fold {
		list = append(list, "--ignore-case")
	}
	if ascii {
		list = append(list, "--no-unicode")
	}
	return append(list, "--regexp="+pattern)
}

// ripgrepLines returns what ripgrep prints, sorted.
func ripgrepLines(t *testing.T, rg, dir, pattern string, fold, ascii bool, more ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), rg, ripgrepArgs(pattern, fold, ascii, more...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(out), "\r\n", "\n") // --crlf writes them
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(lines)
	return lines
}

// BenchmarkGrepStandardLibrary searches the whole standard library for each
// pattern, with grep and, for comparison, with ripgrep.
func BenchmarkGrepStandardLibrary(b *testing.B) {
	dir := standardLibrary(b)
	where := at(b, dir)
	for _, p := range grepPatterns {
		name := strings.ReplaceAll(p.name, " ", "-")
		if p.literal {
			name += "-literal"
		}
		b.Run(name+"/grep", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, got := run(b, tools.Grep(), where, args{"pattern": p.pattern, "case_insensitive": p.fold, "output_mode": "count", "max_results": 10_000}); got == "" {
					b.Fatal("nothing found")
				}
			}
		})
		b.Run(name+"/ripgrep", func(b *testing.B) {
			rg := ripgrep(b)
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), rg, ripgrepArgs(p.pattern, p.fold, p.ascii, "--count")...)
				cmd.Dir = dir
				if out, err := cmd.Output(); err != nil || len(out) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}

func ripgrep(tb testing.TB) string {
	tb.Helper()
	rg, err := exec.LookPath("rg")
	if err != nil {
		tb.Skip("ripgrep (rg) is not installed")
	}
	return rg
}

func standardLibrary(tb testing.TB) string {
	tb.Helper()
	root, err := exec.CommandContext(tb.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(root)), "src"))
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

func at(tb testing.TB, dir string) *env.Local {
	tb.Helper()
	where, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := where.Close(); err != nil {
			tb.Error(err)
		}
	})
	return where
}
