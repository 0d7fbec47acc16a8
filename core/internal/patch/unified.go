package patch

import (
	"slices"
	"strings"
)

// nowhere is the file that one side of a unified diff has when it is added or
// deleted.
const nowhere = "/dev/null"

// isUnified reports whether the lines are those of a unified diff, as git prints it.
func isUnified(lines []string) bool {
	v4a := func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "*** ") }
	return !slices.ContainsFunc(lines, v4a) && slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "rename from ")
	})
}

// fromUnified turns the headers of a unified diff into those of a patch, line by
// line. Lines that say nothing more become empty.
func fromUnified(lines []string) []string {
	out := make([]string, len(lines))
	begun, renamed, op := false, false, Update
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		from, ok := strings.CutPrefix(line, "--- ")
		to, pair := strings.CutPrefix(append(lines[i:], "", "")[1], "+++ ")
		switch {
		case ok && pair:
			from, to = unifiedPaths(from, to)
			begun, op = true, Update
			switch {
			case from == nowhere:
				op, out[i+1] = Add, addFile+to
			case to == nowhere:
				op, out[i+1] = Delete, deleteFile+from
			case renamed:
			case from == to:
				out[i+1] = updateFile + to
			default:
				out[i], out[i+1] = updateFile+from, moveTo+to
			}
			i, renamed = i+1, false
		case strings.HasPrefix(line, "rename from "):
			begun, op, out[i] = true, Update, updateFile+strings.TrimPrefix(line, "rename from ")
		case strings.HasPrefix(line, "rename to "):
			renamed, out[i] = true, moveTo+strings.TrimPrefix(line, "rename to ")
		case strings.HasPrefix(line, "diff "):
			renamed = false
		case !begun || op == Delete || unifiedNoise(line):
		case op == Add && !strings.HasPrefix(line, "+"):
		default:
			out[i] = line
		}
	}
	return out
}

// unifiedNoise reports whether a line between files says nothing about their content.
func unifiedNoise(line string) bool {
	return slices.ContainsFunc([]string{"diff ", "index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ", "similarity index ", "```"},
		func(prefix string) bool { return strings.HasPrefix(line, prefix) })
}

// unifiedPaths returns the two paths of a header, without times and the prefixes
// of git.
func unifiedPaths(from, to string) (string, string) {
	from, _, _ = strings.Cut(from, "\t")
	to, _, _ = strings.Cut(to, "\t")
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	a, ok := strings.CutPrefix(from, "a/")
	b, ok2 := strings.CutPrefix(to, "b/")
	if (ok || from == nowhere) && (ok2 || to == nowhere) {
		return a, b
	}
	return from, to
}
