package proc

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Inherit selects which environment variables a child process gets. The zero
// value is InheritAll.
type Inherit uint8

// The policies. None passes on a secret unless it is named.
const (
	InheritAll  Inherit = iota // all except what looks like a secret
	InheritCore                // only the core list
	InheritNone                // nothing
)

var inheritNames = [...]string{"inherit_all", "inherit_core", "inherit_none"}

// String returns the name of the policy in settings.
func (i Inherit) String() string {
	if int(i) < len(inheritNames) {
		return inheritNames[i]
	}
	return fmt.Sprintf("Inherit(%d)", uint8(i))
}

// MarshalText implements encoding.TextMarshaler.
func (i Inherit) MarshalText() ([]byte, error) {
	if int(i) >= len(inheritNames) {
		return nil, fmt.Errorf("unknown environment policy %d", uint8(i))
	}
	return []byte(i.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Inherit) UnmarshalText(text []byte) error {
	n := slices.Index(inheritNames[:], string(text))
	if n < 0 {
		return fmt.Errorf("unknown environment policy %q: use %s", text, strings.Join(inheritNames[:], ", "))
	}
	*i = Inherit(n)
	return nil
}

// coreNames are passed on by InheritAll and InheritCore, because most programs
// need them. LC_* belongs to them too.
var coreNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TMPDIR", "TZ",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	// languages
	"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GONOSUMDB", "GOPRIVATE",
	"GOTOOLCHAIN", "CGO_ENABLED", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "NVM_DIR", "NVM_BIN",
	"NODE_PATH", "NPM_CONFIG_PREFIX", "PNPM_HOME", "VOLTA_HOME", "BUN_INSTALL", "DENO_DIR", "JAVA_HOME", "JDK_HOME",
	"M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "SDKMAN_DIR", "ANDROID_HOME", "PYENV_ROOT",
	"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PIPX_HOME", "RBENV_ROOT", "GEM_HOME", "GEM_PATH",
	"ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "COMPOSER_HOME", "DOTNET_ROOT", "NUGET_PACKAGES", "GHCUP_INSTALL_BASE_PREFIX",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PKG_CONFIG_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
	// Windows
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "HOMEDRIVE",
	"HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
	"NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS",
}

// secretEnds are the suffixes of the names of secrets.
var secretEnds = []string{
	"API_KEY", "APIKEY", "SECRET", "SECRETS", "TOKEN", "TOKENS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE",
	"CREDENTIAL", "CREDENTIALS", "SECRET_KEY", "ACCESS_KEY", "ACCESS_KEY_ID", "PRIVATE_KEY", "SIGNING_KEY",
	"ENCRYPTION_KEY", "MASTER_KEY", "AUTH_KEY", "SERVICE_KEY", "ACCOUNT_KEY", "_AUTH", "_PAT", "_PASS", "_PWD",
	"SSHPASS", "SECRET_KEY_BASE", "AUTH_CONFIG", "COOKIE", "COOKIES",
}

// addressEnds are the suffixes of the names of addresses that are secret, unless
// they lead to this machine.
var addressEnds = []string{"_DSN", "CONNECTION_STRING", "CONNECTIONSTRING", "CONN_STR", "_WEBHOOK", "WEBHOOK_URL", "WEBHOOK_URI", "HOOK_URL"}

// secretWords are parts of names that make a random-looking value a secret:
// GITHUB_TOKEN_PROD, SIGNING_KEY.
var secretWords = []string{"KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PWD", "AUTH", "CREDENTIAL", "CREDENTIALS", "COOKIE", "JWT", "BEARER", "SAS"}

// ordinaryNames are judged by no value: programs do not work without them, and
// they have lists of paths.
var ordinaryNames = []string{"PATH", "HOME", "SHELL", "USER", "LOGNAME", "USERNAME", "PWD", "OLDPWD", "TMPDIR", "TERM"}

// FilterEnv returns the part of environ, a list of "NAME=value", for a child
// process: the variables selected by the policy, without secrets, and the
// variables in passthrough, even if secret. The order is kept.
//
// A variable is secret by its name, such as *_API_KEY, *_SECRET, *_TOKEN,
// *_PASSWORD or *_CREDENTIAL (in any case), or by its value: a URL or connection
// string with a credential, a webhook, a cookie, a key of a well-known service.
// An address that leads to this machine is not secret.
func FilterEnv(environ []string, policy Inherit, passthrough ...string) []string {
	return filterEnv(environ, passthrough, func(name string) bool { return inherits(policy, name) })
}

// FilterEnvNames is like [FilterEnv] with [InheritCore], and also selects the
// variables with the given names, unless they are secret.
func FilterEnvNames(environ, names []string, passthrough ...string) []string {
	return filterEnv(environ, passthrough, func(name string) bool { return isCore(name) || slices.Contains(names, name) })
}

func filterEnv(environ, passthrough []string, selects func(name string) bool) []string {
	kept := make([]string, 0, len(environ))
	for _, entry := range environ {
		name, value, ok := splitEntry(entry)
		if !ok {
			continue
		}
		if upper := strings.ToUpper(name); slices.Contains(passthrough, name) || (selects(upper) || selects(name)) && !isSecret(upper, value) && !isTrace(upper) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// splitEntry splits "NAME=value". On Windows, names may start with an equals
// sign.
func splitEntry(entry string) (name, value string, ok bool) {
	if entry == "" {
		return "", "", false
	}
	i := strings.IndexByte(entry[1:], '=')
	if i < 0 {
		return "", "", false
	}
	return entry[:i+1], entry[i+2:], true
}

// inherits reports whether the policy selects the upper-case name.
func inherits(policy Inherit, name string) bool {
	switch policy {
	case InheritAll:
		return true
	case InheritCore:
		return isCore(name)
	default:
		return false
	}
}

// isTrace reports whether a variable says in which trace this process runs: a child is
// part of another one, if any.
func isTrace(name string) bool {
	return name == "TRACEPARENT" || name == "TRACESTATE" || name == "BAGGAGE"
}

func isCore(name string) bool {
	return slices.Contains(coreNames, name) || strings.HasPrefix(name, "LC_")
}

// isSecret reports whether a variable is secret by its name, in upper case, or by
// its value.
func isSecret(name, value string) bool {
	if slices.Contains(ordinaryNames, name) {
		return false
	}
	if !slices.Contains(coreNames, name) {
		bare := strings.TrimRight(name, "0123456789_") // OPENAI_API_KEY_2
		hasEnd := func(end string) bool { return strings.HasSuffix(bare, end) }
		switch {
		case slices.ContainsFunc(secretEnds, hasEnd):
			return true
		case slices.ContainsFunc(addressEnds, hasEnd):
			return !localAddress(value)
		case random(value) && slices.ContainsFunc(strings.Split(name, "_"), func(w string) bool { return slices.Contains(secretWords, w) }):
			return true
		}
	}
	return secretValue(value)
}

// random reports whether a value looks like a password or key: at least eight
// characters, with letters and digits, and not a path or an address.
func random(value string) bool {
	if len(value) < 8 || strings.ContainsAny(value, " \t\n") || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~") || strings.HasPrefix(value, ".") || strings.Contains(value, "://") {
		return false
	}
	letter := strings.ContainsFunc(value, unicode.IsLetter)
	digit := strings.ContainsFunc(value, unicode.IsDigit)
	return letter && digit
}
