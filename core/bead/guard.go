package bead

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/lazy"
)

// The kinds of what a guard finds.
const (
	testChanged     = "test-changed"
	testRemoved     = "test-removed"
	testSkipped     = "test-skipped"
	criteriaChanged = "criteria-changed"
)

var (
	testName = lazy.Regexp(`(^|/)(__tests__|tests?|specs?|testdata|__snapshots__)/|(_test|_spec|Tests?|IT)\.[A-Za-z]+$|\.(test|spec|cy)\.[A-Za-z]+$|(^|/)(test_[^/]*\.py|conftest\.py|Test[^/]*\.java)$`)
	// testBegin finds the line that begins a test.
	testBegin = lazy.Regexp(`^\s*(func (\([^)]*\) )?(Test|Benchmark|Fuzz|Example)\w*\(|(async )?def test\w*\(|class Test\w*|(it|test|describe)(\.each\(.*\))?\(|@(Parameterized)?Test\b|#\[(tokio::)?test|TEST(_F|_P)?\()`)
	// skips finds what keeps tests from running.
	skips = lazy.Regexp(`\b[tbf]\.Skip(f|Now)?\(|testing\.Short\(\)|^\s*//go:build|^\s*// \+build|pytest\.(mark\.)?(skip|xfail)|unittest\.(skip|expectedFailure)|\bskipTest\(|\b(it|test|describe|context)\.(skip|todo|only|failing)\b|^\s*x(it|test|describe)\(|@(Disabled|Ignore)\b|#\[ignore|GTEST_SKIP|\bDISABLED_|func TestMain\(|\bos\.(_exit|Exit)\(|sys\.exit\(|process\.exit\(|pytest_(collection|ignore|runtest)\w*|collect_ignore`)
	// quits finds package code that ends a test's process.
	quits = lazy.Regexp(`(?s)func init\(\).*os\.Exit\(`)
)

// isTest reports whether a path is that of a test, or of what tests read.
func isTest(name string) bool { return testName().MatchString(name) }

// guardTests finds tests that were there in the beginning and are not as they were,
// and new files that keep tests from running.
func guardTests(files []event.FileChange) (found []event.Guard) {
	add := func(kind, name, detail string) {
		found = append(found, event.Guard{Kind: kind, Path: name, Detail: detail})
	}
	for _, f := range files {
		added, removed := lines(f.Diff)
		skip := first(added, skips().MatchString)
		inline := missing(removed, added)
		switch test := isTest(f.Path); {
		case f.From != "" && isTest(f.From):
			add(testRemoved, f.From, "renamed to "+f.Path)
		case f.Kind == "delete" && test:
			add(testRemoved, f.Path, "")
		case f.Kind == "create" && test && (skip != "" || path.Base(f.Path) == "conftest.py"):
			add(testSkipped, f.Path, skip)
		case f.Kind == "create":
			if quits().MatchString(strings.Join(added, "\n")) {
				add(testSkipped, f.Path, "it ends the process")
			}
		case inline != "" && (test || strings.HasSuffix(f.Path, ".rs")):
			add(testRemoved, f.Path, inline)
		case skip != "" && (test || strings.HasSuffix(f.Path, ".rs") && strings.Contains(skip, "#[ignore")):
			add(testSkipped, f.Path, skip)
		case test && !f.Dir:
			add(testChanged, f.Path, "")
		case quits().MatchString(strings.Join(added, "\n")):
			add(testSkipped, f.Path, "it ends the process")
		}
	}
	return found
}

// lines returns the lines that a diff adds and removes.
func lines(diff string) (added, removed []string) {
	for l := range strings.Lines(diff) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
		case strings.HasPrefix(l, "+"):
			added = append(added, l[1:])
		case strings.HasPrefix(l, "-"):
			removed = append(removed, l[1:])
		}
	}
	return added, removed
}

// missing returns the first line of removed that begins a test which no line of added
// begins, or "".
func missing(removed, added []string) string {
	begun := map[string]int{}
	for _, l := range added {
		begun[testBegin().FindString(l)]++
	}
	return first(removed, func(l string) bool {
		key := testBegin().FindString(l)
		begun[key]--
		return key != "" && begun[key] < 0
	})
}

// first returns the first line that matches, without space around it, or "".
func first(lines []string, match func(string) bool) string {
	if i := slices.IndexFunc(lines, match); i >= 0 {
		return strings.TrimSpace(lines[i])
	}
	return ""
}

// config says which part of a configuration file decides what tests run.
type config struct {
	tools string // programs, as words of a command
	part  func(data []byte) string
}

// configs are the files by their names.
var configs = map[string]config{
	"package.json":   {"npm npx yarn pnpm bun jest vitest mocha node", packageScripts},
	".npmrc":         {"npm npx", whole},
	".mocharc.json":  {"npm npx yarn pnpm mocha", whole},
	"pytest.ini":     {"pytest python python3 tox", whole},
	"tox.ini":        {"pytest python python3 tox", whole},
	"setup.cfg":      {"pytest python python3 tox", whole},
	"pyproject.toml": {"pytest python python3 tox", sections("[tool.pytest", "[tool.tox")},
	"Cargo.toml":     {"cargo", matching("test", "harness", "members", "exclude", "[profile")},
	"Makefile":       {"make", whole},
	"makefile":       {"make", whole},
	"GNUmakefile":    {"make", whole},
	"justfile":       {"just", whole},
	"go.work":        {"go", whole},
	"go.mod":         {"go", func([]byte) string { return "" }}, // another one takes packages out of ./...
	"config.toml":    {"cargo", whole},
}

