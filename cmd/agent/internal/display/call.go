package display

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
)

// Arguments shows the arguments of a call in one line of at most width columns:
// the telling one, where there is such, with paths relative to dir.
func Arguments(args, dir string, width int) string {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &m) != nil {
		return OneLine(args, width)
	}
	for _, key := range []string{"command", "file_path", "pattern", "path", "url", "query", "task", "name"} {
		var s string
		if json.Unmarshal(m[key], &s) == nil && s != "" {
			return OneLine(Local(s, dir), width)
		}
	}
	var patch string
	switch {
	case len(m) == 0:
		return ""
	case json.Unmarshal(m["patch"], &patch) == nil && patch != "":
		return OneLine(Local(patchedFiles(patch), dir), width)
	}
	return OneLine(args, width)
}

// patchedFiles lists the files that a patch names.
func patchedFiles(patch string) string {
	var files []string
	for line := range strings.SplitSeq(patch, "\n") {
		if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
			files = append(files, strings.TrimSpace(file))
		}
	}
	return strings.Join(files, ", ")
}

// CommandFailed reports whether the result is that of a command that failed.
func CommandFailed(b event.ToolResult) bool {
	var exit struct {
		ExitCode int `json:"exitCode"`
	}
	return b.Name == "shell" && json.Unmarshal(b.Structured, &exit) == nil && exit.ExitCode != 0
}

// Local shortens the paths in text that lie below dir, "" for none.
func Local(text, dir string) string {
	switch dir {
	case "":
		return text
	case text:
		return "."
	}
	return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
}
