package bundles

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/invisible"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/lazy"
)

// Bounds of a bundle.
const (
	maxFile     = 1 << 20   // bytes of a manifest, or a file with hooks or servers
	maxContext  = 100 << 10 // bytes of a context file
	maxPieces   = 500       // of each kind
	maxUnusable = 200
)

// ErrNone is wrapped by the error of [Read] for a folder that is no plugin.
var ErrNone = errors.New("not a plugin")

// SchemaAgents begins the $schema of an Agent Plugins manifest.
const SchemaAgents = "https://agent-plugins.org/schemas/"

// Extension is the name of this program's section below extensions in an Agent
// Plugins manifest. It has the members of a plugin.json of this program.
const Extension = "com.github.seed-009c0928.agent"

// Read reads the bundle in a folder. Name is used if its manifest has none; empty is
// the folder's name. Entry is what a marketplace says of it, in the members of a
// manifest, for those that its own manifest lacks; it may be nil. The error wraps
// [ErrNone] if there is nothing of a plugin.
func Read(dir, name string, entry json.RawMessage) (*Bundle, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return ReadFiles(root.FS(), dir, name, entry)
}

// ReadFiles is [Read], with the files of the folder given.
func ReadFiles(files fs.FS, dir, name string, entry json.RawMessage) (*Bundle, error) {
	r := &reader{files: files, b: &Bundle{Dir: dir, Name: cleanName(cmp.Or(name, filepath.Base(dir)))}, names: map[string]string{}}
	if entry != nil {
		if err := json.Unmarshal(entry, &r.entry); err != nil {
			return nil, fmt.Errorf("the marketplace's entry: %w", err)
		}
	}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return r.b, nil
}

// reader reads one bundle.
type reader struct {
	files    fs.FS
	b        *Bundle
	at       string // of the manifest
	manifest map[string]json.RawMessage
	entry    map[string]json.RawMessage // of a marketplace
	names    map[string]string          // of pieces, by kind and folded name
}

// marks are the files that tell a format, in order of precedence.
var marks = []struct {
	format Format
	file   string
}{
	{Agents, "plugin.json"},
	{Own, "plugin.json"},
	{Claude, ".claude-plugin/plugin.json"},
	{Gemini, "gemini-extension.json"},
	{Codex, ".codex-plugin/plugin.json"},
	{Cursor, ".cursor-plugin/plugin.json"},
}

// Hidden are the files and folders of plugins whose names begin with a dot.
var Hidden = []string{".claude-plugin", ".codex-plugin", ".cursor-plugin", ".mcp.json", ".lsp.json"}

func (r *reader) read() error {
	if err := r.detect(); err != nil {
		return err
	}
	r.addEntry()
	if err := r.identity(); err != nil {
		return err
	}
	layouts[r.b.Format](r)
	r.strayFiles()
	b := r.b
	if len(b.Skills)+len(b.Commands)+len(b.Agents)+len(b.Servers)+len(b.Languages)+len(b.Hooks)+len(b.Context) == 0 && !b.Program && r.manifest == nil {
		if len(b.Unusable) > 0 {
			return fmt.Errorf("%w: %s", ErrNone, b.Unusable[0])
		}
		return fmt.Errorf("%w: it has no manifest, skills, commands, agents, hooks or MCP servers", ErrNone)
	}
	return nil
}

// detect finds the manifest.
func (r *reader) detect() error {
	for _, m := range marks {
		data, err := r.load(m.file, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.file, err)
		}
		doc, err := jsonpos.Parse(m.file, data)
		if err != nil {
			return err
		}
		var members map[string]json.RawMessage
		if err := doc.Decode(&members); err != nil {
			return err
		}
		schema := text(members["$schema"])
		switch {
		case m.format == Agents && !strings.HasPrefix(schema, SchemaAgents):
			continue
		case m.format == Agents && !strings.HasPrefix(schema, SchemaAgents+"1."):
			return fmt.Errorf("%s: unknown version of Agent Plugins %q: expected 1", m.file, clip(schema))
		case m.format == Own && members["protocol"] == nil && members["command"] == nil:
			continue // the plugin.json of something else
		}
		r.b.Format, r.at, r.manifest = m.format, m.file, members
		return nil
	}
	r.b.Format = Unnamed
	return nil
}

