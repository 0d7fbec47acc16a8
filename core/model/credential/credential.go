package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// Token returns a token. It is safe for concurrent use; one program runs at a
// time. The error is a *model.Error with CodeNotConfigured that says what to do.
type Token func(ctx context.Context) (string, error)

// timeout limits the run time of a program. az is slow to start.
const timeout = 30 * time.Second

// GitHub returns the token of gh, the GitHub command line. lookup reads
// environment variables.
func GitHub(lookup func(string) string) Token {
	return (&source{
		argv: []string{"gh", "auth", "token"}, lookup: lookup, read: plain,
		missing: "no GitHub token: set providers.github.token or GITHUB_TOKEN, or install gh (https://cli.github.com) and run gh auth login",
		failed:  "gh has no token: run gh auth login, or set providers.github.token or GITHUB_TOKEN",
	}).token
}

// Azure returns a token of az, the Azure command line, for a resource such as
// https://cognitiveservices.azure.com.
func Azure(lookup func(string) string, resource string) Token {
	return (&source{
		argv: []string{"az", "account", "get-access-token", "--resource", resource, "--output", "json"}, lookup: lookup, read: azure,
		missing: "no key for Azure: set the provider's apiKey, or install az (https://aka.ms/azure-cli) and run az login",
		failed:  "az has no token: run az login, or set the provider's apiKey",
	}).token
}

// Google returns the application default credentials of gcloud, for Vertex AI.
func Google(lookup func(string) string) Token {
	return (&source{
		argv: []string{"gcloud", "auth", "application-default", "print-access-token"}, lookup: lookup, read: plain,
		missing: "no credentials for Vertex AI: set providers.gemini.apiKey (express mode), or install gcloud (https://cloud.google.com/sdk) and run gcloud auth application-default login",
		failed:  "gcloud has no credentials: run gcloud auth application-default login, or set providers.gemini.apiKey (express mode)",
	}).token
}

// GoogleProject returns the project that gcloud is set to. The error is a
// *model.Error with CodeNotConfigured.
func GoogleProject(ctx context.Context, lookup func(string) string) (string, error) {
	s := &source{
		argv: []string{"gcloud", "config", "get-value", "project"}, lookup: lookup,
		missing: "no Google Cloud project: set providers.gemini.project or GOOGLE_CLOUD_PROJECT",
		failed:  "gcloud has no project: run gcloud config set project, or set providers.gemini.project or GOOGLE_CLOUD_PROJECT",
	}
	out, err := s.run(ctx)
	if err != nil {
		return "", err
	}
	project := strings.TrimSpace(string(out))
	if !isToken(project) {
		return "", notConfigured(s.failed, nil)
	}
	return project, nil
}

// source is a program that prints a token.
type source struct {
	argv            []string
	lookup          func(string) string
	read            func(out []byte, now time.Time) (string, time.Time, error)
	missing, failed string

	mu    sync.Mutex
	value string
	until time.Time
}

// inherited are the only environment variables of the programs: those that they
// need to run and to find what they have stored.
var inherited = []string{
	"PATH", "HOME", "USER", "LANG", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
	"GH_CONFIG_DIR", "GH_HOST", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG", "CLOUDSDK_ACTIVE_CONFIG_NAME", "GOOGLE_APPLICATION_CREDENTIALS",
	"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "TEMP", "TMP",
}

func (s *source) token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != "" && time.Now().Before(s.until) {
		return s.value, nil
	}
	out, err := s.run(ctx)
	if err != nil {
		return "", err
	}
	value, until, err := s.read(out, time.Now())
	if err != nil || !isToken(value) {
		return "", notConfigured(s.failed, errors.New("it printed no token")) // never what it printed
	}
	s.value, s.until = value, until
	return value, nil
}

// isToken reports whether a text can be a token: printable ASCII without spaces.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (s *source) run(ctx context.Context) ([]byte, error) {
	path, err := exec.LookPath(s.argv[0])
	if err != nil {
		return nil, notConfigured(s.missing, nil)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, path, s.argv[1:]...) //nolint:gosec // a program of a fixed name, without a shell
	cmd.WaitDelay = time.Second
	cmd.Env = []string{}
	for _, name := range inherited {
		if v := s.lookup(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, notConfigured(s.failed, fmt.Errorf("it did not answer within %v", timeout))
	case err != nil:
		return nil, notConfigured(s.failed, errors.New(firstLine(stderr.String(), err)))
	}
	return out, nil
}

// firstLine returns the first line of a program's error output, or err.
func firstLine(text string, err error) string {
	const maxLength = 200
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		line = err.Error()
	}
	if len(line) > maxLength {
		line = strings.ToValidUTF8(line[:maxLength], "") + "…"
	}
	return line
}

func notConfigured(message string, err error) error {
	if err != nil {
		message += ": " + err.Error()
	}
	return &model.Error{Code: model.CodeNotConfigured, Message: message}
}

// plain reads a token that is the whole output. The programs renew it themselves,
// so it is cached only briefly.
func plain(out []byte, now time.Time) (string, time.Time, error) {
	const lifetime = 2 * time.Minute
	return strings.TrimSpace(string(out)), now.Add(lifetime), nil
}

// azure reads the JSON of az, which contains the time when the token expires.
func azure(out []byte, now time.Time) (string, time.Time, error) {
	var t struct {
		AccessToken string `json:"accessToken"`
		ExpiresOn   int64  `json:"expires_on"` // seconds since 1970; older versions have a local time only
	}
	if err := json.Unmarshal(out, &t); err != nil {
		return "", time.Time{}, err
	}
	const early, unknown = 5 * time.Minute, 2 * time.Minute
	if t.ExpiresOn == 0 {
		return t.AccessToken, now.Add(unknown), nil
	}
	return t.AccessToken, time.Unix(t.ExpiresOn, 0).Add(-early), nil
}

// FoundryLocal returns the address of the OpenAI-compatible API of the Foundry
// Local service on this machine, which chooses its port itself. The error is a
// *model.Error with CodeNotConfigured.
func FoundryLocal(ctx context.Context, lookup func(string) string) (string, error) {
	s := &source{
		argv: []string{"foundry", "service", "status"}, lookup: lookup,
		missing: "Foundry Local is not installed (https://aka.ms/foundry-local): install it, or set providers.foundry.baseUrl to where it listens, or providers.foundry.mode to cloud",
		failed:  "Foundry Local is not running: run foundry service start",
	}
	out, err := s.run(ctx)
	if err != nil {
		return "", err
	}
	if address := addressIn(string(out)); address != "" {
		return address, nil
	}
	return "", notConfigured(s.failed, nil)
}

// addressIn returns the address of the API at the first URL in a text, "" if there
// is none.
func addressIn(text string) string {
	for word := range strings.FieldsSeq(text) {
		u, err := url.Parse(strings.TrimRight(word, ".,!"))
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
			return u.Scheme + "://" + u.Host + "/v1"
		}
	}
	return ""
}
