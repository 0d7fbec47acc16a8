package needs

import (
	"cmp"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

var goPrograms = table{"go": goCommand}

func goCommand(c *command) {
	sub := c.sub("-C")
	if dir := c.value("-C"); dir != "" {
		c.Machine = c.at(c.abs(dir))
	}
	if sub == "" {
		return
	}
	verb := sub
	c.shift(sub)
	if verb == "mod" || verb == "work" || verb == "env" {
		verb += " " + c.sub("")
	}
	switch verb {
	case "get", "mod download", "mod tidy", "mod vendor", "work sync":
		c.goHosts("downloads modules", c.args)
	case "install":
		if versioned(c.args) {
			c.goHosts("downloads modules", c.args)
		}
		c.add(Dir, cmp.Or(c.Getenv("GOBIN"), path.Join(c.gopath(), "bin")), "installs programs")
	case "list":
		if c.has("-u") || versioned(c.args) {
			c.goHosts("asks for versions of modules", c.args)
		}
	case "build", "test", "vet", "run", "generate":
		if file := c.above("go.mod"); c.missingModules(file) || verb == "run" && versioned(c.args) {
			c.goHosts("downloads modules that the module cache does not have", nil)
		}
	case "env":
	case "env -w", "env -u":
		c.escape("changes your settings, outside the workspace")
	case "telemetry", "bug":
		c.escape("works outside the workspace")
	}
	if strings.HasPrefix(verb, "env") && c.has("-w", "-u") {
		c.escape("changes your settings, outside the workspace")
	}
}

// at returns the machine with another directory.
func (m *Machine) at(dir string) *Machine {
	moved := *m
	moved.Dir = dir
	return &moved
}

func versioned(words []string) bool { return strings.Contains(strings.Join(words, " "), "@") }

func (c *command) gopath() string {
	first, _, _ := strings.Cut(c.Getenv("GOPATH"), ":")
	return cmp.Or(first, path.Join(c.Home, "go"))
}

var goSetting = lazy.Regexp(`(?m)^(\w+)=(.*)$`)

// goSettings returns the settings of go env that matter here.
func (c *command) goSettings() map[string]string {
	set := map[string]string{"GOPROXY": "https://proxy.golang.org,direct", "GOSUMDB": "sum.golang.org"}
	file := cmp.Or(c.Getenv("GOENV"), path.Join(cmp.Or(c.Getenv("XDG_CONFIG_HOME"), path.Join(c.Home, ".config")), "go", "env"))
	for _, m := range goSetting().FindAllStringSubmatch(c.read(file), -1) {
		set[m[1]] = m[2]
	}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOSUMDB", "GONOPROXY", "GOFLAGS"} {
		set[name] = cmp.Or(c.Getenv(name), set[name])
	}
	return set
}

// goHosts adds the proxies of modules, or the hosts of modules that are fetched
// directly.
func (c *command) goHosts(why string, modules []string) {
	set := c.goSettings()
	if strings.Contains(set["GOFLAGS"], "-mod=vendor") {
		return
	}
	direct, proxied := false, false
	for proxy := range strings.FieldsFuncSeq(set["GOPROXY"], func(r rune) bool { return r == ',' || r == '|' }) {
		switch proxy = strings.TrimSpace(proxy); {
		case proxy == "off":
			return
		case proxy == "direct":
			direct = !proxied
		default:
			proxied = true
			c.hosts(why, hostOf(proxy))
		}
	}
	private := cmp.Or(set["GONOPROXY"], set["GOPRIVATE"])
	for _, module := range modules {
		host, _, _ := strings.Cut(module, "/")
		if strings.Contains(host, ".") && !strings.HasPrefix(host, ".") && !strings.HasPrefix(host, "-") && (direct || matchesModule(private, module)) {
			c.hosts("downloads a module directly", host)
		}
	}
	if db := strings.Fields(set["GOSUMDB"]); len(db) > 0 && db[0] != "off" && set["GONOSUMDB"] != "*" {
		host := db[0]
		if i := strings.IndexByte(host, '+'); i >= 0 {
			host = host[:i]
		}
		if len(db) > 1 {
			host = hostOf(db[1])
		}
		c.hosts("checks the modules", host)
	}
}

// matchesModule reports whether a module's path begins with one of the patterns of
// GOPRIVATE.
func matchesModule(patterns, module string) bool {
	for pattern := range strings.SplitSeq(patterns, ",") {
		n := strings.Count(pattern, "/") + 1
		parts := strings.SplitN(module, "/", n+1)
		if ok, err := path.Match(pattern, strings.Join(parts[:min(n, len(parts))], "/")); err == nil && ok && pattern != "" {
			return true
		}
	}
	return false
}

var goRequirement = lazy.Regexp(`(?m)^\s*(?:require\s+)?([\w.~/-]+\.[\w.~/-]+)\s+(v[\w.+-]+)\s*$`)

// missingModules reports whether the module cache does not have a module that
// go.mod requires directly.
func (c *command) missingModules(file string) bool {
	if file == "" || c.Exists(path.Join(path.Dir(file), "vendor", "modules.txt")) {
		return false
	}
	cache := cmp.Or(c.Getenv("GOMODCACHE"), path.Join(c.gopath(), "pkg", "mod"))
	text := c.read(file)
	for _, m := range goRequirement().FindAllStringSubmatch(text, 100) {
		if strings.Contains(text, m[1]+" =>") || strings.Contains(text, m[1]+" "+m[2]+" =>") {
			continue
		}
		if !c.Exists(path.Join(cache, escapeModule(m[1])+"@"+escapeModule(m[2]))) {
			return true
		}
	}
	return false
}

// escapeModule writes capital letters as the module cache does.
func escapeModule(text string) string {
	var b strings.Builder
	for _, r := range text {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('!')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
