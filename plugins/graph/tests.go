package graph

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Command runs tests. Args are its program and arguments, Dir the directory that
// it runs in, relative to the root.
type Command struct {
	Dir  string   `json:"dir"`
	Args []string `json:"args"`
}

// String returns the command as one would type it.
func (c Command) String() string {
	var b strings.Builder
	if c.Dir != "." && c.Dir != "" {
		b.WriteString("cd " + quote(c.Dir) + " && ")
	}
	for i, a := range c.Args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(a))
	}
	return b.String()
}

// quote quotes a text for a POSIX shell if it must be.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// testCommands returns the commands that run tests, one or more for each language.
func testCommands(tests []Affected) []Command {
	byLanguage := map[string][]*Affected{}
	for i := range tests {
		t := &tests[i]
		byLanguage[t.Language()] = append(byLanguage[t.Language()], t)
	}
	var all []Command
	for _, lang := range slices.Sorted(maps.Keys(byLanguage)) {
		list := byLanguage[lang]
		switch lang {
		case "go":
			all = append(all, goTest(list))
		case "python":
			all = append(all, byName(list, []string{"python3", "-m", "pytest", "-q"}, func(t *Affected) string {
				return t.File + "::" + strings.ReplaceAll(t.Name(), ".", "::")
			}))
		case "javascript":
			all = append(all, byName(list, []string{"npx", "--no-install", "jest"}, func(t *Affected) string { return t.File }))
		case "java":
			names := unique(list, func(t *Affected) string { class, _, _ := strings.Cut(t.Name(), "."); return class })
			all = append(all, Command{".", []string{"mvn", "-q", "test", "-Dtest=" + strings.Join(names, ",")}})
		case "rust":
			all = append(all, byName(list, []string{"cargo", "test", "--"}, func(t *Affected) string {
				return t.Name()[strings.LastIndex(t.Name(), ".")+1:]
			}))
		}
	}
	return all
}

func unique(tests []*Affected, name func(*Affected) string) []string {
	names := map[string]bool{}
	for _, t := range tests {
		names[name(t)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func byName(tests []*Affected, args []string, name func(*Affected) string) Command {
	return Command{".", append(args, unique(tests, name)...)}
}

// maxTestNames is the number of tests up to which a command names each; with more
// it runs all of their packages.
const maxTestNames = 40

// goTest returns one command for tests of any packages: names that other packages
// have, too, run there as well, which is no loss. Benchmarks are left out.
func goTest(tests []*Affected) Command {
	names, dirs := map[string]bool{}, map[string]bool{}
	for _, t := range tests {
		name, _, _ := strings.Cut(t.Name(), "~")
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		if dirs[path.Dir(t.File)] = true; len(names) <= maxTestNames {
			names[name] = true
		}
	}
	args := []string{"go", "test"}
	if len(names) <= maxTestNames {
		args = append(args, "-run", "^("+strings.Join(slices.Sorted(maps.Keys(names)), "|")+")$")
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if dir != "." {
			dir = "./" + dir
		}
		args = append(args, dir)
	}
	return Command{".", args}
}

// nearest returns the first n of a list.
func nearest[T any](list []T, n int) []T { return list[:min(n, len(list))] }
