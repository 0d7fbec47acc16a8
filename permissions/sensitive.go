package permissions

import "strings"

// place is what makes a path special.
type place uint8

const (
	ordinary  place = iota
	guarded         // writing and deleting it need approval
	sensitive       // any access needs approval
)

// placeOf classifies a folded path. In its first skip bytes, the path of the
// workspace or home, words such as "secret" in directory names do not count.
func placeOf(p string, skip int) place {
	found := ordinary
	for start := 0; start < len(p); {
		end := strings.IndexByte(p[start:], '/')
		rest := ""
		if end < 0 {
			end = len(p)
		} else {
			end += start
			rest = p[end+1:]
		}
		if name := plainName(p[start:end]); name != "" {
			switch {
			case isSecretPlace(name, rest, start <= 1), start >= skip && soundsSecret(name) && !isSource(p):
				return sensitive
			case isGuardedPlace(name, rest, start <= 1):
				found = guarded
			}
		}
		start = end + 1
	}
	return found
}

// plainName is the name without what Windows ignores: a stream, and trailing
// dots and spaces.
func plainName(name string) string {
	if i := strings.IndexByte(name, ':'); i > 1 {
		name = name[:i]
	}
	if strings.Trim(name, ".") == "" {
		return ""
	}
	return strings.TrimRight(name, ". ")
}

// isSource reports whether a file name is that of source code or a document:
// these may be about secrets, but do not contain them.
func isSource(path string) bool {
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "go", "rs", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "swift", "scala", "proto", "md", "rst":
		return true
	}
	return false
}

func soundsSecret(name string) bool {
	return strings.Contains(name, "secret") || strings.Contains(name, "credential")
}

// isSecretPlace reports whether a path element, with the rest that follows it, is
// a location of secrets. Top says that it is the first of an absolute path.
func isSecretPlace(name, rest string, top bool) bool {
	switch name {
	case ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".bluemix", ".snowflake", ".password-store",
		".netrc", "_netrc", ".npmrc", ".pypirc", ".dockercfg", ".pgpass", ".my.cnf", ".mylogin.cnf", ".boto", ".s3cfg",
		".vault-token", ".terraformrc", ".databrickscfg", ".htpasswd",
		".mozilla", ".thunderbird", "keychains", "keyrings", "kwallet", "kwalletd",
		".lesshst", ".viminfo", ".histfile", ".zhistory", "consolehost_history.txt", "fish_history":
		return true
	case "proc":
		return top && isProcessSecret(rest)
	case "etc":
		return top && leadsTo(rest, "shadow", "gshadow", "sudoers", "ssl/private", "kubernetes")
	case ".docker":
		return leadsTo(rest, "config.json", "contexts")
	case ".cargo", ".gem":
		return leadsTo(rest, "credentials")
	case ".m2":
		return leadsTo(rest, "settings.xml", "settings-security.xml")
	case ".gradle":
		return leadsTo(rest, "gradle.properties")
	case ".composer":
		return leadsTo(rest, "auth.json")
	case ".cache":
		return leadsTo(rest, "huggingface/token")
	case ".kaggle":
		return leadsTo(rest, "kaggle.json")
	case ".codex":
		return leadsTo(rest, "auth.json")
	case ".gemini":
		return leadsTo(rest, "oauth_creds.json")
	case ".config":
		return leadsTo(rest, "gcloud", "gh", "hub", "glab-cli", "doctl", "rclone", "heroku", "op", "1password", "bitwarden",
			"sops", "age", "containers/auth.json", "composer/auth.json", "github-copilot",
			"google-chrome", "google-chrome-beta", "chromium", "bravesoftware", "microsoft-edge", "vivaldi", "opera")
	case "library":
		return leadsTo(rest, "safari", "cookies", "application support/google/chrome", "application support/chromium",
			"application support/firefox", "application support/bravesoftware", "application support/microsoft edge",
			"application support/arc", "application support/vivaldi", "application support/com.apple.tcc", "group containers")
	case "appdata":
		return leadsTo(rest, "local/google/chrome", "local/microsoft/edge", "local/bravesoftware", "local/vivaldi",
			"roaming/mozilla", "roaming/opera software", "roaming/microsoft/protect", "roaming/microsoft/vault",
			"local/microsoft/vault", "roaming/gcloud", "roaming/github cli")
	case "snap":
		return leadsTo(rest, "firefox", "chromium", "brave")
	case ".var":
		return leadsTo(rest, "app/org.mozilla.firefox", "app/com.google.chrome", "app/org.chromium.chromium", "app/com.brave.browser")
	}
	return isEnvFile(name) || isKeyFile(name) || name[0] == '.' && strings.HasSuffix(name, "_history")
}

// isProcessSecret judges what follows /proc/: the environment of a process, and
// its links to all other files.
func isProcessSecret(rest string) bool {
	_, rest, _ = strings.Cut(rest, "/")
	if task, ok := strings.CutPrefix(rest, "task/"); ok {
		_, rest, _ = strings.Cut(task, "/")
	}
	return leadsTo(rest, "environ", "mem", "root", "cwd", "fd", "map_files")
}

