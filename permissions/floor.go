package permissions

import (
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// floor says why a command needs approval even in mode bypass: what it removes or
// runs is only known at run time. Empty if it does not.
func floor(c *shell.Command, line string) string {
	name := program(c.Argv[0])
	switch {
	case name == "rm" && len(c.Vague) > 0 && recursiveRemoval(c.Argv[1:]):
		return "removes directory trees only known at run time"
	case name == "xargs" || name == "parallel":
		if i := slices.IndexFunc(c.Argv, func(w string) bool { return program(w) == "rm" }); i > 0 && recursiveRemoval(c.Argv[i+1:]) {
			return "removes the directory trees that its input names"
		}
	case runsScripts(name):
		return unseenScript(c, line)
	}
	return ""
}

// runsScripts reports whether a program runs a script that it reads from its
// input if it has no operand.
func runsScripts(name string) bool {
	name = strings.TrimRight(name, "0123456789.-")
	return interprets(name) && !strings.HasSuffix(name, "awk")
}

// recursiveRemoval reports whether rm with these arguments removes directories.
func recursiveRemoval(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, "rR") || len(a) > 3 && strings.HasPrefix("--recursive", a)
	})
}

// unseenScript says that an interpreter runs what another command prints.
func unseenScript(c *shell.Command, line string) string {
	const why = "runs a script that another command prints"
	operands := 0
	for _, a := range c.Argv[1:] {
		switch {
		case strings.HasPrefix(a, "<("), strings.HasPrefix(a, "/dev/stdin"), strings.HasPrefix(a, "/dev/fd/"), strings.HasPrefix(a, "/proc/self/fd/"):
			return why
		case a == "-c" || a == "-e":
			return "" // its script is judged
		case a == "-s":
			return piped(c, line)
		case a != "-" && !strings.HasPrefix(a, "-"):
			operands++
		}
	}
	if operands > 0 {
		return ""
	}
	return piped(c, line)
}

// piped says that a command reads the output of another.
func piped(c *shell.Command, line string) string {
	if c.Offset > len(line) {
		return ""
	}
	before := strings.TrimSuffix(strings.TrimRight(line[:c.Offset], " \t\n\\"), "&")
	if i := strings.LastIndexAny(before, "|;\n({"); i >= 0 && before[i] == '|' && (i == 0 || before[i-1] != '|') && !strings.Contains(before[i:], "&&") {
		return "runs a script that another command prints"
	}
	return ""
}

// floorText is floor for a line that could not be analyzed, by its words.
func floorText(line string) string {
	line = strings.ReplaceAll(stripQuotes(line), "||", ";")
	for i, part := range strings.Split(line, "|") {
		words := strings.Fields(strings.TrimPrefix(part, "&"))
		if i > 0 && readsScript(words) || strings.Contains(part, "<(") && slices.ContainsFunc(words, func(w string) bool { return runsScripts(program(w)) }) {
			return "may run a script that another command prints"
		}
		for k, w := range words {
			if program(w) == "rm" && recursiveRemoval(words[k+1:]) && strings.ContainsAny(part, "$`") {
				return "removes directory trees only known at run time"
			}
		}
	}
	return ""
}

// readsScript reports whether the words of a command, perhaps behind those of a
// wrapper, run an interpreter on its input.
func readsScript(words []string) bool {
	i := slices.IndexFunc(words, func(w string) bool { return runsScripts(program(strings.TrimRight(w, ";&)"))) })
	if i < 0 {
		return false
	}
	for _, w := range words[i+1:] {
		if w == "-s" || strings.ContainsAny(w, ";&)<>") {
			return true
		}
		if !strings.HasPrefix(w, "-") {
			return false
		}
	}
	return true
}

// raise asks for a command that even mode bypass asks for.
func (f *finding) raise(why string) {
	if why != "" && f.verdict == core.Allow {
		f.verdict, f.step, f.rule, f.why = core.Ask, byUnclear, nil, why
	}
}
