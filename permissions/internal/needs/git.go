package needs

import (
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

var gitPrograms = table{"git": gitCommand}

// gitValued are the options of git before the subcommand that have a value.
const gitValued = "-C -c --git-dir --work-tree --namespace --exec-path --config-env"

func gitCommand(c *command) {
	sub := c.sub(gitValued)
	if dir := c.value("-C"); dir != "" {
		c.Machine = c.at(c.abs(dir))
	}
	if sub == "" {
		return
	}
	c.shift(sub)
	switch sub {
	case "clone":
		if words := c.operands("-b --branch -o --origin --depth --reference -c --config -j --jobs --filter --shallow-since"); len(words) > 0 {
			c.remote(words[0], sub)
		}
		return
	case "fetch", "pull", "push", "ls-remote":
		c.remotes(sub)
	case "remote":
		switch c.sub("") {
		case "update", "prune":
			c.remotes("fetch")
		case "show":
			c.remotes("ls-remote")
		case "", "get-url":
			return
		default:
			c.escape("changes .git/config, which can make git run programs")
		}
	case "submodule":
		if one(c.sub(""), "update add sync init set-url") {
			c.submodules()
		}
	case "lfs":
		c.lfs()
	case "config":
		c.config()
		return
	case "branch":
		if c.has("-m", "-M", "--move", "-u", "--unset-upstream", "--edit-description") || c.value("--set-upstream-to") != "" || c.has("-t", "--track") {
			c.escape("changes .git/config, which can make git run programs")
		}
	case "maintenance", "credential", "send-email", "svn", "daemon", "gui", "citool":
		c.escape("works outside the workspace")
	}
}

func (c *command) config() {
	reads := c.has("--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get", "--show-origin") || len(c.operands("-f --file --type --default")) == 1
	if file := c.value("-f", "--file"); reads || file != "" && !strings.HasPrefix(c.abs(file), path.Join(c.Dir, ".git")) {
		return
	}
	c.escape("changes the settings of git, which can make it run programs")
}

var (
	gitSection = lazy.Regexp(`(?m)^\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]`)
	gitKey     = lazy.Regexp(`(?m)^\s*(\w[\w-]*)\s*=\s*(.*?)\s*$`)
)

// gitSettings returns the settings in a text as "section.subsection.key".
func gitSettings(text string, into map[string][]string) {
	at := gitSection().FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name := strings.ToLower(text[m[2]:m[3]])
		if m[4] >= 0 {
			name += "." + text[m[4]:m[5]]
		}
		for _, kv := range gitKey().FindAllStringSubmatch(text[m[1]:end], -1) {
			key := name + "." + strings.ToLower(kv[1])
			into[key] = append(into[key], strings.Trim(kv[2], `"`))
		}
	}
}

// settings returns the settings of the user and the repository, and the directory
// of the latter.
func (c *command) settings() (set map[string][]string, dir string) {
	set = map[string][]string{}
	gitSettings(c.read(path.Join(c.Home, ".config", "git", "config")), set)
	gitSettings(c.read(path.Join(c.Home, ".gitconfig")), set)
	dir = c.above(".git")
	if dir == "" {
		return set, ""
	}
	own := dir
	if at, ok := strings.CutPrefix(strings.TrimSpace(c.read(dir)), "gitdir:"); ok { // of a worktree
		if own = strings.TrimSpace(at); !path.IsAbs(own) {
			own = path.Join(path.Dir(dir), own)
		}
		if common := strings.TrimSpace(c.read(path.Join(own, "commondir"))); common != "" {
			dir = path.Join(own, common)
		}
	}
	gitSettings(c.read(path.Join(dir, "config")), set)
	return set, own
}

