package bundles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/skills"
)

// layouts read the pieces of a bundle where its format has them.
var layouts = map[Format]func(*reader){
	Own: func(r *reader) {
		r.b.Program = r.manifest["command"] != nil
		r.common(".mcp.json")
		r.settingsSchema()
	},
	Agents:  (*reader).agentPlugin,
	Claude:  func(r *reader) { r.common(".mcp.json") },
	Unnamed: func(r *reader) { r.common(".mcp.json") },
	Codex:   func(r *reader) { r.common(".mcp.json") },
	Cursor: func(r *reader) {
		r.common("mcp.json")
		for _, at := range r.walk("rule", "rules", ".mdc") {
			r.skip("rule", at, "rules of Cursor are not supported: write a skill")
		}
	},
	Gemini: (*reader).gemini,
}

// common reads the layout that Claude Code began and others share.
func (r *reader) common(servers string) {
	r.skills("skills", r.b.Format == Cursor)
	if more, ok := r.paths("skill", "skills"); ok {
		for _, dir := range more {
			r.skills(dir, true)
		}
	}
	if _, err := fs.Lstat(r.files, "SKILL.md"); err == nil && r.manifest["skills"] == nil {
		r.skill(".", r.b.Name)
	}
	for _, at := range r.either("command", "commands") {
		r.command(at)
	}
	r.inlineCommands()
	for _, at := range r.either("agent", "agents") {
		r.agent(at)
	}
	r.hooks("hooks/hooks.json")
	r.servers(servers)
	r.languages()
	r.userConfig()
}

// agentPlugin reads the layout of Agent Plugins 1.0: only skills and servers, and
// what this program adds.
func (r *reader) agentPlugin() {
	known := []string{"$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords", "extensions"}
	for _, key := range slices.Sorted(maps.Keys(r.manifest)) {
		if !slices.Contains(known, key) {
			r.skip("manifest", key, "Agent Plugins has no such field")
		}
	}
	r.skills("skills", false)
	r.servers("mcp.json")
	var extensions map[string]map[string]json.RawMessage
	if json.Unmarshal(r.manifest["extensions"], &extensions) != nil {
		return
	}
	if own := extensions[Extension]; own != nil {
		r.b.Program = own["command"] != nil
		for _, at := range r.either("command", "commands") {
			r.command(at)
		}
		for _, at := range r.either("agent", "agents") {
			r.agent(at)
		}
		r.manifest = own
		r.hooks("hooks/hooks.json")
		r.userConfig()
		r.settingsSchema()
	}
}

// gemini reads the layout of Gemini CLI.
func (r *reader) gemini() {
	r.skills("skills", false)
	for _, at := range r.walk("command", "commands", ".toml") {
		r.tomlCommand(at)
	}
	for _, at := range r.walk("agent", "agents", ".md") {
		r.agent(at)
	}
	r.hooks("hooks/hooks.json")
	r.addServers(r.at, r.manifest["mcpServers"])
	files, named := r.paths("context", "contextFileName")
	if !named {
		files = []string{"GEMINI.md"}
	}
	for _, at := range files {
		switch _, err := r.load(at, maxContext); {
		case err == nil:
			r.b.Context = append(r.b.Context, at)
		case named || !errors.Is(err, fs.ErrNotExist):
			r.skip("context", at, "%v", err)
		}
	}
	var list []struct {
		Name, Description, EnvVar string
		Sensitive                 bool
	}
	if raw := r.manifest["settings"]; raw != nil && json.Unmarshal(raw, &list) != nil {
		r.skip("setting", "settings", "expected a list of objects")
	}
	for _, s := range list {
		if !envName().MatchString(s.EnvVar) || controls(s.EnvVar) {
			r.skip("setting", s.Name, "invalid variable %q", clip(s.EnvVar))
			continue
		}
		r.b.Settings = append(r.b.Settings, Setting{Key: s.EnvVar, Type: "string", Title: line(s.Name, 80), Description: line(s.Description, 300), Secret: s.Sensitive, Env: s.EnvVar})
	}
}

// either returns the Markdown files that the manifest names, or else those of the
// folder of the same name.
func (r *reader) either(kind, key string) (list []string) {
	roots, named := r.paths(kind, key)
	if !named {
		roots = []string{key}
	}
	for _, root := range roots {
		if named {
			if err := r.plain(root); err != nil {
				r.skip(kind, root, "%v", err)
				continue
			}
		}
		for _, at := range r.walk(kind, root, ".md") {
			if base := strings.ToLower(path.Base(at)); base != "readme.md" {
				list = append(list, at)
			}
		}
	}
	return list
}

