package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/mcp"
)

// program is another program that configures MCP servers.
type program struct {
	name, title string
	files       func(p places) []string
	// members are the paths of the objects with servers in a file.
	members func(p places) [][]string
}

// places are where configuration is looked for.
type places struct {
	home, dir string
	env       func(string) string
}

// app returns the directory of a desktop program's configuration.
func (p places) app(name string) string {
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(p.home, "Library", "Application Support", name)
	case "windows":
		return filepath.Join(p.env("APPDATA"), name)
	}
	if base := p.env("XDG_CONFIG_HOME"); base != "" {
		return filepath.Join(base, name)
	}
	return filepath.Join(p.home, ".config", name)
}

// programs returns the known programs.
func programs() []program {
	servers := func(places) [][]string { return [][]string{{"mcpServers"}} }
	return []program{
		{
			"claude-code", "Claude Code", func(p places) []string { return []string{filepath.Join(p.home, ".claude.json")} },
			func(p places) [][]string { return [][]string{{"mcpServers"}, {"projects", p.dir, "mcpServers"}} },
		},
		{"claude-desktop", "Claude Desktop", func(p places) []string { return []string{filepath.Join(p.app("Claude"), "claude_desktop_config.json")} }, servers},
		{"cursor", "Cursor", func(p places) []string {
			return []string{filepath.Join(p.dir, ".cursor", "mcp.json"), filepath.Join(p.home, ".cursor", "mcp.json")}
		}, servers},
		{"vscode", "VS Code", func(p places) []string {
			return []string{filepath.Join(p.dir, ".vscode", "mcp.json"), filepath.Join(p.app("Code"), "User", "mcp.json")}
		}, func(places) [][]string { return [][]string{{"servers"}} }},
		{"codex", "Codex", func(p places) []string {
			return []string{filepath.Join(firstSet(p.env("CODEX_HOME"), filepath.Join(p.home, ".codex")), "config.toml")}
		}, func(places) [][]string { return [][]string{{"mcp_servers"}} }},
		{"gemini", "Gemini CLI", func(p places) []string {
			return []string{filepath.Join(p.dir, ".gemini", "settings.json"), filepath.Join(p.home, ".gemini", "settings.json")}
		}, servers},
	}
}

func firstSet(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return s != "" })
	return texts[max(i, 0)]
}

// candidate is a server found in the configuration of another program.
type candidate struct {
	name, file, from string
	server           mcp.Server
	notes            []string
	problem          error // why it cannot be imported
}

// read returns the servers of a program. Files that do not exist have none.
func (g program) read(p places) (found []candidate, errs []error) {
	for _, file := range g.files(p) {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var root map[string]any
		switch {
		case err != nil:
		case filepath.Ext(file) == ".toml":
			err = toml.Unmarshal(data, &root)
		default:
			var doc *jsonpos.Document
			if doc, err = jsonpos.ParseJSONC(file, data); err == nil {
				err = doc.Decode(&root)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			continue
		}
		for _, path := range g.members(p) {
			at := any(root)
			for _, name := range path {
				m, _ := at.(map[string]any)
				at = m[name]
			}
			servers, _ := at.(map[string]any)
			for _, name := range cmdutil.SortedKeys(servers) {
				c := convert(name, servers[name], p)
				c.file, c.from = file, g.name
				found = append(found, c)
			}
		}
	}
	return found, errs
}

// foreign has the fields of all programs for a server.
type foreign struct {
	Type, Command, Cwd, URL, ServerURL, HTTPURL, EnvFile string
	Args                                                 []string
	Env, Headers                                         map[string]string
	HTTPHeaders                                          map[string]string `json:"http_headers"`
	EnvHeaders                                           map[string]string `json:"env_http_headers"`
	BearerVar                                            string            `json:"bearer_token_env_var"`
	EnvVars                                              []string          `json:"env_vars"`
	Disabled                                             bool
	Enabled                                              *bool
	IncludeTools, ExcludeTools                           []string
	EnabledTools                                         []string `json:"enabled_tools"`
	DisabledTools                                        []string `json:"disabled_tools"`
	Timeout                                              float64  // milliseconds
	StartSec                                             float64  `json:"startup_timeout_sec"`
	ToolSec                                              float64  `json:"tool_timeout_sec"`
}

// convert returns a server in our form. Its secrets become references to
// environment variables.
func convert(name string, value any, p places) candidate {
	c := candidate{name: cleanServerName(name)}
	raw, err := json.Marshal(value)
	var f foreign
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		kind := map[reflect.Kind]string{reflect.Slice: "a list of strings", reflect.Bool: "true or false", reflect.Float64: "a number"}[wrong.Type.Kind()]
		c.problem = fmt.Errorf("%s: expected %s, found a %s", strings.ToLower(wrong.Field), firstSet(kind, "a string"), wrong.Value)
		return c
	case err != nil:
		c.problem = fmt.Errorf("invalid: %w", err)
		return c
	}
	if f.EnvFile != "" {
		c.note("envFile " + f.EnvFile + " is not read: set its variables in your environment")
	}
	if c.name != name {
		c.notes = append(c.notes, fmt.Sprintf("renamed from %q", name))
	}
	c.server = mcp.Server{
		Command: f.Command, Args: slices.Clone(f.Args), Cwd: f.Cwd, URL: firstSet(f.HTTPURL, f.URL, f.ServerURL, ""), Env: map[string]string{}, Headers: map[string]string{},
		Disabled:   f.Disabled || f.Enabled != nil && !*f.Enabled,
		AllowTools: append(f.IncludeTools, f.EnabledTools...), DenyTools: append(f.ExcludeTools, f.DisabledTools...),
		CallTimeout: int(max(f.Timeout, f.ToolSec*1000)), StartTimeout: int(f.StartSec * 1000),
	}
	if strings.EqualFold(f.Type, mcp.TransportSSE) {
		c.server.Type = mcp.TransportSSE
	}
	if c.server.URL != "" && c.server.Command != "" {
		c.server.URL = ""
	}
	plain := func(v string) string { return strings.ReplaceAll(v, "$(", "$$(") } // other programs run no commands
	for k, v := range f.Env {
		c.server.Env[k] = plain(v)
	}
	for _, k := range f.EnvVars {
		c.server.Env[k] = "${" + k + "}"
	}
	for _, headers := range []map[string]string{f.Headers, f.HTTPHeaders} {
		for k, v := range headers {
			c.server.Headers[k] = plain(v)
		}
	}
	for k, v := range f.EnvHeaders {
		c.server.Headers[k] = "${" + v + "}"
	}
	if f.BearerVar != "" {
		c.server.Headers["Authorization"] = "Bearer ${" + f.BearerVar + "}"
	}
	c.translate(p)
	c.hideSecrets()
	c.problem = c.server.Check()
	return c
}

