package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// SpecFile is the name of the file in a plugin's folder that describes it.
const SpecFile = "plugin.json"

// Spec is the content of plugin.json: all that a user sees before anything runs.
type Spec struct {
	Schema   string `json:"$schema,omitempty"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	Summary  string `json:"summary,omitempty"`
	// Command is the program and its arguments by system: "linux/amd64", "linux"
	// or "*". Files of the plugin are written as "./bin/weather".
	Command map[string][]string `json:"command"`
	// Manifest is what the process may access.
	Manifest Manifest `json:"manifest,omitzero"`
	// Context allows the plugin to add context to inputs.
	Context *ContextBudget `json:"context,omitempty"`
	// Settings is the JSON Schema of what the user can set for the plugin.
	Settings json.RawMessage `json:"settings,omitempty"`
	// Dynamic allows the tools to change while the process runs.
	Dynamic bool `json:"dynamic,omitempty"`
	// Checksums are the SHA-256 in hex of all files of the plugin except this
	// one, by path. They replace the lock file for plugins of a project.
	Checksums map[string]string `json:"checksums,omitempty"`
}

// Manifest is what a plugin's process may access. The zero value grants nothing.
type Manifest struct {
	Read    []string `json:"read,omitempty"`    // paths below $WORKSPACE or $HOME, or absolute
	Write   []string `json:"write,omitempty"`   // the same
	Network []string `json:"network,omitempty"` // hosts, see sandbox.ParseHost; "*" = all
	Exec    bool     `json:"exec,omitempty"`    // start programs, confined like the plugin
	Env     []string `json:"env,omitempty"`     // names of environment variables to pass
	Secrets []string `json:"secrets,omitempty"` // the same, with values redacted in its output
	Limits  Limits   `json:"limits,omitzero"`
	// Hooks are the points of all sessions at which its hooks run: PreToolUse …
	Hooks []string `json:"hooks,omitempty"`
	// Model is how much its tools may ask the model of the session.
	Model ModelBudget `json:"model,omitzero"`
}

// ModelBudget bounds what a plugin asks the model.
type ModelBudget struct {
	MaxTokens int `json:"maxTokens"`          // of an answer
	Requests  int `json:"requests,omitempty"` // of one call; 0 = 5
}

// Bounds of a plugin's requests to the model.
const (
	maxModelTokens   = 64_000
	maxModelRequests = 100
	modelRequests    = 5
)

// Limits bound what the process of a plugin uses. Zero is the user's setting.
type Limits struct {
	MemoryMiB  int `json:"memoryMb,omitempty"`   // of data, for each process
	Processes  int `json:"processes,omitempty"`  // with threads; on sandbox level namespace
	CPUSeconds int `json:"cpuSeconds,omitempty"` // of each process
}

// Bounds of the limits.
const (
	minMemory, maxMemory         = 128, 1 << 20
	minProcesses, maxProcesses   = 32, 1 << 20
	minCPUSeconds, maxCPUSeconds = 1, 365 * 86400
)

// or returns the limits, and those of others that are missing.
func (l Limits) or(others Limits) Limits {
	return Limits{cmp.Or(l.MemoryMiB, others.MemoryMiB), cmp.Or(l.Processes, others.Processes), cmp.Or(l.CPUSeconds, others.CPUSeconds)}
}

func (l Limits) forSandbox() sandbox.Limits {
	return sandbox.Limits{Memory: int64(l.MemoryMiB) << 20, Processes: l.Processes, CPU: time.Duration(l.CPUSeconds) * time.Second}
}

// ContextBudget bounds what a plugin adds to an input.
type ContextBudget struct {
	MaxTokens int `json:"maxTokens"` // per input; a token is about four characters
}

// maxContextTokens bounds a plugin's budget.
const maxContextTokens = 20_000

var (
	namePattern = lazy.Regexp(`^[a-z][a-z0-9-]{0,39}$`)
	envPattern  = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	platform    = lazy.Regexp(`^(\*|[a-z0-9]+(/[a-z0-9]+)?)$`)
	sha256Hex   = lazy.Regexp(`^[0-9a-f]{64}$`)
)

// reserved are the names of the agent's own toolsets, and of the bundled plugins.
var reserved = []string{"builtin", "host", "subagent", "subagents", "mcp", "skill", "skills", "agent", "web", "graph", "lsp"}

// maxSpec bounds plugin.json, in bytes.
const maxSpec = 1 << 20

// errNoSpec is wrapped by the error of ReadSpec for a folder without a plugin.json.
var errNoSpec = errors.New("it has no")

// ReadSpec reads the plugin.json in a folder. In one of Agent Plugins, it is the
// extension of this program, with the name, version and description of the plugin.
func ReadSpec(dir string) (Spec, error) {
	file := filepath.Join(dir, SpecFile)
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Spec{}, fmt.Errorf("%s is not a plugin: %w %s", dir, errNoSpec, SpecFile)
	case err != nil:
		return Spec{}, err
	case !info.Mode().IsRegular() || info.Size() > maxSpec:
		return Spec{}, fmt.Errorf("%s: expected a file of at most %d bytes", file, maxSpec)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return Spec{}, err
	}
	return parseSpec(file, data)
}

// parseSpec parses and checks the text of a plugin.json. Name is the file name
// used in errors, which are a *[jsonpos.Error].
func parseSpec(name string, data []byte) (Spec, error) {
	doc, err := jsonpos.Parse(name, data)
	if err != nil {
		return Spec{}, err
	}
	if own, ok, err := extension(name, data); err != nil {
		return Spec{}, err
	} else if ok {
		doc = own
	}
	var s Spec
	if err := doc.Decode(&s); err != nil {
		return Spec{}, err
	}
	if err := s.check(doc); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// extension returns the section of this program in an Agent Plugins manifest, as a
// plugin.json.
func extension(name string, data []byte) (*jsonpos.Document, bool, error) {
	var m struct {
		Schema, Name, Version, Description string
		Extensions                         map[string]map[string]json.RawMessage
	}
	var schema struct {
		Schema string `json:"$schema"`
	}
	if json.Unmarshal(data, &schema) != nil || !strings.HasPrefix(schema.Schema, bundles.SchemaAgents) {
		return nil, false, nil
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	own := m.Extensions[bundles.Extension]
	if own == nil {
		return nil, false, fmt.Errorf("%s is not a plugin with a program: %w extensions.%q in", name, errNoSpec, bundles.Extension)
	}
	for key, value := range map[string]string{"name": m.Name, "version": m.Version, "summary": m.Description} {
		if own[key] == nil && value != "" {
			own[key], _ = json.Marshal(value) // a string
		}
	}
	for _, key := range []string{"userConfig", "hooks", "commands", "agents"} { // of the bundle
		delete(own, key)
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, false, err
	}
	doc, err := jsonpos.Parse(name+" (extensions)", text)
	return doc, true, err
}

// check returns the first error.
func (s *Spec) check(doc *jsonpos.Document) error {
	switch {
	case !namePattern().MatchString(s.Name):
		return doc.Errorf("/name", "use at most 40 lower-case letters, digits and -, starting with a letter", "%q cannot be a plugin's name", s.Name)
	case slices.Contains(reserved, s.Name):
		return doc.Errorf("/name", "choose another", "the name %q is reserved for the agent", s.Name)
	case strings.TrimSpace(s.Version) == "" || len(s.Version) > 64 || !printable(s.Version):
		return doc.Errorf("/version", `such as "1.0.0"`, "expected a version of at most 64 characters")
	case s.Protocol != toolproto.Version:
		return doc.Errorf("/protocol", "update the plugin, or the agent", "unknown protocol %d, expected %d", s.Protocol, toolproto.Version)
	case len(s.Summary) > 300 || !printable(s.Summary):
		return doc.Errorf("/summary", "", "expected one line of at most 300 bytes")
	case len(s.Command) == 0:
		return doc.Errorf("/command", `such as {"linux/amd64": ["./weather"], "*": ["python3", "./weather.py"]}`, "missing command")
	case s.Context != nil && (s.Context.MaxTokens < 1 || s.Context.MaxTokens > maxContextTokens):
		return doc.Errorf("/context/maxTokens", "", "expected 1 to %d", maxContextTokens)
	}
	if _, err := bundles.SettingsOf(s.Name, s.Settings); err != nil {
		return doc.Errorf("/settings", "", "%v", err)
	}
	return cmp.Or(s.checkCommand(doc), s.Manifest.check(doc), s.checkSums(doc))
}

func (s *Spec) checkCommand(doc *jsonpos.Document) error {
	for _, key := range slices.Sorted(maps.Keys(s.Command)) {
		at := "/command/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		argv := s.Command[key]
		switch {
		case !platform().MatchString(key):
			return doc.Errorf(at, `use OS/ARCH as Go names them, OS or "*"`, "invalid system %q", key)
		case len(argv) == 0 || argv[0] == "":
			return doc.Errorf(at, "", "expected the program and its arguments")
		}
		for i, arg := range argv {
			if strings.ContainsRune(arg, 0) {
				return doc.Errorf(fmt.Sprintf("%s/%d", at, i), "", "it contains a NUL character")
			}
			if strings.HasPrefix(arg, "./") && !fs.ValidPath(path.Clean(arg)) {
				return doc.Errorf(fmt.Sprintf("%s/%d", at, i), "", "%q is not in the plugin's folder", arg)
			}
		}
		if program := argv[0]; strings.ContainsAny(program, `/\`) && !strings.HasPrefix(program, "./") {
			return doc.Errorf(at+"/0", `use a file of the plugin, "./bin/weather", or a program in PATH`, "%q leads out of the plugin's folder", program)
		}
	}
	return nil
}

func (m *Manifest) check(doc *jsonpos.Document) error {
	for name, list := range map[string][]string{"read": m.Read, "write": m.Write} {
		for i, p := range list {
			rest := strings.TrimPrefix(strings.TrimPrefix(p, "$WORKSPACE"), "$HOME")
			ok := p != rest && (rest == "" || rest[0] == '/') || p == rest && path.IsAbs(p) && path.Clean(p) != "/"
			if !ok || strings.ContainsRune(p, 0) || slices.Contains(strings.Split(p, "/"), "..") {
				return doc.Errorf(fmt.Sprintf("/manifest/%s/%d", name, i), "start it with $WORKSPACE, $HOME or /", "a plugin cannot be granted the path %q", p)
			}
		}
	}
	for name, n := range map[string][3]int{
		"memoryMb": {m.Limits.MemoryMiB, minMemory, maxMemory}, "processes": {m.Limits.Processes, minProcesses, maxProcesses},
		"cpuSeconds": {m.Limits.CPUSeconds, minCPUSeconds, maxCPUSeconds},
	} {
		if n[0] != 0 && (n[0] < n[1] || n[0] > n[2]) {
			return doc.Errorf("/manifest/limits/"+name, "", "expected %d to %d", n[1], n[2])
		}
	}
	if b := m.Model; b.MaxTokens < 0 || b.MaxTokens > maxModelTokens || b.Requests < 0 || b.Requests > maxModelRequests || b.Requests > 0 && b.MaxTokens == 0 {
		return doc.Errorf("/manifest/model", "", "expected at most %d maxTokens and %d requests", maxModelTokens, maxModelRequests)
	}
	for i, point := range m.Hooks {
		if !slices.Contains(hookPoints, point) {
			return doc.Errorf(fmt.Sprintf("/manifest/hooks/%d", i), "use one of "+strings.Join(hookPoints, ", "), "unknown point for hooks %q", point)
		}
	}
	for i, h := range m.Network {
		if h == "*" {
			continue
		}
		if _, err := sandbox.ParseHost(h); err != nil {
			return doc.Errorf(fmt.Sprintf("/manifest/network/%d", i), "", "%v", err)
		}
	}
	for name, list := range map[string][]string{"env": m.Env, "secrets": m.Secrets} {
		for i, v := range list {
			if !envPattern().MatchString(v) || strings.HasPrefix(v, "PLUGIN_") || v == toolproto.CookieKey || strings.HasPrefix(v, "LD_") || strings.HasPrefix(v, "DYLD_") {
				return doc.Errorf(fmt.Sprintf("/manifest/%s/%d", name, i), "", "a plugin cannot be granted the environment variable %q", v)
			}
		}
	}
	return nil
}

func (s *Spec) checkSums(doc *jsonpos.Document) error {
	for name, sum := range s.Checksums {
		at := "/checksums/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		switch {
		case !fs.ValidPath(name) || name == SpecFile:
			return doc.Errorf(at, "", "%q is not a file of the plugin", name)
		case !sha256Hex().MatchString(sum):
			return doc.Errorf(at, "", "expected a SHA-256 of 64 hex digits")
		}
	}
	return nil
}

// argv returns the command for this system, with the plugin's files in dir.
func (s *Spec) argv(dir string) ([]string, error) {
	for _, key := range []string{runtime.GOOS + "/" + runtime.GOARCH, runtime.GOOS, "*"} {
		argv, ok := s.Command[key]
		if !ok {
			continue
		}
		argv = slices.Clone(argv)
		for i, arg := range argv {
			if strings.HasPrefix(arg, "./") {
				argv[i] = filepath.Join(dir, filepath.FromSlash(arg))
			}
		}
		if runtime.GOOS == "windows" && strings.HasPrefix(s.Command[key][0], "./") && filepath.Ext(argv[0]) == "" {
			argv[0] += ".exe"
		}
		return argv, nil
	}
	return nil, fmt.Errorf("it has no command for %s/%s, only for %s", runtime.GOOS, runtime.GOARCH,
		strings.Join(slices.Sorted(maps.Keys(s.Command)), ", "))
}

// program returns the program for this system if it is in the plugin's folder,
// else "".
func (s *Spec) program(dir string) (string, error) {
	argv, err := s.argv(dir)
	if err != nil || !filepath.IsAbs(argv[0]) {
		return "", err
	}
	return argv[0], nil
}

// Lines describes the manifest for the user who has to approve it.
func (m Manifest) Lines() []string {
	var lines []string
	add := func(what string, list []string) {
		if len(list) > 0 {
			lines = append(lines, what+" "+strings.Join(list, ", "))
		}
	}
	add("read", m.Read)
	add("write", m.Write)
	if slices.Contains(m.Network, "*") {
		lines = append(lines, "connect to any host")
	} else {
		add("connect to", m.Network)
	}
	if m.Exec {
		lines = append(lines, "start programs, and read the folders of PATH with their libraries")
	}
	add("see the environment variables", m.Env)
	add("get the secrets", m.Secrets)
	add("use", m.Limits.lines())
	add("run hooks in all sessions at", m.Hooks)
	if b := m.Model; b.MaxTokens > 0 {
		lines = append(lines, fmt.Sprintf("ask the model, at your cost: %d times a call, at most %d tokens each", cmp.Or(b.Requests, modelRequests), b.MaxTokens))
	}
	if len(lines) == 0 {
		lines = []string{"nothing but compute: no network, no environment variables"}
	}
	return append(lines, "besides: read system programs and libraries and its own folder; read and write its data directory")
}

// lines describes the limits that differ from the user's.
func (l Limits) lines() (list []string) {
	add := func(n int, what string) {
		if n > 0 {
			list = append(list, fmt.Sprintf(what, n))
		}
	}
	add(l.MemoryMiB, "%d MiB of memory")
	add(l.Processes, "%d processes and threads")
	add(l.CPUSeconds, "%d seconds of processor time")
	return list
}

// Visible returns the directories that a plugin in a folder reads besides what its
// manifest says: the installation of its program.
func (s *Spec) Visible(dir, home string) []string {
	argv, err := s.argv(dir)
	if err != nil {
		return nil
	}
	return interpreter(argv, dir, home)
}

// beyond returns what the manifest grants in addition to another.
func (m Manifest) beyond(other Manifest) []string {
	var more []string
	add := func(what string, mine, theirs []string) {
		for _, v := range mine {
			if !slices.Contains(theirs, v) && !slices.Contains(theirs, "*") {
				more = append(more, what+" "+v)
			}
		}
	}
	add("read", m.Read, slices.Concat(other.Read, other.Write))
	add("write", m.Write, other.Write)
	add("network", m.Network, other.Network)
	add("env", m.Env, other.Env)
	add("secret", m.Secrets, other.Secrets)
	add("hooks at", m.Hooks, other.Hooks)
	mine, theirs := m.Model, other.Model
	if mine.MaxTokens > 0 && (mine.MaxTokens > theirs.MaxTokens || cmp.Or(mine.Requests, modelRequests) > cmp.Or(theirs.Requests, modelRequests)) {
		more = append(more, fmt.Sprintf("ask the model %d times a call, for %d tokens each", cmp.Or(mine.Requests, modelRequests), mine.MaxTokens))
	}
	if m.Exec && !other.Exec {
		more = append(more, "exec")
	}
	if mine, theirs := m.Limits, other.Limits; mine.MemoryMiB > theirs.MemoryMiB || mine.Processes > theirs.Processes || mine.CPUSeconds > theirs.CPUSeconds {
		add("use", mine.lines(), theirs.lines())
	}
	return more
}

// printable reports whether text is one line without hidden characters.
func printable(text string) bool { return text == cleanLine(text) }

// hostOf returns the host of a URL or of "host:port", for a permission request.
func hostOf(text string) (string, bool) {
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return "", false
		}
		host, port := strings.ToLower(u.Hostname()), u.Port()
		if port == "" || port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
			return host, true
		}
		return net.JoinHostPort(host, port), true
	}
	h, err := sandbox.ParseHost(text)
	if err != nil || h.Below {
		return "", false
	}
	if h.Name != "" {
		return h.Name, true
	}
	return h.Prefix.Addr().String(), h.Prefix.IsSingleIP()
}
