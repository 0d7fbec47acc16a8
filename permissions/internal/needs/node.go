package needs

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

var nodePrograms = table{
	"npm pnpm yarn bun": nodePackages,
	"npx pnpx bunx":     nodeRunner,
	"deno":              denoCommand,
	"node-gyp":          func(c *command) { c.hosts("downloads headers of Node.js", "nodejs.org") },
	"playwright":        browsers,
	"corepack":          func(c *command) { c.hosts("downloads package managers", c.nodeRegistries()...) },
}

// offlineNode are the subcommands that need no registry.
const offlineNode = "run run-script test t tst start stop restart build ls list ll la why explain pkg prefix root bin version help help-search prune cache dedupe config c " +
	"get set completion rebuild fund query store import licenses workspaces workspace node lint dev preview patch patch-commit"

func nodePackages(c *command) {
	sub := c.sub("-C --prefix --dir --cwd -w --workspace --filter -F --registry --userconfig --loglevel")
	if dir := c.value("-C", "--prefix", "--dir", "--cwd"); dir != "" {
		c.Machine = c.at(c.abs(dir))
	}
	switch {
	case sub == "" && c.name == "yarn":
	case sub == "" || c.has("--offline") && sub != "config":
		return
	case sub == "exec" || sub == "x" || sub == "dlx":
		nodeRunner(c.shift(sub))
		return
	case (sub == "config" || sub == "c" || sub == "set") && c.has("set", "delete", "edit", "rm") && !c.has("--location=project", "--location", "-L"):
		c.escape("changes your settings, outside the workspace")
		return
	case one(sub, "login logout adduser publish unpublish deprecate owner access token team org whoami profile dist-tag"):
		c.escape("needs your sign-in, which is hidden from commands in the sandbox")
		return
	case c.name == "bun" && strings.Contains(sub, "."), one(sub, offlineNode), c.isScript(sub):
		return
	}
	if c.has("-g", "--global", "--location=global", "global") {
		c.escape("installs programs outside the workspace")
		return
	}
	c.packages(c.nodeRegistries())
}

// isScript reports whether yarn, pnpm or bun would run a script of package.json.
func (c *command) isScript(name string) bool {
	if c.name == "npm" || one(name, "install add ci i up update upgrade audit outdated info view") {
		return false
	}
	return strings.Contains(c.read(path.Join(c.Dir, "package.json")), `"`+name+`":`)
}

// nodeRunner is npx: it downloads a program that is not installed.
func nodeRunner(c *command) {
	name := c.sub("-p --package -c --call")
	if name == "" || c.has("--no-install", "--offline", "--no") {
		return
	}
	bare, _, _ := strings.Cut(strings.TrimPrefix(name, "@"), "@")
	if c.above(path.Join("node_modules", ".bin", path.Base(bare))) != "" {
		return
	}
	c.packages(c.nodeRegistries())
}

func (c *command) packages(registries []string) {
	if len(registries) == 0 {
		return
	}
	if c.needsUserConfig() {
		c.escape("needs your registries and keys in ~/.npmrc, which is hidden from commands in the sandbox, and downloads packages from " + strings.Join(registries, ", "))
		return
	}
	c.hosts("downloads packages", registries...)
	for _, word := range c.args {
		switch h := hostOf(word); {
		case h != "":
			c.hosts("downloads a package", h)
		case strings.HasPrefix(word, "github:"), regexp.MustCompile(`^[\w-]+/[\w.-]+$`).MatchString(word) && !c.Exists(c.abs(word)):
			c.hosts("downloads a package from GitHub", "github.com", "codeload.github.com")
		}
	}
}

var npmRegistry = lazy.Regexp(`(?mi)^\s*(?:@[\w.-]+:)?registry\s*=\s*(\S+)|^\s*(?:npmRegistryServer|registry)\s*:?\s+["']?(https?://[^"'\s]+)|^\s*registry\s*=\s*"([^"]+)"`)

// needsUserConfig reports whether the user's own settings, which are hidden, name
// a registry that the command cannot know otherwise.
func (c *command) needsUserConfig() bool {
	return c.registryIn(path.Join(c.Home, ".npmrc")) != nil && c.projectRegistries() == nil && c.value("--registry") == "" &&
		c.Getenv("npm_config_registry") == "" && c.Getenv("NPM_CONFIG_REGISTRY") == ""
}

func (c *command) registryIn(file string) (hosts []string) {
	for _, m := range npmRegistry().FindAllStringSubmatch(c.read(file), -1) {
		if h := hostOf(strings.Trim(m[1]+m[2]+m[3], `"'`)); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// projectRegistries returns the registries that the files of the project name.
func (c *command) projectRegistries() (hosts []string) {
	for _, name := range []string{".npmrc", ".yarnrc.yml", ".yarnrc", "bunfig.toml"} {
		if file := c.above(name); file != "" && path.Dir(file) != c.Home {
			hosts = append(hosts, c.registryIn(file)...)
		}
	}
	return hosts
}

var resolvedPackage = lazy.Regexp(`(?:"resolved": ?"|resolved "|tarball: )(?:git\+)?(https?://[^/"#]+)`)

// nodeRegistries returns the hosts of the registries: those of options, variables
// and settings, and those of the lock file.
func (c *command) nodeRegistries() (hosts []string) {
	for _, url := range []string{c.value("--registry"), c.Getenv("npm_config_registry"), c.Getenv("NPM_CONFIG_REGISTRY"), c.Getenv("YARN_NPM_REGISTRY_SERVER")} {
		if h := hostOf(url); h != "" && len(hosts) == 0 {
			hosts = append(hosts, h)
		}
	}
	if len(hosts) == 0 {
		hosts = c.projectRegistries()
	}
	if len(hosts) == 0 {
		hosts = c.registryIn(path.Join(c.Home, ".npmrc"))
	}
	usual := []string{"registry.npmjs.org", "registry.yarnpkg.com"}
	if len(hosts) == 0 {
		hosts = usual[:1]
		if c.name == "yarn" {
			hosts = usual[1:]
		}
	}
	for _, lock := range []string{"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"} {
		for _, m := range resolvedPackage().FindAllStringSubmatch(c.read(path.Join(c.Dir, lock)), -1) {
			// The usual registry stands for the configured one.
			if h := hostOf(m[1]); h != "" && !slices.Contains(hosts, h) && (!slices.Contains(usual, h) || lock == "yarn.lock") {
				hosts = append(slices.Clip(hosts), h)
			}
		}
	}
	return hosts
}

func denoCommand(c *command) {
	if c.has("--cached-only", "--no-remote") || one(c.sub(""), "fmt lint eval repl info types completions compile") {
		return
	}
	if one(c.sub(""), "install add cache outdated update") {
		c.hosts("downloads packages", "jsr.io", "deno.land", "registry.npmjs.org")
	}
	for _, word := range c.args {
		c.hosts("downloads a module", hostOf(word))
	}
}

func browsers(c *command) {
	if c.sub("") == "install" {
		c.hosts("downloads browsers", "cdn.playwright.dev", "playwright.download.prss.microsoft.com")
	}
}
