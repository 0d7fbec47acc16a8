package conversation

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// The limits of what Recent returns.
const (
	recentFiles      = 50
	recentErrors     = 5
	recentErrorBytes = 4000
)

// Recent returns the paths that tools were given since the last input, and the
// texts of those that failed, the newest last. It is called before the next input
// is added.
func (c *Conversation) Recent() (files, errors []string) {
	for _, m := range slices.Backward(c.messages) {
		if m.Role == model.RoleUser {
			break
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case model.ToolCall:
				for _, name := range paths(p.Args) {
					if !slices.Contains(files, name) && len(files) < recentFiles {
						files = append(files, name)
					}
				}
			case model.ToolResult:
				if text := p.Content.Text(); p.IsError && text != "" && len(errors) < recentErrors {
					errors = append(errors, strings.ToValidUTF8(text[max(0, len(text)-recentErrorBytes):], ""))
				}
			}
		}
	}
	slices.Reverse(errors)
	return files, errors
}

// paths returns the paths in a tool's arguments, by the usual names for them, and
// those that a patch names.
func paths(args string) []string {
	var values map[string]any
	if json.Unmarshal([]byte(args), &values) != nil {
		return nil
	}
	var list []string
	for _, key := range []string{"path", "file_path", "filename", "file", "paths", "files"} {
		switch v := values[key].(type) {
		case string:
			list = append(list, v)
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					list = append(list, s)
				}
			}
		}
	}
	for _, key := range []string{"patch", "input"} {
		text, _ := values[key].(string)
		for line := range strings.Lines(text) {
			for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"} {
				if name, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
					list = append(list, name)
				}
			}
		}
	}
	return list
}
