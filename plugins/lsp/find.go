package lsp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Server is a language server: how it starts, and which files it is for.
type Server struct {
	Name    string   `json:"name"`
	Command []string `json:"command"` // the program, absolute, and its arguments
	Env     []string `json:"env,omitempty"`
	// Extensions has the IDs of languages by the extensions of file names: ".go".
	Extensions map[string]string `json:"extensions"`
	// Markers are files that mark the directory of a project: "go.mod".
	Markers []string `json:"markers,omitempty"`
	// Folders says that one process can have several projects.
	Folders bool `json:"folders,omitempty"`
	// Loads says that the server tells when it has read the workspace, and knows
	// nothing before.
	Loads    bool            `json:"loads,omitempty"`
	Options  json.RawMessage `json:"options,omitempty"`  // its initializationOptions
	Settings json.RawMessage `json:"settings,omitempty"` // its configuration, by section
}

// Config is what a user sets for a server. A known server needs nothing of it.
type Config struct {
	Command    string
	Args       []string
	Env        map[string]string
	Languages  []string          // by name: "go", "python"
	Extensions map[string]string // further ones, as in Server
	Options    json.RawMessage
	Settings   json.RawMessage
	Disabled   bool
}

// languages are the IDs of languages by the extensions of their files.
var languages = map[string]map[string]string{
	"go":         {".go": "go"},
	"typescript": {".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact"},
	"javascript": {".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact"},
	"python":     {".py": "python", ".pyi": "python"},
	"rust":       {".rs": "rust"},
	"c":          {".c": "c", ".h": "c"},
	"cpp":        {".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp"},
	"csharp":     {".cs": "csharp"},
	"dart":       {".dart": "dart"},
	"elixir":     {".ex": "elixir", ".exs": "elixir"},
	"java":       {".java": "java"},
	"kotlin":     {".kt": "kotlin", ".kts": "kotlin"},
	"lua":        {".lua": "lua"},
	"php":        {".php": "php"},
	"ruby":       {".rb": "ruby"},
	"scala":      {".scala": "scala"},
	"shell":      {".sh": "shellscript", ".bash": "shellscript"},
	"swift":      {".swift": "swift"},
	"zig":        {".zig": "zig"},
}

// known are the servers that are looked for.
var known = []struct {
	Server
	languages []string
}{
	{Server{
		Name: "gopls", Command: []string{"gopls"}, Markers: []string{"go.work", "go.mod"}, Folders: true,
		Options: json.RawMessage(`{"pullDiagnostics":true,"diagnosticsDelay":"100ms"}`),
	}, []string{"go"}},
	{Server{
		Name: "typescript-language-server", Command: []string{"typescript-language-server", "--stdio"}, Markers: []string{"package.json", "tsconfig.json", "jsconfig.json"},
		Options: json.RawMessage(`{"disableAutomaticTypingAcquisition":true,"tsserver":{"useSyntaxServer":"never"}}`),
	}, []string{"typescript", "javascript"}},
	{Server{
		Name: "pyright", Command: []string{"pyright-langserver", "--stdio"}, Folders: true,
		Markers:  []string{"pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg"},
		Settings: json.RawMessage(`{"python":{"analysis":{"diagnosticMode":"openFilesOnly"}}}`),
	}, []string{"python"}},
	{Server{
		Name: "rust-analyzer", Command: []string{"rust-analyzer"}, Markers: []string{"Cargo.toml", "rust-project.json"}, Folders: true, Loads: true,
		Options: json.RawMessage(`{"cargo":{"buildScripts":{"enable":false}},"procMacro":{"enable":false},"checkOnSave":false}`),
	}, []string{"rust"}},
	{Server{Name: "clangd", Command: []string{"clangd"}, Markers: []string{"compile_commands.json", ".clangd"}}, []string{"c", "cpp"}},
}

// Known are the names of the servers that Find looks for without being told.
func Known() []string {
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return names
}

// FindOptions say where to find servers.
type FindOptions struct {
	Roots   []string // the workspace, absolute
	Trusted bool     // programs in the workspace may run
	Home    string   // of the user
	Getenv  func(string) string
	Servers map[string]Config // what the user set, by name
}

