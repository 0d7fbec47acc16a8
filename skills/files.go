package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

// files are the files of a conversation: named by the user or passed to a tool.
// They are never removed, even if compaction drops their mention.
type files struct {
	dir    string // of the session
	exists func(ctx context.Context, path string) bool
	known  map[string]bool    // absolute, clean, with slashes
	calls  map[[2]string]bool // calls already examined, by ID and arguments
}

func newFiles(dir string, exists func(context.Context, string) bool) *files {
	return &files{dir: path.Clean(cmp.Or(slashed(dir), "/")), exists: exists, known: map[string]bool{}, calls: map[[2]string]bool{}}
}

// slashed converts backslashes, independent of the system.
func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

func (f *files) absolute(p string) string {
	if p = slashed(p); strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' {
		return path.Clean(p)
	}
	return path.Join(f.dir, p)
}

func (f *files) add(p string) {
	if p != "" && len(p) < 4096 {
		f.known[f.absolute(p)] = true
	}
}

// about reports whether a skill's Paths match one of the files.
func (f *files) about(s *Skill) bool {
	base := strings.TrimSuffix(path.Join(f.dir, s.Base), "/") + "/"
	for _, glob := range s.Paths {
		glob = cleanGlob(glob)
		for at := range f.known {
			if rel, ok := strings.CutPrefix(at, base); ok && doublestar.MatchUnvalidated(glob, rel) {
				return true
			}
		}
	}
	return false
}

// Bounds of globs: alternatives multiply the cost of matching.
const (
	maxGlobs  = 100
	maxGlob   = 256
	maxBraces = 4
)

func validGlob(glob string) bool {
	return len(glob) <= maxGlob && strings.Count(glob, "{") <= maxBraces && doublestar.ValidatePattern(cleanGlob(glob))
}

// cleanGlob normalizes a glob: a folder matches everything in it.
func cleanGlob(glob string) string {
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	return strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
}

// fileWord matches a word that may be a path or file name, without surrounding
// punctuation or a trailing line number.
var fileWord = lazy.Regexp(`(?:^|[\s("'` + "`" + `\[=,])((?:\.{0,2}/|[A-Za-z]:[/\\])?[\pL\pN_.@+-]+(?:[/\\][\pL\pN_.@+-]+)*)`)

// addText adds the files named in a text. A word without a slash or without an
// extension, such as Node.js or client/server, must be an existing file.
func (f *files) addText(ctx context.Context, text string) {
	if len(text) > maxInput {
		text = text[:maxInput]
	}
	for _, found := range fileWord().FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(found[1], ".")
		slash, ext := strings.ContainsAny(name, `/\`), path.Ext(slashed(name)) != ""
		if slash && ext || (slash || ext) && f.exists != nil && f.exists(ctx, name) {
			f.add(name)
		}
	}
}

// fileBlock starts the content of a file that the user attached to an input.
const fileBlock = "<file path="

// addInput adds the files of an input.
func (f *files) addInput(ctx context.Context, parts model.Parts) {
	for _, p := range parts {
		t, ok := p.(model.Text)
		switch rest, file := strings.CutPrefix(t.Text, fileBlock); {
		case !ok || strings.HasPrefix(t.Text, "<context "):
		case file:
			if end := strings.Index(rest, ">\n"); end > 0 {
				if name, err := strconv.Unquote(rest[:end]); err == nil {
					f.add(name)
				}
			}
		default:
			f.addText(ctx, t.Text)
		}
	}
}

// patchFile matches the lines of a patch that name a file.
var patchFile = lazy.Regexp(`(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\r?$`)

// addCalls adds the files that were passed to tools.
func (f *files) addCalls(ctx context.Context, messages []model.Message) {
	for _, m := range messages {
		for _, call := range m.Parts.ToolCalls() {
			if key := [2]string{call.ID, call.Args}; !f.calls[key] {
				f.calls[key] = true
				f.addArgs(ctx, call.Args)
			}
		}
	}
}

// addArgs adds the files in a call's arguments, as the built-in tools name them,
// and those in the text of a command.
func (f *files) addArgs(ctx context.Context, text string) {
	var args struct {
		FilePath string   `json:"file_path"`
		Paths    []string `json:"paths"`
		Patch    string   `json:"patch"`
		Command  string   `json:"command"`
	}
	_ = json.Unmarshal([]byte(text), &args) // fields of another type stay empty
	f.add(args.FilePath)
	for _, p := range args.Paths {
		if !strings.ContainsAny(p, "*?[{") {
			f.add(p)
		}
	}
	for _, found := range patchFile().FindAllStringSubmatch(args.Patch, -1) {
		f.add(found[1])
	}
	f.addText(ctx, args.Command)
}

// hasPaths reports whether an active skill has Paths.
func (c *Catalog) hasPaths() bool {
	return slices.ContainsFunc(c.Skills, func(s *Skill) bool { return len(s.Paths) > 0 && s.State == StateOn })
}
