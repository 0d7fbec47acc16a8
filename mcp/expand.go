package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Environ looks up a variable in the environment of this process.
func Environ(name string) (string, bool) { return os.LookupEnv(name) }

// Command runs a command of a server's settings and returns its output, without
// surrounding white space.
type Command func(ctx context.Context, line string) (string, error)

// reference matches a variable at the start of a text.
var reference = lazy.Regexp(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Expand expands the references in a server's settings: ${NAME} and
// ${NAME:-default} everywhere, and $(command) in the values of env, headers and
// the client secret; $$( is a plain $(. A variable that is unset and has no
// default is an error that names it, and so is a command if run is nil.
func (s Server) Expand(ctx context.Context, lookup func(name string) (string, bool), run Command) (Server, error) {
	if s.Verbatim {
		return s, s.check()
	}
	x := &expansion{lookup: lookup, run: func(line string) (string, error) {
		if run == nil {
			return "", errors.New("commands in settings are not run here")
		}
		return run(ctx, line)
	}}
	s = x.server(s)
	if err := errors.Join(x.errs...); err != nil {
		return s, err
	}
	return s, s.check()
}

// Commands returns the commands in the settings, which run when the server is
// started or connected to.
func (s Server) Commands() []string {
	var lines []string
	x := &expansion{lookup: func(string) (string, bool) { return "", true }, run: func(line string) (string, error) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		return "", nil
	}}
	x.server(s)
	slices.Sort(lines)
	return lines
}

// checkCommands finds a command without end.
func (s Server) checkCommands() error {
	x := &expansion{lookup: func(string) (string, bool) { return "", true }, run: func(string) (string, error) { return "", nil }}
	x.server(s)
	if len(x.errs) > 0 {
		return x.errs[0]
	}
	return nil
}

// expansion expands the settings of a server.
type expansion struct {
	lookup func(name string) (string, bool)
	run    func(line string) (string, error)
	errs   []error
}

func (x *expansion) server(s Server) Server {
	s.Command, s.Cwd, s.URL = x.text("command", s.Command, false), x.text("cwd", s.Cwd, false), x.text("url", s.URL, false)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = x.text("args", s.Args[i], false)
	}
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for name, value := range s.Env {
		s.Env[name] = x.text("env."+name, value, true)
	}
	for name, value := range s.Headers {
		s.Headers[name] = x.text("headers."+name, value, true)
	}
	s.OAuth.ClientSecret = x.text("oauth.clientSecret", s.OAuth.ClientSecret, true)
	return s
}

// text expands a text. Arguments have no commands: those of a shell contain $(
// with another meaning.
func (x *expansion) text(field, text string, commands bool) string {
	fail := func(message, hint string) { x.errs = append(x.errs, &FieldError{field, message, hint}) }
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			return out.String() + text
		}
		out.WriteString(text[:at])
		text = text[at:]
		m := reference().FindStringSubmatch(text)
		switch {
		case m != nil:
			value, ok := x.lookup(m[1])
			switch {
			case m[2] != "" && value == "":
				value = m[3]
			case !ok:
				fail(fmt.Sprintf("environment variable %s is not set", m[1]), "set it, or use ${"+m[1]+":-default}")
			}
			out.WriteString(value)
			text = text[len(m[0]):]
		case commands && strings.HasPrefix(text, "$$("):
			out.WriteString("$(")
			text = text[3:]
		case commands && strings.HasPrefix(text, "$("):
			n := commandLen(text)
			if n < 0 {
				fail("$( without )", "write $$( for a plain $(")
				return out.String()
			}
			line := strings.TrimSpace(text[2 : n-1])
			value, err := x.run(line)
			if err != nil {
				fail(fmt.Sprintf("$(%s): %v", clip(cleanLine(line), 100), err), "")
			}
			out.WriteString(value)
			text = text[n:]
		default:
			out.WriteByte('$')
			text = text[1:]
		}
	}
}

// commandLen returns the length of the $(command) at the start of a text, -1 if it
// does not end. Parentheses in quotes do not count.
func commandLen(text string) int {
	depth, quote := 0, byte(0)
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// secrets are the forms in which secrets may be in a message or a text.
type secrets [][]byte

// minSecret is the length of the shortest secret to look for: shorter ones would
// match harmless text.
const minSecret = 8

func (s *secrets) add(value string) {
	if len(value) < minSecret {
		return
	}
	quoted := encode(value)
	for _, form := range [][]byte{[]byte(value), quoted[1 : len(quoted)-1]} {
		*s = append(*s, form)
	}
}

// hide replaces the secrets in a message or a text.
func (s secrets) hide(data []byte) []byte {
	for _, form := range s {
		if bytes.Contains(data, form) {
			data = bytes.ReplaceAll(data, form, []byte("[redacted]"))
		}
	}
	return data
}