// cleanServerName makes a name valid.
func cleanServerName(name string) string {
	name = regexp.MustCompile(`[^A-Za-z0-9_.-]+`).ReplaceAllString(name, "-")
	name = regexp.MustCompile(`__+`).ReplaceAllString(name, "_")
	return strings.TrimLeft(name[:min(len(name), 40)], "-_.")
}

var (
	inputVariable = lazy.Regexp(`\$\{input:([^}]+)\}`)
	envVariable   = lazy.Regexp(`\$\{env:([^}]+)\}`)
	wholeVariable = lazy.Regexp(`^(?i:(bearer|token|basic) )?\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}$`)
	notVariable   = lazy.Regexp(`[^A-Za-z0-9]+`)
	secretFlag    = lazy.Regexp(`(?i)^--?[a-z-]*(key|token|secret|password)(=|$)`)
)

// each calls f for each text of the server and stores the result.
func (c *candidate) each(f func(field, text string) string) {
	s := &c.server
	s.Command, s.Cwd, s.URL = f("command", s.Command), f("cwd", s.Cwd), f("url", s.URL)
	for i := range s.Args {
		s.Args[i] = f("args", s.Args[i])
	}
	for k, v := range s.Env {
		s.Env[k] = f(k, v)
	}
	for k, v := range s.Headers {
		s.Headers[k] = f(k, v)
	}
}

// translate replaces the variables of other programs by ours.
func (c *candidate) translate(p places) {
	c.each(func(_, text string) string {
		text = envVariable().ReplaceAllString(text, "${$1}")
		text = inputVariable().ReplaceAllStringFunc(text, func(m string) string {
			variable := variableName(inputVariable().FindStringSubmatch(m)[1])
			c.note("set " + variable + " in your environment (it was asked for)")
			return "${" + variable + "}"
		})
		return strings.NewReplacer("${workspaceFolder}", p.dir, "${userHome}", p.home, "${/}", string(filepath.Separator)).Replace(text)
	})
}

func variableName(parts ...string) string {
	return strings.ToUpper(strings.Trim(notVariable().ReplaceAllString(strings.Join(parts, "_"), "_"), "_"))
}

func (c *candidate) note(text string) {
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// hideSecrets replaces what may be secret by environment variables.
func (c *candidate) hideSecrets() {
	hide := func(variable string) string {
		c.note("set " + variable + " in your environment: its value is not copied")
		return "${" + variable + "}"
	}
	secrets := c.server.Secrets(func(string) (string, bool) { return "", true })
	for name, value := range c.server.Env {
		if slices.Contains(secrets, value) && !wholeVariable().MatchString(value) {
			c.server.Env[name] = hide(variableName(name))
		}
	}
	for name, value := range c.server.Headers {
		if !slices.Contains(secrets, value) || wholeVariable().MatchString(value) {
			continue
		}
		prefix, _, found := strings.Cut(value, " ")
		if !found {
			prefix = ""
		} else {
			prefix += " "
		}
		c.server.Headers[name] = prefix + hide(variableName(c.name, name))
	}
	for i, arg := range c.server.Args {
		flag, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && value != "" && secretFlag().MatchString(arg) && !wholeVariable().MatchString(value):
			c.server.Args[i] = flag + "=" + hide(variableName(c.name, flag))
		case i > 0 && secretFlag().MatchString(c.server.Args[i-1]) && !strings.Contains(c.server.Args[i-1], "=") && !strings.HasPrefix(arg, "-") && !wholeVariable().MatchString(arg):
			c.server.Args[i] = hide(variableName(c.name, c.server.Args[i-1]))
		}
	}
	if at := strings.Index(c.server.URL, "?"); at >= 0 && secretQuery().MatchString(c.server.URL[at:]) {
		c.server.URL = secretQuery().ReplaceAllStringFunc(c.server.URL, func(m string) string {
			key, value, _ := strings.Cut(m, "=")
			if wholeVariable().MatchString(value) {
				return m
			}
			return key + "=" + hide(variableName(c.name, key))
		})
	}
}

var secretQuery = lazy.Regexp(`(?i)[?&][a-z_-]*(key|token|secret)=[^&]+`)
