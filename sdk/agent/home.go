package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// HomeView is what sandboxed processes see of the user's home directory, besides the
// workspace. Secrets are hidden in any case.
type HomeView string

// The views. The zero value is HomeListed.
const (
	HomeMasked HomeView = "masked" // skills, and the programs of PATH
	HomeListed HomeView = "listed" // also toolchains, caches and the settings that builds need
	HomeOpen   HomeView = "open"   // everything
)

// caches are directories below the home directory that commands write to. In the
// sandbox they write to a copy.
var caches = []string{
	".cache", "Library/Caches", ".npm", ".pnpm-store", ".local/share/pnpm", ".yarn", ".bun/install/cache", ".deno", "go/pkg",
	".cargo/registry", ".cargo/git", ".rustup/tmp", ".m2/repository", ".gradle/caches", ".ivy2", ".sbt", ".nuget", ".gem", ".composer/cache", ".node-gyp",
}

// toolchains are what builds read below the home directory: compilers, runtimes,
// installed packages, and settings.
var toolchains = []string{
	"go", "sdk", ".go", ".gvm", ".goenv", ".config/go", ".config/golangci*",
	".cargo", ".rustup", ".config/rustfmt", ".zig", ".zvm", ".config/zls.json",
	".nvm", ".fnm", ".local/share/fnm", ".volta", ".nodenv", ".n", "n", ".bun", ".npm-global", ".npm-packages", ".node_modules", "node_modules", ".config/yarn", ".config/pnpm", ".yarnrc", ".yarnrc.yml", ".node-version", ".nvmrc",
	".pyenv", ".rye", ".local/share/uv", ".config/uv", ".local/share/pipx", ".local/pipx", ".virtualenvs", ".venv", ".local/share/virtualenv*", ".local/share/pypoetry", ".config/pypoetry", ".config/pip", ".pip",
	".pydistutils.cfg", ".config/ruff", ".config/black", ".config/mypy", ".config/matplotlib", ".ipython", ".conda", "miniconda*", "anaconda*", "miniforge*", "mambaforge*", "micromamba", ".mamba", ".python-version", ".keras", "nltk_data",
	".rbenv", ".rvm", ".rubies", ".bundle", ".local/share/gem", ".ruby-version", ".irbrc", ".solargraph", ".composer", ".config/composer", ".phpenv", ".phpbrew",
	".sdkman", ".jenv", ".jabba", ".m2", ".gradle", ".konan", ".mvn", ".java", ".ant", ".android", "Android/Sdk", "Library/Android", ".dotnet", ".templateengine", ".local/share/NuGet", ".config/NuGet",
	".opam", ".ghcup", ".cabal", ".stack", ".local/state/cabal", ".config/cabal", ".elm", ".mix", ".hex", ".asdf", ".asdfrc", ".tool-versions", ".mise", ".local/share/mise", ".config/mise", ".local/share/rtx", ".proto", ".pkgx",
	".julia", "R", ".R", ".Rprofile", ".swiftpm", ".swiftly", ".pub-cache", ".dart", ".dart-tool", "flutter", ".flutter", ".config/flutter", ".config/dart", ".luarocks", ".nimble", ".choosenim", ".crystal", ".roswell", "quicklisp", ".clojure", ".lein",
	".nix-profile", ".nix-defexpr", ".local/state/nix", ".config/nix", ".linuxbrew", ".guix-profile", ".ccache", ".config/ccache", ".conan", ".conan2", ".vcpkg", ".bazelrc", ".bazelisk", ".config/bazel*", ".buildozer", ".platformio", ".arduino15",
	".emscripten*", ".wasmer", ".wasmtime", ".foundry", ".local/bin", ".local/lib", ".local/include", ".local/share/man", ".local/share/bash-completion", ".terraform.d/plugin-cache", ".terraform.d/plugins", ".helm", ".local/share/helm",
	".gitconfig", ".gitconfig.*", ".gitconfig-*", ".config/git", ".gitignore*", ".gitattributes", ".git-templates", ".git-template", ".hgrc", ".editorconfig", ".clang-format", ".clang-tidy", ".prettierrc*", ".eslintrc*", ".config/prettier*", ".ignore", ".rgignore",
	".fdignore", ".ripgreprc", ".config/ripgrep", ".config/bat", ".config/fontconfig", ".fonts", ".fonts.conf", ".local/share/fonts", "Library/Fonts", ".terminfo", ".inputrc", ".dircolors", ".curlrc", ".wgetrc", ".config/user-dirs.dirs", "Library/Developer",
	".matplotlib", ".jupyter", ".local/share/jupyter", ".duckdb", ".local/share/playwright*", "Library/Caches/ms-playwright", ".puppeteerrc*", ".config/puppeteer*", ".electron*", ".tldrc", ".config/gcc", ".config/clangd", ".lldb", ".config/htop",
}