// skills reads the skills in a folder; named says that the manifest names it, which
// may be a skill itself.
func (r *reader) skills(dir string, named bool) {
	if named {
		if err := r.plain(path.Join(dir, "SKILL.md")); err == nil {
			r.skill(dir, path.Base(dir))
			return
		}
	}
	for i, e := range r.list("skill", dir) {
		at := path.Join(dir, e.Name())
		switch {
		case i >= maxPieces:
			r.skip("skill", dir, "more than %d folders", maxPieces)
			return
		case e.Type()&fs.ModeSymlink != 0:
			r.skip("skill", at, "links are not followed: use the folder itself")
		case !e.IsDir():
		default:
			if _, err := fs.Lstat(r.files, path.Join(at, "SKILL.md")); err == nil {
				r.skill(at, e.Name())
			}
		}
	}
}

// skill reads a skill.
func (r *reader) skill(dir, folder string) {
	file := path.Join(dir, "SKILL.md")
	if slices.ContainsFunc(r.b.Skills, func(s Skill) bool { return s.Path == dir }) {
		return
	}
	data, err := r.load(file, maxFile)
	if err != nil {
		r.skip("skill", dir, "%v", err)
		return
	}
	m, problems := skills.Parse(file, data)
	if m == nil {
		r.skip("skill", dir, "%s", skills.Problem{Path: file, Diagnostics: problems}.Error())
		return
	}
	name := m.Name
	if name == "" {
		name = skills.CleanName(folder)
	}
	if name == "" {
		r.skip("skill", dir, "it has no usable name")
		return
	}
	if at := settingsIn(m.Hooks); at != "" {
		r.skip("skill", dir, "its hooks name %s: a plugin must not change settings", at)
		return
	}
	if r.claim("skill", name, file) {
		s := Skill{Name: r.b.Name + ":" + name, Path: dir, Summary: line(m.Description, 200), Scripts: len(r.list("skill", dir)) > 1, hooks: m.Hooks}
		for _, text := range m.HookLines() {
			s.Hooks = append(s.Hooks, line(text, 300))
		}
		r.b.Skills = append(r.b.Skills, s)
	}
}

// command reads a Markdown command.
func (r *reader) command(at string) {
	name := path.Base(strings.TrimSuffix(at, ".md"))
	if rest, ok := strings.CutPrefix(strings.TrimSuffix(at, ".md"), "commands/"); ok {
		name = rest
	}
	data, err := r.load(at, maxFile)
	if err == nil {
		var c skills.Command
		if c, err = skills.ParseCommand(name, data); err == nil {
			r.addCommand(c, at)
			return
		}
	}
	r.skip("command", at, "%v", err)
}

func (r *reader) addCommand(c skills.Command, at string) {
	if r.claim("command", c.Name, at) {
		c.Name = r.b.Name + ":" + c.Name
		r.b.Commands = append(r.b.Commands, Command{c, at})
	}
}

// inlineCommands reads commands in Claude Code's form of an object by name.
func (r *reader) inlineCommands() {
	var all map[string]struct {
		Source, Content, Description string
		ArgumentHint                 string `json:"argumentHint"`
	}
	if raw := r.manifest["commands"]; raw == nil || json.Unmarshal(raw, &all) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		in := all[name]
		if !fs.ValidPath(name) {
			r.skip("command", name, "invalid name: expected words, divided by slashes")
			continue
		}
		data := []byte(in.Content)
		if in.Source != "" {
			at, ok := r.local("command", in.Source)
			if !ok {
				continue
			}
			var err error
			if data, err = r.load(at, maxFile); err != nil {
				r.skip("command", name, "%v", err)
				continue
			}
		}
		c, err := skills.ParseCommand(name, data)
		if err != nil {
			r.skip("command", name, "%v", err)
			continue
		}
		if in.Description != "" {
			c.Summary = in.Description
		}
		r.addCommand(c, r.at)
	}
}

var (
	geminiArgs  = lazy.Regexp(`\{\{\s*args\s*\}\}`)
	geminiShell = lazy.Regexp(`!\{([^{}\n]*)\}`)
	geminiFile  = lazy.Regexp(`@\{([^{}\n]*)\}`)
)

// tomlCommand reads a command of Gemini CLI.
func (r *reader) tomlCommand(at string) {
	data, err := r.load(at, maxFile)
	var in struct{ Prompt, Description string }
	if err == nil {
		_, err = toml.Decode(string(data), &in)
	}
	if err == nil {
		body := geminiArgs().ReplaceAllLiteralString(in.Prompt, "$ARGUMENTS")
		body = geminiShell().ReplaceAllString(body, "!`$1`")
		body = geminiFile().ReplaceAllString(body, "@$1")
		var c skills.Command
		if c, err = skills.ParseCommand(strings.TrimSuffix(strings.TrimPrefix(at, "commands/"), ".toml"), []byte("\n"+body)); err == nil {
			if in.Description != "" {
				c.Summary = in.Description
			}
			r.addCommand(c, at)
			return
		}
	}
	r.skip("command", at, "%v", err)
}

