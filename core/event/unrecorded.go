package event

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// Unrecorded returns the result as it is logged if it may contain what is in
// sensitive files: the paths, and the size instead of the content.
func (b ToolResult) Unrecorded(paths []string) ToolResult {
	size := 0
	for _, p := range b.Content {
		switch p := p.(type) {
		case model.Text:
			size += len(p.Text)
		case model.Image:
			size += max(p.Bytes, len(p.Data))
		}
	}
	if b.Output != nil {
		size = int(b.Output.Bytes)
	}
	b.Content = model.TextParts(fmt.Sprintf("[%d bytes are not recorded, because they may contain secrets of %s]", size, strings.Join(paths, ", ")))
	b.Output, b.Structured, b.Bytes = nil, nil, int64(size)
	if level := b.Sandbox(); level != "" {
		b.Meta = SandboxMeta(level)
	} else {
		b.Meta = nil
	}
	return b
}

// TextOfArgs returns the text of a call's arguments that may contain secrets: without
// the names of the sensitive files.
func TextOfArgs(args string, paths []string) string {
	args = strings.ReplaceAll(args, `\n`, "\n")
	for _, p := range paths {
		args = strings.ReplaceAll(args, path.Base(strings.ReplaceAll(p, `\`, "/")), "")
	}
	return args
}

// UnrecordedArgs returns arguments of a call that writes sensitive files as they
// are logged: all texts but the paths are replaced by their size.
func UnrecordedArgs(args string, paths []string) string {
	var value any
	if json.Unmarshal([]byte(args), &value) != nil {
		return "{}" // the call failed
	}
	out, err := json.Marshal(withoutTexts(value, paths))
	if err != nil { // cannot happen: it was JSON
		return "{}"
	}
	return string(out)
}

const notRecorded = " are not recorded"

// LacksSecrets reports whether recorded arguments may lack what the model sent: the
// content of sensitive files, or secrets.
func LacksSecrets(args string) bool {
	return strings.Contains(args, notRecorded+"]") || strings.Contains(args, "[redacted]")
}

func withoutTexts(value any, paths []string) any {
	switch v := value.(type) {
	case string:
		name := path.Clean(strings.ReplaceAll(v, `\`, "/"))
		if v == "" || slices.ContainsFunc(paths, func(p string) bool {
			p = strings.ReplaceAll(p, `\`, "/")
			return p == name || strings.HasSuffix(p, "/"+strings.TrimPrefix(name, "~/"))
		}) {
			return v
		}
		return fmt.Sprintf("[%d bytes%s]", len(v), notRecorded)
	case []any:
		for i := range v {
			v[i] = withoutTexts(v[i], paths)
		}
	case map[string]any:
		for key := range v {
			v[key] = withoutTexts(v[key], paths)
		}
	}
	return value
}