// Find returns the servers on this machine, and why some that are there or named in
// the settings cannot be used.
func Find(o FindOptions) (found []Server, problems []error) {
	f := &finder{o: o, dirs: o.dirs()}
	for _, k := range known {
		set, ok := o.Servers[k.Name]
		if set.Disabled {
			continue
		}
		s := k.Server
		s.Extensions = extensions(k.languages, nil)
		s, err := f.complete(s, set)
		switch {
		case err == nil:
			found = append(found, s)
		case ok || !isNotFound(err):
			problems = append(problems, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		set := o.Servers[name]
		if set.Disabled || slices.Contains(Known(), name) {
			continue
		}
		s, err := f.complete(Server{Name: name}, set)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		found = append([]Server{s}, found...) // before the known ones for its languages
	}
	return found, problems
}

// extensions returns those of languages, and others.
func extensions(names []string, others map[string]string) map[string]string {
	all := map[string]string{}
	for _, name := range names {
		maps.Copy(all, languages[name])
	}
	maps.Copy(all, others)
	return all
}

type finder struct {
	o    FindOptions
	dirs []string
}

// notFound is the error of a program that is not there.
type notFound struct{ name string }

func (e *notFound) Error() string { return fmt.Sprintf("%s is not installed", e.name) }

func isNotFound(err error) bool { return errors.As(err, new(*notFound)) }

// complete applies what the user set, and finds the program.
func (f *finder) complete(s Server, set Config) (Server, error) {
	for _, name := range set.Languages {
		if languages[name] == nil {
			return s, fmt.Errorf("lsp.servers.%s: unknown language %q: expected one of %s; or set extensions, such as {\".%s\": %q}",
				s.Name, name, strings.Join(slices.Sorted(maps.Keys(languages)), ", "), name, name)
		}
	}
	if len(set.Languages)+len(set.Extensions) > 0 {
		s.Extensions = extensions(set.Languages, set.Extensions)
	}
	if set.Command != "" {
		s.Command = append([]string{set.Command}, set.Args...)
	}
	switch {
	case len(s.Extensions) == 0:
		return s, fmt.Errorf("lsp.servers.%s: set the languages that it is for, such as [\"go\"]", s.Name)
	case len(s.Command) == 0:
		return s, fmt.Errorf("lsp.servers.%s: missing command", s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(set.Env)) {
		s.Env = append(s.Env, name+"="+set.Env[name])
	}
	if len(set.Options) > 0 {
		s.Options = set.Options
	}
	if len(set.Settings) > 0 {
		s.Settings = set.Settings
	}
	program, err := f.program(s.Command[0])
	if err != nil {
		return s, err
	}
	s.Command = append([]string{program}, s.Command[1:]...)
	return s, f.adapt(&s, len(set.Options) > 0)
}

// program finds a program. One in the workspace needs trust.
func (f *finder) program(name string) (string, error) {
	if strings.HasPrefix(name, "~/") {
		name = filepath.Join(f.o.Home, name[2:])
	}
	dirs := f.dirs
	if strings.ContainsAny(name, `/\`) {
		dirs = []string{""}
		if !filepath.IsAbs(name) {
			dirs = f.o.Roots[:min(1, len(f.o.Roots))]
		}
	}
	untrusted := ""
	for _, dir := range dirs {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		if path = f.behindProxy(path); path == "" {
			continue
		}
		if !f.o.Trusted && f.inside(path) {
			untrusted = path
			continue
		}
		return path, nil
	}
	if untrusted != "" {
		return "", fmt.Errorf("%s is in the workspace, which is not trusted: run agent trust", untrusted)
	}
	return "", &notFound{name}
}

// inside reports whether a program is in the workspace, also by a link.
func (f *finder) inside(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err != nil || slices.ContainsFunc(f.o.Roots, func(root string) bool { return below(root, path) || below(root, real) })
}

// dirs returns where programs are, in order. Those in the workspace come first, as a
// project's version of a server fits it best.
func (o FindOptions) dirs() []string {
	var list []string
	if o.Trusted {
		for _, root := range o.Roots {
			list = append(list, filepath.Join(root, "node_modules", ".bin"), filepath.Join(root, ".venv", "bin"), filepath.Join(root, ".venv", "Scripts"))
		}
	}
	list = append(list, filepath.SplitList(o.Getenv("PATH"))...)
	home := func(elem ...string) string {
		if o.Home == "" {
			return ""
		}
		return filepath.Join(append([]string{o.Home}, elem...)...)
	}
	gopath := filepath.SplitList(o.Getenv("GOPATH"))
	list = append(list, o.Getenv("GOBIN"))
	for _, dir := range append(gopath, home("go")) {
		if dir != "" {
			list = append(list, filepath.Join(dir, "bin"))
		}
	}
	list = append(list, filepath.Join(cmp.Or(o.Getenv("CARGO_HOME"), home(".cargo")), "bin"), home(".local", "bin"), home(".local", "share", "nvim", "mason", "bin"), home(".bun", "bin"), home(".volta", "bin"), home(".npm-global", "bin"))
	if runtime.GOOS != "windows" {
		llvm, _ := filepath.Glob("/usr/lib/llvm-*/bin")
		slices.Reverse(llvm) // the newest first
		list = append(append(list, "/usr/local/bin", "/opt/homebrew/bin"), llvm...)
	}
	return slices.DeleteFunc(list, func(dir string) bool { return !filepath.IsAbs(dir) })
}

// behindProxy returns the program that rustup runs under a name; empty if the
// component is not installed.
func (f *finder) behindProxy(path string) string {
	real, err := filepath.EvalSymlinks(path)
	name := filepath.Base(path)
	if err != nil || strings.TrimSuffix(filepath.Base(real), ".exe") != "rustup" || strings.HasPrefix(name, "rustup") {
		return path
	}
	home := cmp.Or(f.o.Getenv("RUSTUP_HOME"), filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(path))), ".rustup"))
	there, _ := filepath.Glob(filepath.Join(home, "toolchains", "*", "bin", name))
	if len(there) == 0 {
		return ""
	}
	i := slices.IndexFunc(there, func(p string) bool { return strings.Contains(p, "stable") })
	return there[max(i, 0)]
}

// adapt makes a server leave alone what the workspace could make it run, unless that
// is trusted, and use the interpreter of a trusted one.
func (f *finder) adapt(s *Server, own bool) error {
	switch {
	case s.Name == "typescript-language-server" && !f.o.Trusted:
		// It runs the compiler in the workspace, unless it is given another.
		compiler := typescript(s.Command[0])
		if compiler == "" {
			return fmt.Errorf("%s would run the TypeScript compiler in the workspace, which is not trusted: run agent trust, or install typescript beside it", s.Command[0])
		}
		s.Options = merge(s.Options, map[string]any{"tsserver": map[string]any{"path": compiler}})
	case s.Name == "rust-analyzer" && f.o.Trusted && !own:
		s.Options = json.RawMessage(`{"checkOnSave":false}`)
	case s.Name == "pyright" && f.o.Trusted:
		for _, root := range f.o.Roots {
			for _, at := range []string{"bin/python", "Scripts/python.exe"} {
				if path := filepath.Join(root, ".venv", filepath.FromSlash(at)); exists(path) {
					s.Settings = merge(s.Settings, map[string]any{"python": map[string]any{"pythonPath": path}})
				}
			}
		}
	}
	return nil
}

// typescript returns the compiler that is installed beside a program.
func typescript(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(real); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, "node_modules", "typescript", "lib", "tsserver.js"); exists(path) {
			return path
		}
	}
	return ""
}

// merge adds members to a JSON object, also to the objects in it.
func merge(object json.RawMessage, more map[string]any) json.RawMessage {
	all := map[string]any{}
	_ = json.Unmarshal(object, &all) // an invalid one is replaced
	var into func(to, from map[string]any)
	into = func(to, from map[string]any) {
		for name, value := range from {
			inner, ok := value.(map[string]any)
			old, was := to[name].(map[string]any)
			if ok && was {
				into(old, inner)
			} else {
				to[name] = value
			}
		}
	}
	into(all, more)
	text, _ := json.Marshal(all) // it was JSON
	return text
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// below reports whether a path is a directory or in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// HasFiles reports whether a directory has a file of one of the servers, among the
// first 20,000 entries.
func HasFiles(dir string, servers []Server) bool {
	left, found := 20_000, false
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if left--; left < 0 {
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			return nil // not readable
		case d.IsDir() && path != dir && skipped(d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular() && serverOf(servers, path) != nil:
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// skipped are directories without a project's sources.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "node_modules" || name == "target" || name == "__pycache__" || name == "venv"
}

// serverOf returns the server for a file, or nil.
func serverOf(servers []Server, path string) *Server {
	ext := strings.ToLower(filepath.Ext(path))
	for i := range servers {
		if servers[i].Extensions[ext] != "" {
			return &servers[i]
		}
	}
	return nil
}
