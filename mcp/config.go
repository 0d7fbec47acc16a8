package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The kinds of transports, as settings name them.
const (
	TransportStdio = "stdio" // a program that reads stdin and writes stdout
	TransportHTTP  = "http"  // streamable HTTP
	TransportSSE   = "sse"   // HTTP with server-sent events, of 2024-11-05
)

// What holds where a server's settings say nothing.
const (
	DefaultStartTimeout = 10 * time.Second // of the handshake
	DefaultListTimeout  = 10 * time.Second // of reading a list
	DefaultCallTimeout  = 60 * time.Second // of a call; progress starts it anew
	DefaultMaxMessage   = 64 << 20         // bytes of one message of a server
)

// Server says how a server is reached, and what it may do. Texts may hold
// ${NAME} or ${NAME:-default}, for a variable of the agent's environment.
type Server struct {
	Type    string            `json:"type,omitempty" enum:"stdio,http,sse" doc:"How it is reached; by itself stdio with a command and http with a URL."`
	Command string            `json:"command,omitempty" doc:"Program to start."`
	Args    []string          `json:"args,omitempty" doc:"Its arguments."`
	Env     map[string]string `json:"env,omitempty" doc:"Variables that it gets besides the harmless ones of the agent's environment."`
	Cwd     string            `json:"cwd,omitempty" doc:"Directory that it works in; by itself that of the session."`
	URL     string            `json:"url,omitempty" doc:"Address, for http and sse."`
	Headers map[string]string `json:"headers,omitempty" doc:"Headers of each request, for http and sse."`
	OAuth   OAuth             `json:"oauth,omitzero" doc:"How to sign in, where the server does not say it all by itself."`

	Sandbox       *Confine `json:"sandbox,omitempty" doc:"What its process may do; without it, whatever you may."`
	Disabled      bool     `json:"disabled,omitempty" doc:"Whether it is left alone."`
	Required      bool     `json:"required,omitempty" doc:"Whether exec waits for its tools when they are not known yet."`
	AllowTools    []string `json:"allowTools,omitempty" doc:"The only tools that are offered, by the server's names for them, in which * stands for any characters; empty means all."`
	DenyTools     []string `json:"denyTools,omitempty" doc:"Tools that are not offered."`
	Protocol      string   `json:"protocol,omitempty" doc:"Version of the protocol, such as 2025-11-25; by itself it is found out."`
	StartTimeout  int      `json:"startTimeoutMs,omitempty" doc:"Milliseconds for the handshake and for each list; 0 is 10000."`
	CallTimeout   int      `json:"callTimeoutMs,omitempty" doc:"Milliseconds for a call, counted anew when the server tells of progress; 0 is 60000."`
	MaxMessageMiB int      `json:"maxMessageMb,omitempty" doc:"Mebibytes of one message of the server; 0 is 64."`
	Sampling      Sampling `json:"sampling,omitzero" doc:"Whether it may ask the model."`
}

// Confine bounds the process of a stdio server. The zero value reads files but
// for those with secrets, writes none but in a /tmp of its own, and has no
// network.
type Confine struct {
	Writable []string `json:"writable,omitempty" doc:"Files and directories that it may write; relative ones are below the directory of the session."`
	Hosts    []string `json:"hosts,omitempty" doc:"Hosts that it may reach, as in sandbox.hosts; * is the whole network."`
}

// OAuth is what a person knows of an authorization server beforehand.
type OAuth struct {
	ClientID     string   `json:"clientId,omitempty" doc:"Identifier of a client that was registered by hand."`
	ClientSecret string   `json:"clientSecret,omitempty" doc:"Its secret, as ${NAME}."`
	Scopes       []string `json:"scopes,omitempty" doc:"Scopes to ask for."`
	CallbackPort int      `json:"callbackPort,omitempty" doc:"Port of the local address to return to; 0 is any."`
}

