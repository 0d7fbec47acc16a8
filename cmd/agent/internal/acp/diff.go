package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/preview"
)

// diffOf returns a diff of a file: absent texts are those of a file that is new, or
// deleted.
func diffOf(path, before, after string) protocol.ToolCallContent {
	return protocol.ToolCallContent{Tag: "diff", Value: &protocol.Diff{Path: path, OldText: before, NewText: after}}
}

// diffs returns what a successful call changed, as far as its result says: the
// watched changes come later.
func (s *session) diffs(use event.ToolUse, b event.ToolResult) []protocol.ToolCallContent {
	if b.IsError {
		return nil
	}
	var unified string
	if json.Unmarshal(b.Meta["diff"], &unified) == nil {
		return hunks(unified, func(name string) string {
			name = filepath.FromSlash(name[min(len("a/"), len(name)):]) // the names of absolute paths have no slash before
			if abs := string(filepath.Separator) + name; strings.Contains(use.Args, abs) {
				return abs
			}
			return s.absolute(name)
		})
	}
	var in struct {
		FilePath string `json:"file_path"`
		Content  string `json:"content"`
	}
	if use.Name == "write_file" && json.Unmarshal([]byte(use.Args), &in) == nil && in.FilePath != "" {
		return []protocol.ToolCallContent{diffOf(s.absolute(in.FilePath), "", in.Content)}
	}
	return nil
}

// showChanges shows what a call changed in files.
func (s *session) showChanges(id string, c *call, b event.FilesChanged) {
	var list []protocol.ToolCallContent
	for _, f := range b.Files {
		if f.Diff != "" {
			path := filepath.Join(b.Root, filepath.FromSlash(f.Path))
			list = append(list, hunks(f.Diff, func(string) string { return path })...)
		}
	}
	if len(list) == 0 {
		return
	}
	content := c.content
	if kindOf(c.use.Name) == protocol.ToolKindEdit {
		content = nil // the diff says it all
	}
	u := &protocol.ToolCallUpdate{ToolCallID: id, Content: slices.Concat(content, list)}
	if !c.located {
		for _, d := range list {
			path := d.Value.(*protocol.Diff).Path
			if !slices.ContainsFunc(u.Locations, func(l protocol.ToolCallLocation) bool { return l.Path == path }) {
				u.Locations = append(u.Locations, protocol.ToolCallLocation{Path: path})
			}
		}
	}
	s.update("tool_call_update", u)
}

// hunks returns the hunks of a diff in the unified format, each as the old and the
// new lines. The name of a file in the diff is resolved by pathOf.
func hunks(unified string, pathOf func(name string) string) (list []protocol.ToolCallContent) {
	var path string
	var before, after strings.Builder
	olds, news := 0, 0 // lines of the hunk that are to come
	var last byte
	end := func() {
		if path != "" && before.Len()+after.Len() > 0 {
			list = append(list, diffOf(path, before.String(), after.String()))
		}
		before.Reset()
		after.Reset()
	}
	for line := range strings.Lines(unified) {
		switch {
		case line[0] == '\\': // no newline at the end of the last line
			trim(&before, last != '+')
			trim(&after, last != '-')
		case olds+news == 0 && strings.HasPrefix(line, "@@ "):
			end()
			olds, news = sizes(line)
		case olds+news == 0 && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")):
			end()
			name, _, _ := strings.Cut(strings.TrimRight(line[4:], "\n"), "\t")
			if name != "/dev/null" {
				path = pathOf(name)
			}
		case olds+news == 0:
		case line[0] == '-':
			olds--
			before.WriteString(line[1:])
		case line[0] == '+':
			news--
			after.WriteString(line[1:])
		default:
			olds, news = olds-1, news-1
			common := strings.TrimPrefix(line, " ")
			before.WriteString(common)
			after.WriteString(common)
		}
		last = line[0]
	}
	end()
	return list
}

// sizes returns the numbers of old and new lines in the head of a hunk.
func sizes(head string) (olds, news int) {
	fields := strings.Fields(head)
	size := func(i int, sign string) int {
		if i >= len(fields) {
			return 0
		}
		_, count, ok := strings.Cut(strings.TrimPrefix(fields[i], sign), ",")
		n, err := strconv.Atoi(count)
		if !ok || err != nil {
			return 1
		}
		return n
	}
	return size(1, "-"), size(2, "+")
}

// trim removes the newline at the end.
func trim(b *strings.Builder, when bool) {
	if when {
		t := strings.TrimSuffix(b.String(), "\n")
		b.Reset()
		b.WriteString(t)
	}
}

// previews returns what a call would change.
func previews(changes []preview.Change) (list []protocol.ToolCallContent) {
	for _, c := range changes {
		list = append(list, diffOf(c.At, string(c.Before), string(c.After)))
	}
	return list
}
