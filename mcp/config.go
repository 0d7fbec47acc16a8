package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Transports, as named in settings.
const (
	TransportStdio = "stdio" // a child process
	TransportHTTP  = "http"  // streamable HTTP
	TransportSSE   = "sse"   // HTTP with server-sent events, of 2024-11-05
)

// Defaults for what a server's settings leave out.
const (
	defaultStartTimeout = 10 * time.Second // of the handshake
	defaultListTimeout  = 10 * time.Second // of reading a list
	defaultCallTimeout  = 60 * time.Second // of a call; progress restarts it
	defaultMaxMessage   = 64 << 20         // bytes
)

// Server is the settings of a server: how to reach it and what it may do.
// Strings may refer to environment variables, and some to the output of commands;
// see [Server.Expand].
type Server struct {
	Type    string            `json:"type,omitempty" enum:"stdio,http,sse" doc:"Transport; default stdio with a command, http with a URL."`
	Command string            `json:"command,omitempty" doc:"Program to run."`
	Args    []string          `json:"args,omitempty" doc:"Its arguments."`
	Env     map[string]string `json:"env,omitempty" doc:"Environment variables to set, in addition to the harmless ones it inherits."`
	Cwd     string            `json:"cwd,omitempty" doc:"Its working directory; default that of the session."`
	URL     string            `json:"url,omitempty" doc:"URL, for http and sse."`
	Headers map[string]string `json:"headers,omitempty" doc:"HTTP headers to send, for http and sse."`
	OAuth   OAuth             `json:"oauth,omitzero" doc:"Sign-in details that the server does not announce."`

	Sandbox       *Confine `json:"sandbox,omitempty" doc:"Sandbox of its process; without it, sandbox.mcpServers decides."`
	Disabled      bool     `json:"disabled,omitempty" doc:"Whether it is disabled."`
	Required      bool     `json:"required,omitempty" doc:"Whether exec waits until its tools are known."`
	AllowTools    []string `json:"allowTools,omitempty" doc:"Tools to offer, by the server's names; * matches any characters. Empty means all."`
	DenyTools     []string `json:"denyTools,omitempty" doc:"Tools not to offer; * matches any characters."`
	Protocol      string   `json:"protocol,omitempty" doc:"Protocol version, such as 2025-11-25; default the newest that both sides support."`
	StartTimeout  int      `json:"startTimeoutMs,omitempty" doc:"Time limit in milliseconds for the handshake and for each list; 0 means 10000."`
	CallTimeout   int      `json:"callTimeoutMs,omitempty" doc:"Time limit in milliseconds for a call, restarted by progress reports; 0 means 60000."`
	MaxMessageMiB int      `json:"maxMessageMb,omitempty" doc:"Maximum size of a message from the server in MiB; 0 means 64."`
	Sampling      Sampling `json:"sampling,omitzero" doc:"Whether it may query the model."`

	// Verbatim says that its values are used as they are: Expand expands nothing.
	Verbatim bool `json:"-"`
}

// Confine is the sandbox of a stdio server's process. With the zero value it can
// read all files except known secrets, write only to a private /tmp, and has no
// network access.
type Confine struct {
	Writable []string `json:"writable,omitempty" doc:"Files and directories that it may write, relative to the session's working directory."`
	Hosts    []string `json:"hosts,omitempty" doc:"Hosts that it may connect to, as in sandbox.hosts; * means all."`
	// Private hides the user's files, except the workspace and what is Readable or
	// Writable. It is set for the servers of plugins, not in settings.
	Private  bool     `json:"-"`
	Readable []string `json:"-"`
}

// OAuth configures signing in with an authorization server.
type OAuth struct {
	ClientID     string   `json:"clientId,omitempty" doc:"ID of a client that was registered manually."`
	ClientSecret string   `json:"clientSecret,omitempty" doc:"Its secret, as ${NAME} or $(command)."`
	Scopes       []string `json:"scopes,omitempty" doc:"Scopes to request."`
	CallbackPort int      `json:"callbackPort,omitempty" doc:"Port of the local redirect URL; 0 means any."`
}