// leadsTo reports whether a path is one of the places or below it.
func leadsTo(rest string, places ...string) bool {
	for _, p := range places {
		if under(rest, p) {
			return true
		}
	}
	return false
}

func isEnvFile(name string) bool {
	return strings.HasPrefix(name, ".env") &&
		!strings.HasSuffix(name, ".example") && !strings.HasSuffix(name, ".sample") && !strings.HasSuffix(name, ".template")
}

func isKeyFile(name string) bool {
	if kind, ok := strings.CutPrefix(name, "id_"); ok {
		for _, k := range [...]string{"rsa", "dsa", "ecdsa", "ed25519", "xmss"} {
			if strings.HasPrefix(kind, k) {
				return !strings.HasSuffix(kind, ".pub")
			}
		}
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk", "keychain", "keychain-db":
		return strings.IndexByte(name, '.') >= 0
	}
	return false
}

// isGuardedPlace reports whether a path element, with the rest that follows it,
// is a location that programs run from or that instructs agents.
func isGuardedPlace(name, rest string, top bool) bool {
	switch name {
	case ".git", "git~1", ".gitmodules", ".gitconfig", ".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".envrc",
		".agent", ".agents", ".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".cursorrules", ".windsurf",
		".windsurfrules", ".continue", ".cline", ".clinerules", ".roo", ".roomodes", ".opencode", ".amazonq", ".kiro",
		".qwen", ".crush", ".goose", ".mcp.json",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
		".xprofile", ".xinitrc", ".xsessionrc", ".pam_environment", "launchagents", "launchdaemons",
		"microsoft.powershell_profile.ps1", "profile.ps1":
		return true
	case ".config":
		return leadsTo(rest, "git", "fish", "autostart", "systemd", "environment.d", "powershell", "direnv", "agent", "opencode", "goose", "crush")
	case ".github":
		return leadsTo(rest, "copilot-instructions.md")
	case "etc":
		return top && (strings.HasPrefix(rest, "profile") || strings.HasPrefix(rest, "bash") || strings.HasPrefix(rest, "zsh") ||
			strings.HasPrefix(rest, "cron") || leadsTo(rest, "environment", "agent", "systemd", "ld.so.preload"))
	}
	return strings.HasPrefix(name, ".aider")
}

// SensitiveName reports whether a file in the workspace may contain secrets,
// judging by its name alone.
func SensitiveName(name string) bool {
	name = plainName(fold(name))
	return name != "" && (isSecretPlace(name, "", false) || soundsSecret(name) && !isSource(name))
}

// SensitivePaths returns the well-known locations of secrets, for a sandbox to
// mask: absolute paths that need not exist. The last element may be a glob.
func SensitivePaths(home string) []string {
	paths := []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/kubernetes"}
	if home == "" {
		return paths
	}
	for _, name := range [...]string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".bluemix", ".snowflake", ".password-store", ".netrc", "_netrc",
		".npmrc", ".pypirc", ".dockercfg", ".docker/config.json", ".docker/contexts", ".pgpass", ".my.cnf", ".mylogin.cnf", ".boto", ".s3cfg",
		".vault-token", ".terraformrc", ".databrickscfg", ".htpasswd", ".mozilla", ".thunderbird", ".local/share/keyrings", ".local/share/kwalletd",
		".cargo/credentials*", ".gem/credentials", ".m2/settings*.xml", ".gradle/gradle.properties", ".composer/auth.json", ".cache/huggingface/token",
		".kaggle/kaggle.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".claude/.credentials.json",
		".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/doctl", ".config/rclone", ".config/heroku", ".config/op",
		".config/1password", ".config/bitwarden", ".config/sops", ".config/age", ".config/containers/auth.json", ".config/composer/auth.json",
		".config/github-copilot", ".config/google-chrome*", ".config/chromium", ".config/bravesoftware", ".config/BraveSoftware",
		".config/microsoft-edge*", ".config/vivaldi", ".config/opera",
		"Library/Keychains", "Library/Safari", "Library/Cookies", "Library/Application Support/Google/Chrome",
		"Library/Application Support/Firefox", "Library/Application Support/com.apple.TCC",
		"snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome",
		".*_history", ".lesshst", ".viminfo", ".histfile", ".zhistory", ".local/share/fish/fish_history", ".env*",
	} {
		paths = append(paths, strings.TrimSuffix(slashed(home), "/")+"/"+name)
	}
	return paths
}

// ProtectedNames returns the paths, relative to a directory of the workspace,
// that are protected from writes. Those that end in a slash are directories.
func ProtectedNames() []string {
	return []string{
		".git/", ".gitmodules", ".vscode/", ".idea/", ".zed/", ".fleet/", ".devcontainer/", ".envrc", ".agent/", ".agents/",
		".claude/", ".claude.json", ".codex/", ".gemini/", ".cursor/", ".cursorrules", ".windsurf/", ".windsurfrules", ".continue/",
		".cline/", ".clinerules", ".roo/", ".roomodes", ".opencode/", ".amazonq/", ".kiro/", ".qwen/", ".crush/", ".goose/", ".mcp.json",
		".aider.conf.yml",
	}
}
