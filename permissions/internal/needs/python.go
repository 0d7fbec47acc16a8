package needs

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

var pythonPrograms = table{
	"pip": pipCommand,
	"python": func(c *command) {
		if i := slices.Index(c.args, "-m"); i >= 0 && i+1 < len(c.args) {
			c.name = c.args[i+1]
			c.args = c.args[i+2:]
			switch c.name {
			case "pip":
				pipCommand(c)
			case "build":
				c.indexes("downloads what the build needs")
			}
		}
	},
	"uv":                          uvCommand,
	"uvx":                         func(c *command) { c.indexes("downloads packages") },
	"poetry pdm hatch pipenv rye": projectPython,
	"tox nox":                     func(c *command) { c.indexes("downloads packages for its environments") },
	"pipx":                        func(c *command) { c.escape("installs programs outside the workspace") },
	"conda mamba micromamba":      condaCommand,
	"twine":                       func(c *command) { c.escape("needs your sign-in, which is hidden from commands in the sandbox") },
	"huggingface-cli hf":          func(c *command) { c.hosts("downloads models", "huggingface.co", "*.hf.co") },
	"pre-commit":                  preCommit,
}

func pipCommand(c *command) {
	sub := c.sub("--python --proxy --cache-dir")
	if !one(sub, "install download wheel index search uninstall config") || c.has("--no-index", "--dry-run") && !c.has("--find-links", "-f") {
		return
	}
	c.shift(sub)
	switch {
	case sub == "config":
		if c.has("set", "unset", "edit") {
			c.escape("changes your settings, outside the workspace")
		}
		return
	case sub != "install" && sub != "uninstall", c.inVenv(), c.value("-t", "--target", "--prefix", "--root") != "":
	case c.Exists(path.Join(c.Home, ".local")):
		c.add(Dir, path.Join(c.Home, ".local"), "installs packages for your user, as no environment is active")
	default:
		c.escape("installs packages outside the workspace, as no environment is active")
		return
	}
	if shims := path.Join(cmp.Or(c.Getenv("PYENV_ROOT"), path.Join(c.Home, ".pyenv")), "shims"); one(sub, "install uninstall") && !c.inVenv() && c.Exists(shims) {
		c.add(Dir, shims, "lets pyenv find installed programs")
	}
	if sub != "uninstall" {
		c.indexes("downloads packages")
	}
}

// inVenv reports whether pip belongs to an environment.
func (c *command) inVenv() bool {
	return c.Venv || c.Getenv("VIRTUAL_ENV") != "" || strings.Contains(c.program, "/") && c.Exists(path.Join(path.Dir(path.Dir(c.abs(c.program))), "pyvenv.cfg"))
}

var pipIndex = lazy.Regexp(`(?m)^\s*(?:-i|--index-url|--extra-index-url|-f|--find-links|index-url|extra-index-url|find-links|index)[ =]+\s*(\S+)`)

// indexes adds the package indexes of Python: those of options, variables and
// settings.
func (c *command) indexes(why string) {
	main := cmp.Or(hostOf(c.value("-i", "--index-url", "--default-index")), hostOf(c.Getenv("PIP_INDEX_URL")), hostOf(c.Getenv("UV_DEFAULT_INDEX")), hostOf(c.Getenv("UV_INDEX_URL")))
	var others []string
	for _, url := range append(c.values("--extra-index-url", "--index", "-f", "--find-links"), strings.Fields(c.Getenv("PIP_EXTRA_INDEX_URL")+" "+c.Getenv("UV_INDEX"))...) {
		others = append(others, hostOf(url))
	}
	settings := []string{c.Getenv("PIP_CONFIG_FILE"), "/etc/pip.conf", path.Join(c.Getenv("VIRTUAL_ENV"), "pip.conf")}
	for _, name := range c.values("-r", "--requirement", "-c", "--constraint") {
		settings = append(settings, c.abs(name))
	}
	for _, file := range settings {
		if !path.IsAbs(file) {
			continue
		}
		text := c.read(file)
		for _, m := range pipIndex().FindAllStringSubmatch(text, -1) {
			if h := hostOf(m[1]); main == "" && !strings.Contains(m[0], "extra") && !strings.Contains(m[0], "find") && !strings.Contains(m[0], "-f") {
				main = h
			} else {
				others = append(others, h)
			}
		}
		if strings.Contains(text, "git+") || strings.Contains(text, " @ ") {
			others = append(others, urlHosts(text)...)
		}
	}
	project := c.read(path.Join(c.Dir, "pyproject.toml"))
	for _, m := range projectSource().FindAllStringSubmatch(project, -1) {
		others = append(others, urlHosts(m[1])...)
	}
	for _, user := range []string{".config/pip/pip.conf", ".pip/pip.conf"} {
		if m := pipIndex().FindStringSubmatch(c.read(path.Join(c.Home, user))); m != nil && main == "" {
			c.escape("needs the index " + m[1] + " of ~/" + user + ", which is hidden from commands in the sandbox")
			return
		}
	}
	if main = cmp.Or(main, "pypi.org"); main == "pypi.org" {
		c.hosts(why, main, "files.pythonhosted.org")
	}
	c.hosts(why, append([]string{main}, others...)...)
	for _, word := range c.args {
		c.hosts(why, hostOf(word))
	}
}

var projectSource = lazy.Regexp(`(?s)\[\[tool\.(?:uv\.index|poetry\.source|pdm\.source)\]\]([^\[]*)`)

func uvCommand(c *command) {
	sub := c.sub("--directory --project --python -p")
	if sub == "" || c.has("--offline") || one(sub, "version cache help init tree export venv") {
		return
	}
	c.shift(sub)
	switch sub {
	case "self":
		c.escape("changes programs outside the workspace")
	case "tool":
		if one(c.sub(""), "install upgrade uninstall") {
			c.escape("installs programs outside the workspace")
		} else {
			c.indexes("downloads packages")
		}
	case "python":
		if c.sub("") == "install" {
			c.escape("installs Python outside the workspace, from github.com")
		}
	case "publish":
		c.escape("needs your sign-in, which is hidden from commands in the sandbox")
	case "pip":
		if c.has("--system") {
			c.escape("installs packages outside the workspace")
		} else if one(c.sub(""), "install sync compile") {
			c.indexes("downloads packages")
		}
	default: // sync, add, run, lock, remove, build
		if sub == "run" && c.Exists(path.Join(c.Dir, ".venv")) && !c.has("--with") {
			return
		}
		c.indexes("downloads packages")
	}
}

func projectPython(c *command) {
	switch sub := c.sub("-C --directory --project"); {
	case one(sub, "install add update lock sync remove upgrade self show search build uninstall dep env"):
		if sub == "self" || sub == "env" {
			return
		}
		c.indexes("downloads packages")
	case one(sub, "publish config"):
		c.escape("needs your settings and sign-in, outside the workspace")
	}
}

func condaCommand(c *command) {
	if one(c.sub(""), "install create update remove env init config") {
		c.escape("installs packages outside the workspace, from conda.anaconda.org and repo.anaconda.com")
	} else if c.sub("") == "search" {
		c.hosts("searches packages", "conda.anaconda.org", "repo.anaconda.com")
	}
}

func preCommit(c *command) {
	if one(c.sub("-c --config"), "run autoupdate install-hooks try-repo") {
		c.hosts("downloads hooks", append(urlHosts(c.read(path.Join(c.Dir, ".pre-commit-config.yaml"))), "pypi.org", "files.pythonhosted.org")...)
	}
	if one(c.sub("-c --config"), "install uninstall") {
		c.escape("changes .git/hooks, which git runs")
	}
}
