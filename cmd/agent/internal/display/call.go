package display

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
)

// Arguments formats the arguments of a tool call in one line of at most width
// columns: only the most important one, if it is known, with paths relative to
// dir.
func Arguments(args, dir string, width int) string {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &m) != nil {
		return OneLine(args, width)
	}
	for _, key := range []string{"command", "file_path", "pattern", "path", "url", "query", "task", "question", "name"} {
		var s string
		if json.Unmarshal(m[key], &s) == nil && s != "" {
			return OneLine(Local(s, dir), width)
		}
	}
	var patch, plan string
	switch {
	case len(m) == 0:
		return ""
	case json.Unmarshal(m["patch"], &patch) == nil && patch != "":
		return OneLine(Local(patchedFiles(patch), dir), width)
	case json.Unmarshal(m["plan"], &plan) == nil && plan != "":
		title, _, _ := strings.Cut(strings.TrimSpace(plan), "\n")
		return OneLine(strings.TrimLeft(title, "# "), width)
	}
	return OneLine(Local(pairs(args, len(m)), dir), width)
}

// pairs formats an object of n values as "name: value, name: value", and a single
// string as it is.
func pairs(object string, n int) string {
	dec := json.NewDecoder(strings.NewReader(object))
	_, _ = dec.Token() // {
	var out []string
	for dec.More() {
		var value json.RawMessage
		name, _ := dec.Token()
		if dec.Decode(&value) != nil {
			return object
		}
		text := string(value)
		if err := json.Unmarshal(value, &text); n > 1 || err != nil {
			text = fmt.Sprintf("%s: %s", name, text)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// patchedFiles lists the files of a patch.
func patchedFiles(patch string) string {
	var files []string
	for line := range strings.SplitSeq(patch, "\n") {
		if _, file, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(line, "*** ") {
			files = append(files, strings.TrimSpace(file))
		}
	}
	return strings.Join(files, ", ")
}

// CommandFailed reports whether a result is from a command with a non-zero exit
// code.
func CommandFailed(b event.ToolResult) bool {
	var exit struct {
		ExitCode int `json:"exitCode"`
	}
	return b.Name == "shell" && json.Unmarshal(b.Structured, &exit) == nil && exit.ExitCode != 0
}

// Local makes paths below dir relative in text; dir may be empty.
func Local(text, dir string) string {
	switch dir {
	case "":
		return text
	case text:
		return "."
	}
	return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
}