// homeView returns what processes see of the home directory.
func (a *Agent) homeView() HomeView {
	if o := a.opts.Sandbox; o != nil && o.Home != "" {
		return o.Home
	}
	return HomeListed
}

// hiddenHome returns the home directory if most of it is hidden, else "", and what
// stays visible.
func (a *Agent) hiddenHome() (home string, open []string) {
	dir, err := os.UserHomeDir()
	if view := a.homeView(); err != nil || view == HomeOpen {
		return "", nil
	}
	home = sandbox.Resolve(dir)
	return home, a.openHome(home)
}

// openHome returns what stays visible of the home directory.
func (a *Agent) openHome(home string) []string {
	open := sandbox.ProgramPaths(sandbox.PathDirs(os.Environ()), home)
	if o := a.opts.Sandbox; o != nil {
		open = append(open, o.Writable...)
	}
	for _, dir := range []string{".agents/skills", ".claude/skills"} {
		open = append(open, filepath.Join(home, dir))
	}
	if a.opts.Home != "" {
		open = append(open, filepath.Join(a.opts.Home, "skills"), filepath.Join(a.opts.Home, "cache"))
	}
	if a.homeView() != HomeMasked {
		entries := sync.OnceValue(func() []os.DirEntry {
			list, _ := os.ReadDir(home) // then nothing in it is found
			return list
		})
		for _, name := range slices.Concat(caches, toolchains) {
			open = append(open, below(home, name, entries)...)
		}
		open = append(open, namedDirs(os.Environ(), home)...)
	}
	open = sandbox.ResolveAll(open) // such as a cache on another disk
	return open
}

// below returns the paths below a directory with these entries that a name, which
// may have *, stands for. A name without need not exist.
func below(dir, name string, entries func() []os.DirEntry) (paths []string) {
	path := filepath.Join(dir, name)
	switch {
	case !strings.Contains(name, "*"):
		return []string{path}
	case strings.Contains(name, "/"):
		paths, _ = filepath.Glob(path) // the patterns are valid
		return paths
	}
	for _, e := range entries() {
		if ok, err := filepath.Match(name, e.Name()); ok && err == nil {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// namedDirs returns the directories below the home directory that variables of
// toolchains name, such as CARGO_HOME and JAVA_HOME.
func namedDirs(environ []string, home string) (dirs []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		names := func(end string) bool { return strings.HasSuffix(name, end) }
		if strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "AGENT_") || !slices.ContainsFunc([]string{"_HOME", "_ROOT", "_DIR", "PATH", "ROOT", "CACHE", "_PREFIX", "_ENV"}, names) {
			continue
		}
		for _, path := range filepath.SplitList(value) {
			if path = sandbox.Resolve(path); filepath.IsAbs(path) && path != home && sandbox.Below(home, path) && filepath.Base(path) != ".config" {
				dirs = append(dirs, path)
			}
		}
	}
	return dirs
}