// addEntry adds the members of a marketplace's entry that the manifest lacks.
func (r *reader) addEntry() {
	if r.entry == nil || r.b.Format == Agents || r.b.Format == Own {
		return
	}
	if r.manifest == nil {
		r.manifest, r.b.Format, r.at = map[string]json.RawMessage{}, Claude, "the marketplace's entry"
	}
	for key, value := range r.entry {
		if r.manifest[key] == nil && key != "source" {
			r.manifest[key] = value
		}
	}
}

// names that other parts of the program have, so that PLUGIN:NAME is never theirs.
var reserved = []string{"user", "project", "bundled", "builtin", "agent", "host", "mcp", "skill", "skills", "subagent", "web", "graph", "hooks"}

var bundleName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// identity reads the name, version and description.
func (r *reader) identity() error {
	b := r.b
	if name := text(r.manifest["name"]); name != "" || r.b.Format == Agents {
		b.Name = name
	}
	switch {
	case !bundleName().MatchString(b.Name):
		return fmt.Errorf("invalid plugin name %q: expected at most 64 letters, digits, dots, - and _", clip(b.Name))
	case slices.Contains(reserved, strings.ToLower(b.Name)):
		return fmt.Errorf("the plugin name %q is reserved", b.Name)
	}
	b.Version, b.Summary = line(text(r.manifest["version"]), 64), line(text(r.manifest["description"]), 300)
	return nil
}

// skip notes a piece that is left out.
func (r *reader) skip(kind, name, format string, args ...any) {
	if len(r.b.Unusable) < maxUnusable {
		r.b.Unusable = append(r.b.Unusable, Unusable{kind, line(name, 120), line(fmt.Sprintf(format, args...), 300)})
	}
}

// claim reports whether a name is free. Names that differ only in case clash, as
// they may on disk.
func (r *reader) claim(kind, name, at string) bool {
	key := kind + "\x00" + strings.ToLower(name)
	if other, taken := r.names[key]; taken {
		r.skip(kind, name, "the name is taken by %s", other)
		return false
	}
	r.names[key] = at
	return true
}

// load reads a text file. Links are refused.
func (r *reader) load(at string, most int64) ([]byte, error) {
	if err := r.plain(at); err != nil {
		return nil, err
	}
	f, err := r.files.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, fmt.Errorf("larger than %d KiB", most>>10)
	case !utf8.Valid(data):
		return nil, errors.New("not valid UTF-8")
	}
	return data, nil
}

// plain reports why a path is not used: a link on the way, or an odd name.
func (r *reader) plain(at string) error {
	if !fs.ValidPath(at) {
		return fmt.Errorf("%q leads out of the plugin's folder", clip(at))
	}
	if strings.ContainsFunc(at, func(c rune) bool { return invisible.Is(c) || unicode.Is(unicode.Cf, c) }) {
		return errors.New("the name has invisible characters")
	}
	below := ""
	for element := range strings.SplitSeq(at, "/") {
		below = path.Join(below, element)
		info, err := fs.Lstat(r.files, below)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return errors.New("links are not followed: use the file itself")
		}
	}
	return nil
}