// remotes adds what the remotes of fetch, pull and push need.
func (c *command) remotes(sub string) {
	set, dir := c.settings()
	last := func(key string) string {
		if values := set[key]; len(values) > 0 {
			return values[len(values)-1]
		}
		return ""
	}
	words := c.operands("-o --push-option --depth --deepen --shallow-since --upload-pack --receive-pack -j --jobs --recurse-submodules --refmap -s --strategy -X --strategy-option")
	if sub == "fetch" && len(words) > 0 && (words[0] == "update" || words[0] == "prune") || sub == "ls-remote" && len(words) > 0 && words[0] == "show" {
		words = words[1:]
	}
	branch := strings.TrimPrefix(strings.TrimSpace(c.read(path.Join(dir, "HEAD"))), "ref: refs/heads/")
	name := "origin"
	for _, key := range []string{"branch." + branch + ".remote", "remote.pushdefault", "branch." + branch + ".pushremote"} {
		if v := last(key); v != "" && (sub == "push" || !strings.Contains(key, "push")) {
			name = v
		}
	}
	names := []string{name}
	if len(words) > 0 && !c.has("--all", "--multiple") {
		names = words[:1]
	} else if c.has("--all", "--multiple") && sub != "push" || c.sub("") == "update" {
		names = nil
		for key := range set {
			if n, ok := strings.CutPrefix(key, "remote."); ok && strings.HasSuffix(n, ".url") {
				names = append(names, strings.TrimSuffix(n, ".url"))
			}
		}
	}
	for _, n := range names {
		url := last("remote." + n + ".url")
		if push := last("remote." + n + ".pushurl"); push != "" && sub == "push" {
			url = push
		}
		if url == "" {
			url = n
		}
		c.remote(instead(url, set), sub)
	}
	if sub == "push" && c.has("-u", "--set-upstream") {
		c.escape("changes .git/config (-u), which can make git run programs")
	}
}

// instead applies url.*.insteadOf.
func instead(url string, set map[string][]string) string {
	longest, base := 0, ""
	for key, prefixes := range set {
		name, ok := strings.CutPrefix(key, "url.")
		if !ok || !strings.HasSuffix(name, ".insteadof") {
			continue
		}
		for _, p := range prefixes {
			if strings.HasPrefix(url, p) && len(p) > longest {
				longest, base = len(p), strings.TrimSuffix(name, ".insteadof")
			}
		}
	}
	return base + url[longest:]
}

var scpLike = lazy.Regexp(`^(?:[\w.-]+@)?([\w.-]+):[^/\\]`)

// remote adds what a remote needs.
func (c *command) remote(url, sub string) {
	why := map[string]string{"push": "pushes to it", "clone": "clones from it"}[sub]
	if why == "" {
		why = "fetches from it"
	}
	scheme, _, isURL := strings.Cut(url, "://")
	switch {
	case scheme == "ssh" || scheme == "git+ssh" || !isURL && scpLike().MatchString(url):
		host := hostOf(url)
		if m := scpLike().FindStringSubmatch(url); !isURL && m != nil {
			host = m[1]
		}
		c.escape("connects to " + host + " over SSH with your keys, which are hidden from commands in the sandbox")
	case scheme == "http" || scheme == "https":
		if host := hostOf(url); sub == "push" && c.hasCredentials(url) {
			c.escape("pushes to " + host + " with your credentials, which are hidden from commands in the sandbox")
		} else {
			c.hosts(why, host)
		}
	case scheme == "git":
		c.add(Network, hostOf("http"+url[3:]), why)
	case sub == "push" || sub == "fetch" && strings.HasPrefix(url, "/"):
		file := strings.TrimPrefix(url, "file://")
		if sub == "push" && (path.IsAbs(file) || strings.HasPrefix(file, ".")) {
			c.add(Dir, c.abs(file), why)
		}
	}
}

// hasCredentials reports whether git would look for credentials for a URL, which
// has none itself.
func (c *command) hasCredentials(url string) bool {
	if strings.Contains(strings.SplitN(url, "/", 4)[2], ":") && strings.Contains(url, "@") {
		return false
	}
	set, _ := c.settings()
	for key := range set {
		if strings.HasPrefix(key, "credential.") && strings.HasSuffix(key, "helper") {
			return true
		}
	}
	return c.Exists(path.Join(c.Home, ".git-credentials")) || c.Exists(path.Join(c.Home, ".netrc"))
}

func (c *command) submodules() {
	if c.sub("") == "add" || c.sub("") == "init" || c.sub("") == "set-url" || c.has("--init") {
		c.escape("changes .git/config and the settings of submodules, which can make git run programs")
		return
	}
	set := map[string][]string{}
	gitSettings(c.read(path.Join(c.Dir, ".gitmodules")), set)
	for key, urls := range set {
		if strings.HasSuffix(key, ".url") {
			c.remote(urls[0], "fetch")
		}
	}
}

func (c *command) lfs() {
	switch c.sub("") {
	case "install", "uninstall", "track", "untrack":
		if c.sub("") == "install" {
			c.escape("changes the settings of git, which can make it run programs")
		}
	case "fetch", "pull", "push", "clone":
		sub := c.sub("")
		c.shift(sub)
		c.remotes(sub)
	}
}