// Sampling limits how a server may query the model. The zero value is off.
type Sampling struct {
	Enabled   bool `json:"enabled,omitempty" doc:"Whether it may query the model at all; you approve each request."`
	MaxTokens int  `json:"maxTokens,omitempty" doc:"Maximum tokens of a response; 0 means 4096."`
	MaxRounds int  `json:"maxRounds,omitempty" doc:"Maximum requests during one tool call; 0 means 5."`
}

// serverName matches valid server names, which become part of tool names.
var serverName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// reservedNames are sources of tools other than servers; web is the bundled
// plugin.
var reservedNames = []string{"builtin", "host", "subagent", "skills", "web", resourceSource}

// CheckName checks the name of a server.
func CheckName(name string) error {
	switch {
	case !serverName().MatchString(name):
		return fmt.Errorf("invalid server name %q: expected 1 to 40 letters, digits, _, - or ., starting with a letter or digit", clip(cleanLine(name), 60))
	case strings.Contains(name, separator):
		return fmt.Errorf("invalid server name %q: it must not contain \"__\"", name)
	case slices.Contains(reservedNames, name):
		return fmt.Errorf("invalid server name %q: it is reserved for the agent's own tools", name)
	}
	return nil
}

// Transport returns the transport, "" if neither type, command nor URL is set.
func (s Server) Transport() string {
	switch strings.ToLower(s.Type) {
	case "":
	case "streamable-http", "streamablehttp", "streamable_http":
		return TransportHTTP
	default:
		return strings.ToLower(s.Type)
	}
	switch {
	case s.Command != "":
		return TransportStdio
	case s.URL != "":
		return TransportHTTP
	}
	return ""
}

// FieldError reports an invalid field of a [Server].
type FieldError struct {
	Field   string // its JSON key; empty for the server as a whole
	Message string
	Hint    string // what to do about it; may be empty
}

// Error implements error.
func (e *FieldError) Error() string {
	text := e.Message
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Check validates the settings of a server. Its error is a [*FieldError].
func (s Server) Check() error {
	if err := s.check(); err != nil {
		return err
	}
	return s.checkCommands()
}

// check is Check for settings whose references are expanded, or not yet.
func (s Server) check() error {
	fail := func(field, message, hint string) error { return &FieldError{field, message, hint} }
	switch s.Transport() {
	case TransportStdio:
		if strings.TrimSpace(s.Command) == "" {
			return fail("command", "a stdio server needs a command", `such as "command": "npx"`)
		}
		if s.URL != "" || len(s.Headers) > 0 {
			return fail("url", "a stdio server must not have a url or headers", "remove them, or the command")
		}
	case TransportHTTP, TransportSSE:
		if s.Command != "" || len(s.Args) > 0 {
			return fail("command", "a server with a URL must not have a command", "remove it, or the url")
		}
		if err := checkURL(s.URL); err != nil {
			return err
		}
	case "":
		return fail("", "missing command or url", "set one of them")
	default:
		return fail("type", fmt.Sprintf("unknown transport %q", s.Type), "use stdio, http or sse")
	}
	for field, n := range map[string]int{"startTimeoutMs": s.StartTimeout, "callTimeoutMs": s.CallTimeout, "maxMessageMb": s.MaxMessageMiB, "oauth": s.OAuth.CallbackPort, "sampling": min(s.Sampling.MaxTokens, s.Sampling.MaxRounds)} {
		if n < 0 {
			return fail(field, "must not be negative", "")
		}
	}
	return s.checkHeaders()
}

// checkURL validates a URL that may contain variables.
func checkURL(text string) error {
	if text == "" {
		return &FieldError{"url", "an http or sse server needs a url", `such as "url": "https://example.com/mcp"`}
	}
	if strings.Contains(text, "${") {
		return nil // checked again once the variables are expanded
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return &FieldError{"url", "expected an http or https URL", `such as "https://example.com/mcp"`}
	case u.User != nil:
		return &FieldError{"url", "must not contain a user name or password", "use headers, or sign in"}
	}
	return nil
}

func (s Server) checkHeaders() error {
	for name, value := range s.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return &FieldError{"headers", fmt.Sprintf("invalid header %q", name), ""}
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return &FieldError{"env", fmt.Sprintf("invalid variable name %q", name), ""}
		}
	}
	return nil
}

