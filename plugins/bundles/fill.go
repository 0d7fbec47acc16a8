package bundles

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/mcp"
)

// Values are what the variables of a bundle stand for.
type Values struct {
	Root, Data, Workspace string            // directories
	Settings              map[string]string // by key, without secrets
	Secrets               map[string]string
}

// lookup returns the value of a variable of the bundle. Secrets are known only to
// processes, never to texts that a model reads.
func (b *Bundle) lookup(v Values, secrets bool) func(name string) (value string, known bool) {
	return func(name string) (string, bool) {
		if key, ok := strings.CutPrefix(name, "user_config."); ok {
			if value, ok := v.Settings[key]; ok {
				return value, true
			}
			value, ok := v.Secrets[key]
			return value, ok && secrets
		}
		if !slices.Contains(variables[b.Format], name) {
			return "", false
		}
		switch name {
		case "/", "pathSeparator":
			return string(filepath.Separator), true
		case "CLAUDE_PROJECT_DIR", "workspacePath", "GEMINI_PROJECT_DIR":
			return v.Workspace, v.Workspace != ""
		case "CLAUDE_PLUGIN_DATA", "PLUGIN_DATA":
			return v.Data, v.Data != ""
		}
		return v.Root, true
	}
}

// variables are the names that each format has, besides user_config.KEY.
var variables = map[Format][]string{
	Own:     {"PLUGIN_ROOT", "PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR"},
	Agents:  {"PLUGIN_ROOT", "PLUGIN_DATA"},
	Claude:  {"CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR"},
	Unnamed: {"CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR"},
	Codex:   {"PLUGIN_ROOT", "PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_PROJECT_DIR"},
	Cursor:  {"CURSOR_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"},
	Gemini:  {"extensionPath", "workspacePath", "pathSeparator", "/"},
}

// variable reports whether a name is one of a bundle's, not of the environment.
func variable(name string) bool {
	if strings.HasPrefix(name, "user_config.") {
		return true
	}
	for _, list := range variables {
		if slices.Contains(list, name) {
			return true
		}
	}
	return false
}

// FillText puts the values into a text that a model reads: a skill, a command or an
// agent type. Only formats that say so have variables there; unknown ones stay.
func (b *Bundle) FillText(text string, v Values) string {
	if b.Format == Gemini || b.Format == Agents || b.Format == Cursor {
		return text
	}
	value := b.lookup(v, false)
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if with, ok := value(reference.FindStringSubmatch(found)[1]); ok {
			return with
		}
		return found
	})
}

// Fill returns the settings of an MCP server with the values put in, ready to use.
// Environ looks up the user's environment. Commands in the settings are not run: a
// plugin's text is not the user's.
func (b *Bundle) Fill(s Server, v Values, environ func(string) (string, bool)) (mcp.Server, error) {
	known := b.lookup(v, true)
	var missing []string
	fill := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(found string) string {
			m := reference.FindStringSubmatch(found)
			if value, ok := known(m[1]); ok {
				return value
			}
			if !variable(m[1]) {
				if value, ok := environ(m[1]); ok && value != "" {
					return value
				}
			}
			if m[2] != "" {
				return strings.TrimPrefix(m[2], ":-")
			}
			missing = append(missing, m[1])
			return ""
		})
	}
	out := s.Server
	out.Args, out.Env, out.Headers = slices.Clone(out.Args), maps.Clone(out.Env), maps.Clone(out.Headers)
	if b.Format == Agents { // variables in args, env and cwd only
		command, url := out.Command, out.URL
		for _, text := range fields(&out) {
			*text = fill(*text)
		}
		out.Command, out.URL = command, url
	} else {
		for _, text := range fields(&out) {
			*text = fill(*text)
		}
		for name, value := range out.Headers {
			out.Headers[name] = fill(value)
		}
	}
	for name, value := range out.Env {
		out.Env[name] = fill(value)
	}
	if out.Transport() == mcp.TransportStdio {
		b.process(&out, v)
	}
	out.Verbatim = true
	out.Sandbox, out.Sampling, out.Required = nil, mcp.Sampling{}, false // a plugin grants itself nothing
	if len(missing) > 0 {
		return out, b.missing(missing)
	}
	return out, out.Check()
}

// process sets the working directory, the program and the variables of a server's
// process.
func (b *Bundle) process(s *mcp.Server, v Values) {
	inside := func(p string) string {
		if strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") || runtime.GOOS == "windows" && strings.HasPrefix(p, `.\`) {
			return filepath.Join(v.Root, filepath.FromSlash(p))
		}
		return p
	}
	s.Command = inside(s.Command)
	switch {
	case s.Cwd != "" && !filepath.IsAbs(s.Cwd):
		s.Cwd = filepath.Join(v.Root, filepath.FromSlash(s.Cwd))
	case s.Cwd == "" && (b.Format == Agents || b.Format == Gemini):
		s.Cwd = v.Root
	}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	for name, value := range b.Environ(v) {
		if _, set := s.Env[name]; !set {
			s.Env[name] = value
		}
	}
}

// Environ returns the variables that the processes of the bundle get.
func (b *Bundle) Environ(v Values) map[string]string {
	env := map[string]string{}
	for _, name := range variables[b.Format] {
		if value, ok := b.lookup(v, true)(name); ok && settingKey().MatchString(name) && strings.ToUpper(name) == name {
			env[name] = value
		}
	}
	for _, s := range b.Settings {
		value, ok := v.Settings[s.Key]
		if secret, is := v.Secrets[s.Key]; is {
			value, ok = secret, true
		}
		if ok && s.Env != "" {
			env[s.Env] = value
		}
	}
	return env
}

// HookVars returns the variables of the bundle's hooks: those of Environ, and what may
// stand in a command as ${NAME}. Secrets are only in CLAUDE_PLUGIN_OPTION_KEY.
func (b *Bundle) HookVars(v Values) map[string]string {
	vars := b.Environ(v)
	value := b.lookup(v, false)
	for _, name := range variables[b.Format] {
		if text, ok := value(name); ok {
			vars[name] = text
		}
	}
	for key, text := range v.Settings {
		vars["user_config."+key] = text
		vars["CLAUDE_PLUGIN_OPTION_"+strings.ToUpper(key)] = text
	}
	for key, secret := range v.Secrets {
		vars["CLAUDE_PLUGIN_OPTION_"+strings.ToUpper(key)] = secret
	}
	return vars
}

// missing explains which values a server lacks.
func (b *Bundle) missing(names []string) error {
	slices.Sort(names)
	var keys, env []string
	for _, name := range slices.Compact(names) {
		if key, ok := strings.CutPrefix(name, "user_config."); ok {
			keys = append(keys, key)
		} else {
			env = append(env, name)
		}
	}
	var errs []error
	if len(keys) > 0 {
		errs = append(errs, fmt.Errorf("it needs the setting %s: run 'agent plugins config %s'", strings.Join(keys, ", "), b.Name))
	}
	if len(env) > 0 {
		errs = append(errs, fmt.Errorf("it needs the environment variable %s: set it and start again", strings.Join(env, ", ")))
	}
	return errors.Join(errs...)
}