func whole(data []byte) string { return string(data) }

// packageScripts returns what package.json says of scripts and test runners.
func packageScripts(data []byte) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return string(data)
	}
	var out strings.Builder
	for _, k := range []string{"scripts", "jest", "vitest", "mocha", "ava", "workspaces"} {
		out.Write(all[k])
		out.WriteByte('\n')
	}
	return out.String()
}

// sections returns the sections of an INI or TOML file that begin so.
func sections(heads ...string) func([]byte) string {
	return func(data []byte) string {
		var out strings.Builder
		in := false
		for l := range strings.Lines(string(data)) {
			if strings.HasPrefix(l, "[") {
				in = slices.ContainsFunc(heads, func(h string) bool { return strings.HasPrefix(l, h) })
			}
			if in {
				out.WriteString(l)
			}
		}
		return out.String()
	}
}

// matching returns the lines that contain one of some words.
func matching(words ...string) func([]byte) string {
	return func(data []byte) string {
		var out strings.Builder
		for l := range strings.Lines(string(data)) {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(l, w) }) {
				out.WriteString(l)
			}
		}
		return out.String()
	}
}

var runnerConfig = lazy.Regexp(`^(jest|vitest|vite|karma|playwright|babel)\.config\.\w+$|^\.mocharc\.\w+$|\.mk$`)

// Seal returns the files that decide what the commands of criteria do, with hashes of
// what matters in them: scripts that a command names, and the configuration of its
// programs in the root, its .cargo, and the paths given besides.
func Seal(tree fs.FS, criteria []event.TaskCriterion, paths []string) map[string]string {
	sealed := map[string]string{}
	seal := func(name string, part func([]byte) string) {
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return // it is not there, or no file
		}
		sum := sha256.Sum256([]byte(part(data)))
		sealed[name] = hex.EncodeToString(sum[:8])
	}
	names := slices.Clone(paths)
	if entries, err := fs.ReadDir(tree, "."); err == nil {
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	names = append(names, ".cargo/config.toml")
	for _, c := range criteria {
		words := strings.FieldsFunc(c.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) })
		for _, name := range scripts(c.Command) {
			seal(name, whole)
		}
		for _, name := range names {
			base := path.Base(name)
			known, ok := configs[base]
			switch {
			case ok && uses(words, known.tools) && (base != "config.toml" || path.Base(path.Dir(name)) == ".cargo"):
				seal(name, known.part)
			case runnerConfig().MatchString(base) && len(words) > 0:
				seal(name, whole)
			}
		}
	}
	return sealed
}

// interpreters run the file that is their first argument.
const interpreters = "sh bash dash zsh ksh python python3 node deno bun tsx ruby perl php . source exec env time nice"

// scripts returns the files that a command runs.
func scripts(command string) (names []string) {
	for _, one := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune("\n;&|()`", r) }) {
		runs := true // the next word is a program
		for _, w := range strings.Fields(one) {
			w = strings.Trim(w, `'"`)
			switch {
			case w == "-f" || w == "--file" || w == "--config":
				runs = true
			case runs && slices.Contains(strings.Fields(interpreters), path.Base(w)):
			case w == "!" || strings.Contains(w, "=") || strings.HasPrefix(w, "-"):
			case runs:
				if clean := path.Clean(w); fs.ValidPath(clean) && clean != "." {
					names = append(names, clean)
				}
				runs = false
			}
		}
	}
	return names
}

// uses reports whether a command has one of some programs.
func uses(words []string, tools string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(strings.Fields(tools), path.Base(w)) })
}

// guardCriteria finds what a criterion's command runs and that is not as it was.
func guardCriteria(sealed, now map[string]string, changed []event.FileChange) (found []event.Guard) {
	names := slices.Collect(maps.Keys(sealed))
	names = append(names, slices.Collect(maps.Keys(now))...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, before := sealed[name]
		is, after := now[name]
		i := slices.IndexFunc(changed, func(f event.FileChange) bool { return f.Path == name })
		switch nested := strings.Contains(name, "/"); {
		case was == is && before == after:
			continue
		case !before && nested && i >= 0 && changed[i].Kind != "create" && partial(name): // nobody knows how it was
			continue
		case !before && i < 0: // it was there, but not looked at
			continue
		case !before && !nested && founds(name): // the command did not work without it
			continue
		}
		found = append(found, event.Guard{Kind: criteriaChanged, Path: name})
	}
	return found
}

// founds reports whether a file makes the root a project.
func founds(name string) bool {
	return slices.Contains([]string{"go.mod", "package.json", "Cargo.toml", "Makefile", "pyproject.toml"}, name)
}

// partial reports whether only a part of a file decides.
func partial(name string) bool {
	switch path.Base(name) {
	case "package.json", "Cargo.toml", "pyproject.toml", "go.mod":
		return true
	}
	return false
}
