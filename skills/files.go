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

	"github.com/seed-009c0928/agent/core/model"
)

// files are those that a session has to do with: the person named them, or a
// tool was called with them. They only grow; what a summary drops stays in play.
type files struct {
	dir    string // the session's
	exists func(ctx context.Context, path string) bool
	known  map[string]bool    // absolute, clean, with slashes
	calls  map[[2]string]bool // that were looked at, by their ids and arguments
}

func newFiles(dir string, exists func(context.Context, string) bool) *files {
	return &files{dir: path.Clean(cmp.Or(slashed(dir), "/")), exists: exists, known: map[string]bool{}, calls: map[[2]string]bool{}}
}

// slashed is a path with slashes, on whatever system its file is.
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

// about reports whether a skill's globs match one of the files.
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

// Bounds of globs: alternatives multiply what there is to try.
const (
	maxGlobs  = 100
	maxGlob   = 256
	maxBraces = 4
)

func validGlob(glob string) bool {
	return len(glob) <= maxGlob && strings.Count(glob, "{") <= maxBraces && doublestar.ValidatePattern(cleanGlob(glob))
}

// cleanGlob is a glob as it is matched: of a folder, all that lies in it.
func cleanGlob(glob string) string {
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	return strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
}

// fileWord is a word that may be a path or the name of a file. Marks around it,
// and a line number behind it, do not belong to it.
var fileWord = lazily(`(?:^|[\s("'` + "`" + `\[=,])((?:\.{0,2}/|[A-Za-z]:[/\\])?[\pL\pN_.@+-]+(?:[/\\][\pL\pN_.@+-]+)*)`)

// addText adds the files that a text names. What has no slash or no ending, as
// Node.js and client/server, counts only if there is such a file.
func (f *files) addText(ctx context.Context, text string) {
	if len(text) > maxInput {
		text = text[:maxInput]
	}
	for _, found := range fileWord().FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(found[1], ".")
		folder, ending := strings.ContainsAny(name, `/\`), path.Ext(slashed(name)) != ""
		if folder && ending || (folder || ending) && f.exists != nil && f.exists(ctx, name) {
			f.add(name)
		}
	}
}

// fileBlock begins the content of a file that the person put into an input.
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

// patchFile is the line of a patch that names a file.
var patchFile = lazily(`(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\r?$`)

// addCalls adds the files that tools were called with.
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

// addArgs adds the files in a call's arguments, by the names that the built-in
// tools have for them. A command names its files in its text.
func (f *files) addArgs(ctx context.Context, text string) {
	var args struct {
		FilePath string   `json:"file_path"`
		Paths    []string `json:"paths"`
		Patch    string   `json:"patch"`
		Command  string   `json:"command"`
	}
	_ = json.Unmarshal([]byte(text), &args) // what is of another kind stays empty
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

// hasPaths reports whether a skill of the catalog is about certain files.
func (c *Catalog) hasPaths() bool {
	return slices.ContainsFunc(c.Skills, func(s *Skill) bool { return len(s.Paths) > 0 && s.State == StateOn })
}