// Sampling bounds what a server may ask the model for. The zero value is off.
type Sampling struct {
	Enabled   bool `json:"enabled,omitempty" doc:"Whether it may ask at all; you are still asked each time."`
	MaxTokens int  `json:"maxTokens,omitempty" doc:"Tokens of one answer; 0 is 4096."`
	MaxRounds int  `json:"maxRounds,omitempty" doc:"Requests during one call of a tool; 0 is 5."`
}

// serverName is what a server may be called: it becomes part of its tools' names.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// reservedNames are sources of tools that are no servers; web is the plugin
// that comes with the agent.
var reservedNames = []string{"builtin", "host", "subagent", "skills", "web", resourceSource}

// CheckName says whether a server can be called name.
func CheckName(name string) error {
	switch {
	case !serverName.MatchString(name):
		return fmt.Errorf("%q is no name for a server: expected 1 to 40 letters, digits, _, - or ., the first a letter or digit", clip(cleanLine(name), 60))
	case strings.Contains(name, separator):
		return fmt.Errorf("%q is no name for a server: two underscores part the server from the tool", name)
	case slices.Contains(reservedNames, name):
		return fmt.Errorf("%q is no name for a server: tools of the agent's own have it", name)
	}
	return nil
}

// Transport returns the kind of transport, "" if the server has none.
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

// FieldError is a mistake in one field of a [Server].
type FieldError struct {
	Field   string // its key in JSON; empty for the whole
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

// Check finds what is wrong with the settings of a server. An error is a
// [*FieldError].
func (s Server) Check() error {
	fail := func(field, message, hint string) error { return &FieldError{field, message, hint} }
	switch s.Transport() {
	case TransportStdio:
		if strings.TrimSpace(s.Command) == "" {
			return fail("command", "a stdio server needs the program to start", `such as "command": "npx"`)
		}
		if s.URL != "" || len(s.Headers) > 0 {
			return fail("url", "a stdio server has neither url nor headers", "remove them, or the command")
		}
	case TransportHTTP, TransportSSE:
		if s.Command != "" || len(s.Args) > 0 {
			return fail("command", "a server that is reached by URL has no command", "remove it, or the url")
		}
		if err := checkURL(s.URL); err != nil {
			return err
		}
	case "":
		return fail("", "there is neither a command nor a url", "give one of them")
	default:
		return fail("type", fmt.Sprintf("unknown transport %q", s.Type), "use stdio, http or sse")
	}
	for field, n := range map[string]int{"startTimeoutMs": s.StartTimeout, "callTimeoutMs": s.CallTimeout, "maxMessageMb": s.MaxMessageMiB, "oauth": s.OAuth.CallbackPort, "sampling": min(s.Sampling.MaxTokens, s.Sampling.MaxRounds)} {
		if n < 0 {
			return fail(field, "expected a number from 0", "")
		}
	}
	return s.checkHeaders()
}

// checkURL looks at an address that may still hold variables.
func checkURL(text string) error {
	if text == "" {
		return &FieldError{"url", "an http or sse server needs its address", `such as "url": "https://example.com/mcp"`}
	}
	if strings.Contains(text, "${") {
		return nil // it is looked at again when the variables are known
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return &FieldError{"url", "expected an http or https URL", `such as "https://example.com/mcp"`}
	case u.User != nil:
		return &FieldError{"url", "a URL must not hold a user name or password", "use headers, or sign in"}
	}
	return nil
}

func (s Server) checkHeaders() error {
	for name, value := range s.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return &FieldError{"headers", fmt.Sprintf("%q is no header", name), ""}
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return &FieldError{"env", fmt.Sprintf("%q is no name of a variable", name), ""}
		}
	}
	return nil
}

