package event

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Edit is a change of some lines of a file, with up to three lines around them.
type Edit struct {
	Path string `json:"path"`           // as the call names it
	Line int    `json:"line,omitempty"` // of the first line in the new text; 0 = there is none
	Kind string `json:"kind"`           // create, modify, delete
	Old  string `json:"old"`
	New  string `json:"new"`
}

// EditsOf returns the edits of one file from a unified diff.
func EditsOf(path, kind, unified string) []Edit {
	var list []Edit
	var before byte // how the line before began
	for line := range strings.SplitAfterSeq(unified, "\n") {
		switch {
		case strings.HasPrefix(line, "@@ "):
			list = append(list, Edit{Path: path, Kind: kind, Line: newLine(line)})
			continue
		case len(list) == 0 || line == "":
			continue
		}
		e := &list[len(list)-1]
		if line[0] == '\\' { // no newline at the end of the file
			if before != '+' {
				e.Old = strings.TrimSuffix(e.Old, "\n")
			}
			if before != '-' {
				e.New = strings.TrimSuffix(e.New, "\n")
			}
			continue
		}
		if before = line[0]; before != '+' {
			e.Old += line[1:]
		}
		if before != '-' {
			e.New += line[1:]
		}
	}
	return list
}

// newLine returns the number after + in "@@ -1,2 +3,4 @@".
func newLine(header string) int {
	_, after, _ := strings.Cut(header, "+")
	end := strings.IndexAny(after, ", ")
	if end < 0 {
		return 0
	}
	n, err := strconv.Atoi(after[:end])
	if err != nil {
		return 0
	}
	return n
}

// metaEdits is the key of Meta for [ToolResult.Edits].
const metaEdits = "edits"

// EditsMeta adds edits to the Meta of a call that changed files.
func EditsMeta(meta map[string]json.RawMessage, edits []Edit) {
	if text, err := json.Marshal(edits); err == nil && len(edits) > 0 && meta != nil {
		meta[metaEdits] = text
	}
}

// Edits returns what the call changed in files; empty if that is unknown or long.
func (b *ToolResult) Edits() (list []Edit) {
	if json.Unmarshal(b.Meta[metaEdits], &list) != nil {
		return nil
	}
	return list
}
