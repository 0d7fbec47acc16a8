package needs

import (
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

var otherRegistries = table{
	"cargo":              cargoCommand,
	"gem":                gemCommand,
	"bundle bundler":     bundleCommand,
	"composer":           composerCommand,
	"dotnet nuget":       dotnetCommand,
	"mix":                fetching("deps.get deps.update local.hex local.rebar archive.install", "hex.pm", "repo.hex.pm", "builds.hex.pm"),
	"rebar3":             fetching("get-deps upgrade compile ct eunit", "hex.pm", "repo.hex.pm"),
	"dart flutter":       fetching("pub", "pub.dev", "storage.googleapis.com"),
	"stack cabal":        fetching("update build install setup", "hackage.haskell.org", "casa.stackage.org", "s3.amazonaws.com", "raw.githubusercontent.com"),
	"swift":              fetching("package build test", "github.com"),
	"pod":                fetching("install update repo", "cdn.cocoapods.org", "github.com"),
	"terraform tofu":     fetching("init get providers", "registry.terraform.io", "registry.opentofu.org", "releases.hashicorp.com", "github.com", "*.githubusercontent.com"),
	"helm":               helmCommand,
	"luarocks opam cpan": func(c *command) { c.escape("installs packages outside the workspace") },
	"zig":                fetching("fetch", "github.com", "codeload.github.com"),
	"bazel bazelisk":     fetching("build test run fetch sync mod", "github.com", "*.githubusercontent.com", "bcr.bazel.build", "mirror.bazel.build", "releases.bazel.build"),
}

// fetching returns what finds the hosts of the given subcommands.
func fetching(subs string, hosts ...string) func(*command) {
	return func(c *command) {
		if one(c.sub(""), subs) && !c.has("--offline", "--help") {
			c.hosts("downloads packages", hosts...)
		}
	}
}

func helmCommand(c *command) {
	if one(c.sub(""), "template lint create show package") {
		c.hosts("downloads charts", urlHosts(strings.Join(c.args, " "))...)
	} else if c.sub("") != "" {
		c.escape("needs the settings of your clusters and charts, which are hidden from commands in the sandbox")
	}
}

var (
	cargoSource  = lazy.Regexp(`(?m)^\s*(?:registry|index)\s*=\s*"(?:sparse\+|git\+)?(https?://[^"]+)"`)
	cargoPackage = lazy.Regexp(`(?m)^name = "([^"]+)"\nversion = "([^"]+)"\nsource = "(registry|sparse|git)\+([^"]+)"`)
)

func cargoCommand(c *command) {
	sub := c.sub("+nightly +stable -C --manifest-path --config")
	for strings.HasPrefix(sub, "+") {
		sub = c.shift(sub).sub("")
	}
	if c.has("--offline", "--frozen") {
		return
	}
	switch sub {
	case "build", "b", "check", "c", "test", "t", "run", "r", "bench", "doc", "d", "clippy", "nextest", "rustc":
		if c.missingCrates() {
			c.crates("downloads crates that the cache does not have")
		}
	case "fetch", "update", "generate-lockfile":
		c.crates("downloads crates")
	case "add", "search", "info", "vendor", "outdated", "audit", "tree", "metadata":
		if (sub == "tree" || sub == "metadata") && !c.missingCrates() {
			return
		}
		c.crates("downloads crates")
		if sub == "audit" {
			c.hosts("downloads advisories", "github.com")
		}
	case "install":
		c.crates("downloads crates")
		if c.value("--root") == "" {
			c.add(Dir, path.Join(c.Home, ".cargo"), "installs programs")
		}
	case "publish", "login", "logout", "owner", "yank":
		c.escape("needs your sign-in, which is hidden from commands in the sandbox")
	}
}

// crates adds the registries: those that settings name, else crates.io.
func (c *command) crates(why string) {
	settings := ""
	for _, file := range []string{c.above(".cargo/config.toml"), c.above(".cargo/config"), path.Join(c.Home, ".cargo", "config.toml")} {
		if file != "" {
			settings += c.read(file)
		}
	}
	replaced := strings.Contains(settings, "replace-with")
	if replaced && strings.Contains(settings, "directory =") {
		return // vendored
	}
	c.add(Cache, path.Join(c.Home, ".cargo"), "stores crates")
	if !replaced {
		c.hosts(why, "index.crates.io", "static.crates.io")
	}
	for _, m := range cargoSource().FindAllStringSubmatch(settings, -1) {
		c.hosts(why, hostOf(m[1]))
	}
	for _, m := range cargoPackage().FindAllStringSubmatch(c.read(path.Join(c.Dir, "Cargo.lock")), -1) {
		if m[3] == "git" {
			c.hosts(why, hostOf(m[4]))
		}
	}
}

// missingCrates reports whether the cache does not have a crate of the lock file.
func (c *command) missingCrates() bool {
	file := c.above("Cargo.lock")
	if file == "" {
		manifest := c.read(path.Join(c.Dir, "Cargo.toml"))
		_, dependencies, ok := strings.Cut(manifest, "dependencies]\n")
		return ok && strings.Contains(strings.SplitN(dependencies, "\n[", 2)[0], "=") && !strings.Contains(dependencies, "path =")
	}
	registries := path.Join(c.Home, ".cargo", "registry", "cache")
	indexes := c.ReadDir(registries)
	for _, m := range cargoPackage().FindAllStringSubmatch(c.read(file), -1) {
		found := m[3] == "git" && c.Exists(path.Join(c.Home, ".cargo", "git", "db"))
		for _, index := range indexes {
			found = found || c.Exists(path.Join(registries, index, m[1]+"-"+m[2]+".crate"))
		}
		if !found {
			return true
		}
	}
	return false
}

func gemCommand(c *command) {
	switch sub := c.sub(""); {
	case one(sub, "install update uninstall") && c.value("-i", "--install-dir") == "":
		c.escape("installs gems outside the workspace, from rubygems.org")
	case one(sub, "push signin signout owner yank"):
		c.escape("needs your sign-in, which is hidden from commands in the sandbox")
	case one(sub, "install update fetch search outdated info") && !c.has("--local", "-l"):
		c.hosts("downloads gems", "rubygems.org", "index.rubygems.org")
	}
}

func bundleCommand(c *command) {
	sub := c.sub("--gemfile --path")
	if sub == "" {
		sub = "install"
	}
	if !one(sub, "install update add lock outdated cache package") || c.has("--local") {
		return
	}
	if !one(sub, "lock outdated") && c.Getenv("BUNDLE_PATH") == "" && c.value("--path") == "" && !strings.Contains(c.read(path.Join(c.Dir, ".bundle", "config")), "BUNDLE_PATH") {
		c.escape("installs gems outside the workspace, from rubygems.org (BUNDLE_PATH names no directory in it)")
		return
	}
	hosts := append(urlHosts(c.read(path.Join(c.Dir, "Gemfile"))), urlHosts(c.read(path.Join(c.Dir, "Gemfile.lock")))...)
	c.hosts("downloads gems", hosts...)
	for _, n := range c.needs {
		if n.Resource == "rubygems.org" {
			c.hosts("downloads gems", "index.rubygems.org")
		}
	}
	if len(hosts) == 0 {
		c.hosts("downloads gems", "rubygems.org", "index.rubygems.org")
	}
}

func composerCommand(c *command) {
	sub := c.sub("-d --working-dir")
	switch {
	case c.has("global"):
		c.escape("installs packages outside the workspace")
	case one(sub, "install i update u upgrade require create-project outdated audit search show") && (sub != "show" || c.has("-a", "--all", "-l", "--latest")):
		c.hosts("downloads packages", "repo.packagist.org", "api.github.com", "codeload.github.com", "github.com")
		_, repositories, _ := strings.Cut(c.read(path.Join(c.Dir, "composer.json")), `"repositories"`)
		c.hosts("downloads packages", urlHosts(strings.ReplaceAll(repositories, `\/`, "/"))...)
	}
}

func dotnetCommand(c *command) {
	sub := c.sub("")
	if !one(sub, "restore build test run publish add tool new pack install") || c.has("--no-restore", "--no-build") {
		return
	}
	if c.has("-g", "--global") {
		c.escape("installs programs outside the workspace")
		return
	}
	hosts := urlHosts(c.read(path.Join(c.Dir, "nuget.config")) + c.read(path.Join(c.Dir, "NuGet.Config")))
	if len(hosts) == 0 {
		hosts = []string{"api.nuget.org"}
	}
	c.hosts("downloads packages", hosts...)
}