// Hash identifies what is started or reached: the transport, the command with
// its arguments, environment and directory, or the address with its headers,
// as they stand in the settings, before variables are put in. Trust, caches and
// pinned definitions are bound to it.
func (s Server) Hash() string {
	identity := struct {
		Transport, Command, Cwd, URL string
		Args                         []string
		Env, Headers                 map[string]string
		Sandbox                      *Confine `json:",omitempty"`
	}{s.Transport(), s.Command, s.Cwd, s.URL, append([]string{}, s.Args...), s.Env, s.Headers, s.Sandbox}
	if len(s.Env) == 0 {
		identity.Env = nil
	}
	if len(s.Headers) == 0 {
		identity.Headers = nil
	}
	sum := sha256.Sum256(encode(identity))
	return hex.EncodeToString(sum[:])
}

// Describe returns the command line or the address, for people: without the
// values of variables and headers, and with those in arguments as they stand.
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

// Redacted returns the settings without the values that may be secret: of
// variables, headers and the client secret only those are shown that name
// variables of the environment.
func (s Server) Redacted() Server {
	hide := func(text string) string {
		if text == "" || variable.FindString(text) == text {
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
// records that are to hide them. Variables are looked up; what is not set is
// left out.
func (s Server) Secrets(lookup func(name string) (string, bool)) []string {
	expanded, _ := s.Expand(lookup) // what is wrong with it is told elsewhere
	var list []string
	for name, value := range expanded.Env {
		if secretName.MatchString(name) {
			list = append(list, value)
		}
	}
	for name, value := range expanded.Headers {
		if secretName.MatchString(name) {
			_, token, _ := strings.Cut(value, " ") // Bearer TOKEN
			list = append(list, value, token)
		}
	}
	list = append(list, expanded.OAuth.ClientSecret)
	return slices.DeleteFunc(list, func(v string) bool { return v == "" })
}

var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|auth|credential|cookie|_pat$|_pwd$|dsn`)

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Expand puts variables into a server's texts. One that is not set and has no
// default is an error that names it.
func (s Server) Expand(lookup func(name string) (string, bool)) (Server, error) {
	var errs []error
	expand := func(field, text string) string {
		return variable.ReplaceAllStringFunc(text, func(m string) string {
			part := variable.FindStringSubmatch(m)
			value, ok := lookup(part[1])
			switch {
			case ok && (value != "" || part[2] == ""):
				return value
			case part[2] != "":
				return part[3]
			}
			errs = append(errs, &FieldError{field, fmt.Sprintf("the environment has no variable %s", part[1]), "set it, or write ${" + part[1] + ":-default}"})
			return ""
		})
	}
	s.Command, s.Cwd, s.URL = expand("command", s.Command), expand("cwd", s.Cwd), expand("url", s.URL)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = expand("args", s.Args[i])
	}
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for name, value := range s.Env {
		s.Env[name] = expand("env."+name, value)
	}
	for name, value := range s.Headers {
		s.Headers[name] = expand("headers."+name, value)
	}
	s.OAuth.ClientSecret = expand("oauth.clientSecret", s.OAuth.ClientSecret)
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	return s, s.Check()
}

// Environ looks variables up in the environment of this process.
func Environ(name string) (string, bool) { return os.LookupEnv(name) }

func (s Server) startTimeout() time.Duration { return millis(s.StartTimeout, DefaultStartTimeout) }
func (s Server) listTimeout() time.Duration  { return millis(s.StartTimeout, DefaultListTimeout) }
func (s Server) callTimeout() time.Duration  { return millis(s.CallTimeout, DefaultCallTimeout) }

func (s Server) maxMessage() int64 {
	if s.MaxMessageMiB > 0 {
		return int64(s.MaxMessageMiB) << 20
	}
	return DefaultMaxMessage
}

func millis(n int, otherwise time.Duration) time.Duration {
	if n <= 0 {
		return otherwise
	}
	return time.Duration(n) * time.Millisecond
}

// offers reports whether a tool of the server is to be offered.
func (s Server) offers(tool string) bool {
	if len(s.AllowTools) > 0 && !matchAny(s.AllowTools, tool) {
		return false
	}
	return !matchAny(s.DenyTools, tool)
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchStar(p, name) })
}

// matchStar reports whether name fits a pattern in which * stands for any
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