// Hash identifies what is started or connected to: the transport, the command
// with its arguments, environment and directory, or the URL with its headers, and
// the commands in their values, as written in the settings, before they are
// expanded. Trust, caches and
// pinned definitions are bound to it.
func (s Server) Hash() string {
	identity := struct {
		Transport, Command, Cwd, URL string
		Args                         []string
		Env, Headers                 map[string]string
		Sandbox                      *Confine `json:",omitempty"`
		Commands                     []string `json:",omitempty"` // also that of the client secret
	}{s.Transport(), s.Command, s.Cwd, s.URL, append([]string{}, s.Args...), s.Env, s.Headers, s.Sandbox, s.Commands()}
	if len(s.Env) == 0 {
		identity.Env = nil
	}
	if len(s.Headers) == 0 {
		identity.Headers = nil
	}
	sum := sha256.Sum256(encode(identity))
	return hex.EncodeToString(sum[:])
}

// Describe returns the command line or the URL for display, without the values
// of environment variables and headers. Variables in arguments are not expanded.
func (s Server) Describe() string {
	if s.Transport() != TransportStdio {
		if u, err := url.Parse(s.URL); err == nil && u.RawQuery != "" {
			u.RawQuery = "…"
			return u.String()
		}
		return s.URL
	}
	words := append([]string{s.Command}, s.Args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\$&|;<>(){}*?`") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Redacted returns the settings without values that may be secret: those of
// variables, headers and the client secret, unless they are a ${NAME} or $(command).
func (s Server) Redacted() Server {
	hide := func(text string) string {
		if text == "" || reference().FindString(text) == text || strings.HasPrefix(text, "$(") && commandLen(text) == len(text) {
			return text
		}
		return "…"
	}
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for name, value := range s.Env {
		s.Env[name] = hide(value)
	}
	for name, value := range s.Headers {
		s.Headers[name] = hide(value)
	}
	s.OAuth.ClientSecret = hide(s.OAuth.ClientSecret)
	return s
}

// Secrets returns the values of variables and headers that may be secret, for
// logs that hide them. Variables are expanded; unset ones are left out, and no
// command is run: a [Conn] hides what commands print.
func (s Server) Secrets(lookup func(name string) (string, bool)) []string {
	expanded, _ := s.Expand(context.Background(), lookup, nil) // its errors are reported elsewhere
	var list []string
	for name, value := range expanded.Env {
		if secretName().MatchString(name) {
			list = append(list, value)
		}
	}
	for name, value := range expanded.Headers {
		if secretName().MatchString(name) {
			_, token, _ := strings.Cut(value, " ") // Bearer TOKEN
			list = append(list, value, token)
		}
	}
	list = append(list, expanded.OAuth.ClientSecret)
	return slices.DeleteFunc(list, func(v string) bool { return v == "" })
}

var secretName = lazy.Regexp(`(?i)key|token|secret|passw|auth|credential|cookie|_pat$|_pwd$|dsn`)

func (s Server) startTimeout() time.Duration { return millis(s.StartTimeout, defaultStartTimeout) }
func (s Server) listTimeout() time.Duration  { return millis(s.StartTimeout, defaultListTimeout) }
func (s Server) callTimeout() time.Duration  { return millis(s.CallTimeout, defaultCallTimeout) }

func (s Server) maxMessage() int64 {
	if s.MaxMessageMiB > 0 {
		return int64(s.MaxMessageMiB) << 20
	}
	return defaultMaxMessage
}

func millis(n int, def time.Duration) time.Duration {
	if n <= 0 {
		return def
	}
	return time.Duration(n) * time.Millisecond
}

// offers reports whether a tool of the server is offered to the model.
func (s Server) offers(tool string) bool {
	if len(s.AllowTools) > 0 && !matchAny(s.AllowTools, tool) {
		return false
	}
	return !matchAny(s.DenyTools, tool)
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchStar(p, name) })
}

// matchStar reports whether name matches a pattern in which * matches any
// characters.
func matchStar(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(name, head) || !star {
		return name == pattern
	}
	name = name[len(head):]
	for {
		next, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, rest)
		}
		i := strings.Index(name, next)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(next):], after
	}
}