// local returns a path of a manifest as one below the folder.
func (r *reader) local(kind, given string) (string, bool) {
	at := path.Clean(strings.TrimPrefix(given, "./"))
	if given == "" || strings.Contains(given, `\`) || !fs.ValidPath(at) || filepath.VolumeName(given) != "" {
		r.skip(kind, given, "the path leads out of the plugin's folder")
		return "", false
	}
	return at, true
}

// paths reads a member that is a path or a list of paths.
func (r *reader) paths(kind, key string) (list []string, ok bool) {
	raw := r.manifest[key]
	if raw == nil {
		return nil, false
	}
	var many []string
	if one := text(raw); one != "" {
		many = []string{one}
	} else if json.Unmarshal(raw, &many) != nil {
		return nil, false
	}
	for _, given := range many {
		if at, ok := r.local(kind, given); ok {
			list = append(list, at)
		}
	}
	return list, true
}

// list returns the entries of a folder by name; none if there is no such folder.
func (r *reader) list(kind, dir string) []fs.DirEntry {
	if dir != "." {
		if err := r.plain(dir); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				r.skip(kind, dir, "%v", err)
			}
			return nil
		}
	}
	entries, err := fs.ReadDir(r.files, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.skip(kind, dir, "%v", err)
	}
	return entries
}

// walk lists the files with an ending below a folder, or the file itself.
func (r *reader) walk(kind, at, ending string) (list []string) {
	if strings.HasSuffix(at, ending) {
		return []string{at}
	}
	for _, e := range r.list(kind, at) {
		below := path.Join(at, e.Name())
		switch {
		case len(list) >= maxPieces:
			r.skip(kind, at, "more than %d files", maxPieces)
			return list
		case e.IsDir() && strings.Count(below, "/") < 8:
			list = append(list, r.walk(kind, below, ending)...)
		case strings.HasSuffix(e.Name(), ending):
			list = append(list, below)
		}
	}
	return list
}

// settingsFiles are files of a bundle that would be settings of a program.
var settingsFiles = map[string]string{
	"settings.json": "a plugin does not change settings", ".claude/settings.json": "a plugin does not change settings",
	".claude/settings.local.json": "a plugin does not change settings", ".agent/settings.json": "a plugin does not change settings",
	".agent/plugins": "a plugin brings no plugins of a project", ".codex/config.toml": "a plugin does not change settings",
	".gemini/settings.json": "a plugin does not change settings", "managed-settings.json": "a plugin does not change settings",
}

// unsupported are pieces of other programs that have no counterpart here.
var unsupported = map[string]string{
	"output-styles": "output styles are not supported", "workflows": "workflows are not supported",
	"themes": "themes are not supported", "monitors": "monitors are not supported", "policies": "policies of a plugin are ignored: permissions are the user's",
	".app.json": "apps are not supported",
}

// unsupportedKeys are members of manifests that have no counterpart here.
var unsupportedKeys = map[string]string{
	"outputStyles": "output styles are not supported", "workflows": "workflows are not supported",
	"experimental": "experimental pieces are not supported", "channels": "channels are not supported", "apps": "apps are not supported",
	"dependencies": "plugins that it depends on are not added with it", "themes": "themes are not supported", "plan": "the plan directory cannot be changed",
	"excludeTools": "a plugin cannot remove tools: use deny rules", "migratedTo": "the extension moved: add it from its new source",
}

// strayFiles names what a bundle has and this program does not use.
func (r *reader) strayFiles() {
	for _, set := range []map[string]string{settingsFiles, unsupported} {
		for _, at := range slices.Sorted(maps.Keys(set)) {
			if _, err := fs.Lstat(r.files, at); err == nil {
				r.skip("file", at, "%s", set[at])
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(unsupportedKeys)) {
		if r.manifest[key] != nil {
			r.skip("manifest", key, "%s", unsupportedKeys[key])
		}
	}
}

// text decodes a JSON string; anything else is empty.
func text(raw json.RawMessage) string {
	var s string
	if raw == nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// line makes one line of at most so many characters, without invisible ones.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(invisible.Strip(strings.ToValidUTF8(text, "?"))), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

func clip(text string) string { return line(text, 80) }

var notName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// cleanName makes a name of a folder's name.
func cleanName(text string) string {
	return strings.Trim(notName.ReplaceAllString(text, "-"), "-._")
}