// agent reads an agent type.
func (r *reader) agent(at string) {
	_, err := r.load(at, maxFile)
	if err == nil {
		list, errs := subagent.Load(r.files, at)
		if err = errors.Join(errs...); err == nil && len(list) == 1 {
			d := list[0]
			if d.Hooks != "" {
				d.Hooks = ""
				r.skip("hook", at, "the agent types of a plugin have no hooks: they belong into hooks/hooks.json")
			}
			if r.claim("agent", d.Name, at) {
				d.Name = r.b.Name + ":" + d.Name
				r.b.Agents = append(r.b.Agents, Agent{d, at})
			}
			return
		}
	}
	r.skip("agent", at, "%s", strings.TrimPrefix(err.Error(), "agent "+at+": "))
}

// servers reads the MCP servers of a file, or those that the manifest names or has.
func (r *reader) servers(file string) {
	raw := r.manifest["mcpServers"]
	files, named := r.paths("server", "mcpServers")
	switch {
	case named:
	case raw != nil:
		r.addServers(r.at, raw)
	}
	if !slices.Contains(files, file) && !named && (raw == nil || r.b.Format == Claude || r.b.Format == Unnamed) {
		files = append(files, file)
	}
	for _, at := range files {
		data, err := r.load(at, maxFile)
		if errors.Is(err, fs.ErrNotExist) && !named {
			continue
		}
		var root map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(data, &root)
		}
		if err != nil {
			r.skip("server", at, "%v", err)
			continue
		}
		if all := root["mcpServers"]; all != nil {
			data = all
		}
		r.addServers(at, data)
	}
}

// reference is a variable in a text.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_.]*|/)(:-[^}]*)?\}`)

var envName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// controls reports whether a variable changes how programs are loaded.
func controls(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || name == "PATH" || name == "HOME"
}

// addServers reads the object of MCP servers.
func (r *reader) addServers(at string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		r.skip("server", at, "expected an object of servers")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "$schema" || len(r.b.Servers) >= maxPieces {
			continue
		}
		full := serverName(r.b.Name, name)
		file, _ := json.Marshal(map[string]any{"mcpServers": map[string]json.RawMessage{full: all[name]}}) // of valid JSON
		parsed, _, err := mcp.ParseFile(at, file)
		s := parsed[full]
		if err == nil {
			err = r.checkServer(s)
		}
		if err != nil {
			r.skip("server", name, "%s", withoutPosition(err))
			continue
		}
		if r.claim("server", full, at) {
			r.b.Servers = append(r.b.Servers, Server{Name: full, Server: s, Needs: needs(s)})
		}
	}
}

// maxServerName is the longest name of an MCP server.
const maxServerName = 40

var underscores = lazy.Regexp(`__+`)

// serverName returns the name of a plugin's server among all servers:
// PLUGIN_SERVER, shortened if it is too long.
func serverName(plugin, name string) string {
	full := underscores().ReplaceAllString(cleanName(plugin)+"_"+cleanName(name), "_")
	if len(full) > maxServerName {
		sum := sha256.Sum256([]byte(full))
		full = full[:maxServerName-7] + "-" + hex.EncodeToString(sum[:3])
	}
	return full
}

// withoutPosition removes the line and column, which are not those of the file.
func withoutPosition(err error) string {
	message := err.Error()
	if _, rest, ok := strings.Cut(message, ": "); ok && strings.Contains(message[:len(message)-len(rest)], ":1:") {
		return rest
	}
	return message
}

// checkServer refuses what a plugin's server must not ask for.
func (r *reader) checkServer(s mcp.Server) error {
	if at := s.Command; strings.HasPrefix(at, "../") || strings.Contains(at, "/../") {
		return fmt.Errorf("its program %q leads out of the plugin's folder", clip(at))
	}
	if r.b.Format == Agents {
		switch token := s.Command; {
		case strings.ContainsAny(token, " \t$"):
			return errors.New("its command must be one word without variables")
		case strings.Contains(token, "/") && !strings.HasPrefix(token, "./"):
			return errors.New(`its command must be a program in PATH, or begin with "./"`)
		}
	}
	for name := range s.Env {
		if controls(name) {
			return fmt.Errorf("a plugin cannot set the variable %s", name)
		}
	}
	return nil
}

// needs returns the variables of the user's environment that a server gets.
func needs(s mcp.Server) (list []string) {
	add := func(text string) {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if !variable(m[1]) && !slices.Contains(list, m[1]) {
				list = append(list, m[1])
			}
		}
	}
	for _, value := range fields(&s) {
		add(*value)
	}
	for _, all := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			add(all[name])
		}
	}
	slices.Sort(list)
	return list
}

// fields returns the strings of a server that may have variables, except the maps.
func fields(s *mcp.Server) []*string {
	list := []*string{&s.Command, &s.Cwd, &s.URL}
	for i := range s.Args {
		list = append(list, &s.Args[i])
	}
	return list
}
