package setup

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/lsp"
)

// LanguageServers returns the language servers on this machine that a session here can
// use, and why others cannot be used.
func (s *Setup) LanguageServers() (lsp.Options, []error) {
	o := lsp.FindOptions{Trusted: s.Trusted, Home: s.UserHome, Getenv: os.Getenv, Servers: map[string]lsp.Config{}}
	for _, dir := range append([]string{s.Dir}, s.addDirs...) {
		o.Roots = append(o.Roots, sandbox.Resolve(dir))
	}
	// A known server starts with options that keep it from running a project's code.
	known := lsp.Known()
	for _, b := range s.bundles().list {
		for _, l := range b.Languages {
			if !slices.Contains(known, strings.TrimSuffix(l.Command, "-langserver")) {
				o.Servers[l.Name] = lsp.Config{Command: l.Command, Args: l.Args, Env: l.Env, Extensions: l.Extensions, Options: l.Options, Settings: l.Settings}
			}
		}
	}
	for name, set := range s.Settings.LSP.Servers {
		o.Servers[name] = lsp.Config{
			Command: set.Command, Args: set.Args, Env: set.Env, Languages: set.Languages, Extensions: set.Extensions,
			Options: rawObject(set.InitializationOptions), Settings: rawObject(set.Settings), Disabled: set.Disabled,
		}
	}
	found, problems := lsp.Find(o)
	return lsp.Options{Servers: found, Roots: o.Roots, Read: s.readByServers(found, o.Roots)}, problems
}

func rawObject(o config.Object) json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	text, _ := json.Marshal(o) // it was JSON
	return text
}

// languageServers returns the options of the bundled plugin lsp, and whether it is used.
func (s *Setup) languageServers() (lsp.Options, bool) {
	set := s.Settings.LSP
	if set.Enabled == "off" || !s.Environment.Local() {
		return lsp.Options{}, false
	}
	o, _ := s.LanguageServers()
	return o, len(o.Servers) > 0 && (set.Enabled == "on" || slices.ContainsFunc(o.Roots, func(root string) bool { return lsp.HasFiles(root, o.Servers) }))
}

// serverLimits are the limits of language servers: they keep a whole workspace in
// memory, as long as the session lasts.
func serverLimits(set plugins.Limits) plugins.Limits {
	return plugins.Limits{MemoryMiB: max(set.MemoryMiB, 8192), Processes: max(set.Processes, 2048), CPUSeconds: max(set.CPUSeconds, 86400)}
}

// readByServers returns what servers read besides the working directory: other
// directories of the workspace, their programs, and the sources of modules.
func (s *Setup) readByServers(servers []lsp.Server, roots []string) (list []string) {
	list = append(list, roots[1:]...)
	home := func(elem ...string) string { return filepath.Join(append([]string{s.UserHome}, elem...)...) }
	gopath := home("go")
	if all := filepath.SplitList(os.Getenv("GOPATH")); len(all) > 0 {
		gopath = all[0]
	}
	cargo := cmp.Or(os.Getenv("CARGO_HOME"), home(".cargo"))
	for _, server := range servers {
		program, real := server.Command[0], sandbox.Resolve(server.Command[0])
		list = append(list, sandbox.ProgramPaths([]string{filepath.Dir(program), filepath.Dir(real)}, s.UserHome)...)
		if before, _, ok := strings.Cut(filepath.ToSlash(real), "/node_modules/"); ok {
			list = append(list, filepath.Join(filepath.FromSlash(before), "node_modules"))
		}
		switch server.Name {
		case "gopls":
			list = append(list, cmp.Or(os.Getenv("GOMODCACHE"), filepath.Join(gopath, "pkg", "mod")), home(".config", "go"), os.Getenv("GOROOT"))
		case "rust-analyzer":
			list = append(list, filepath.Join(cargo, "registry"), filepath.Join(cargo, "git"), filepath.Join(cargo, "config.toml"), cmp.Or(os.Getenv("RUSTUP_HOME"), home(".rustup")))
		case "pyright":
			list = append(list, os.Getenv("VIRTUAL_ENV"), home(".local", "lib"), home(".pyenv"))
		}
	}
	list = slices.DeleteFunc(list, func(path string) bool { return !filepath.IsAbs(path) })
	slices.Sort(list)
	return slices.Compact(list)
}
