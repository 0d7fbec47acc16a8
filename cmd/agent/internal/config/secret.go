package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/lazy"
)

const (
	redacted       = "[redacted]"
	commandTimeout = 10 * time.Second
	maxCommandOut  = 64 << 10
)

// Secret is a value that must not be shown, such as an API key. In settings it
// is a string: the value itself, "${NAME}" for an environment variable,
// "!command" for the output of a command, or "keyring:NAME" for an entry of the
// operating system's keyring.
//
// Every way of printing or encoding a Secret gives "[redacted]"; only Reveal
// returns the value. Copies share the cached output of the command or the
// keyring. The zero value is not set. It is safe for concurrent use.
type Secret struct{ state *secretState }

type secretState struct {
	text string // as written in the settings
	key  string // the dotted key, for errors; set by Load
	env  func(string) string
	ring Keyring

	mu    sync.Mutex
	value string // from the command or the keyring; empty until it is needed
}

// Keyring reads the operating system's keyring.
type Keyring interface {
	Get(ctx context.Context, name string) (string, error)
}

const keyringForm = "keyring:"

var envForm = lazy.Regexp(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// IsSet reports whether there is a value. It does not look at the environment
// or run a command.
func (s Secret) IsSet() bool { return s.state != nil }

// Variable returns the environment variable that the value is read from, "" for
// a secret of another form.
func (s Secret) Variable() string {
	if s.state == nil {
		return ""
	}
	return s.state.variable()
}

// IsCommand reports whether the value is the output of a command.
func (s Secret) IsCommand() bool { return s.state != nil && strings.HasPrefix(s.state.text, "!") }

// Entry returns the name of the keyring entry that holds the value, "" for a
// secret of another form.
func (s Secret) Entry() string {
	if s.state == nil {
		return ""
	}
	return s.state.entry()
}

// Reveal returns the value, "" for a secret that is not set. A command runs at
// the first call, for at most 10 seconds; its output, with white space trimmed,
// is cached. Errors, which are [*Error]s, never contain the output.
func (s Secret) Reveal(ctx context.Context) (string, error) {
	if s.state == nil {
		return "", nil
	}
	v, err := s.state.reveal(ctx)
	if err != nil {
		return "", &Error{Key: s.state.key, Err: err}
	}
	return v, nil
}

func (s *secretState) reveal(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != "" {
		return s.value, nil
	}
	if name := s.variable(); name != "" {
		if s.env == nil || s.env(name) == "" {
			return "", fmt.Errorf("%s: the environment variable %s is not set", s.key, name)
		}
		return s.env(name), nil
	}
	if name := s.entry(); name != "" {
		return s.fromKeyring(ctx, name)
	}
	command, ok := strings.CutPrefix(s.text, "!")
	if !ok {
		return s.text, nil
	}
	value, err := Command(ctx, command)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.key, err)
	}
	s.value = value
	return value, nil
}

// Command runs a line of the user's settings in the system's shell, for at most 10
// seconds, and returns its output without surrounding white space. Errors never
// contain the output.
func Command(ctx context.Context, line string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := run(limited, line)
	value := strings.TrimSpace(string(out))
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command was cancelled: %w", context.Cause(ctx))
	case limited.Err() != nil:
		return "", fmt.Errorf("the command timed out after %s: %w", commandTimeout, limited.Err())
	case err != nil:
		return "", fmt.Errorf("the command failed: %w; run it in a shell to see why", err)
	case value == "":
		return "", errors.New("the command printed nothing")
	}
	return value, nil
}

func (s *secretState) fromKeyring(ctx context.Context, name string) (string, error) {
	if s.ring == nil {
		return "", fmt.Errorf("%s: no keyring available to read %s from", s.key, name)
	}
	value, err := s.ring.Get(ctx, name)
	if err != nil {
		return "", fmt.Errorf("%s: %w; run 'agent providers setup' to store the key again", s.key, err)
	}
	s.value = value
	return value, nil
}

// entry returns the name of the keyring entry, if it is one.
func (s *secretState) entry() string {
	name, _ := strings.CutPrefix(s.text, keyringForm)
	if name == s.text {
		return ""
	}
	return name
}

// variable returns the name of the environment variable, if it is one.
func (s *secretState) variable() string {
	if m := envForm().FindStringSubmatch(s.text); m != nil {
		return m[1]
	}
	return ""
}

// known returns the value if no command or keyring access is needed for it.
func (s Secret) known() string {
	if s.state == nil {
		return ""
	}
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	switch name := s.state.variable(); {
	case s.state.value != "":
		return s.state.value
	case name != "" && s.state.env != nil:
		return s.state.env(name)
	case name != "", strings.HasPrefix(s.state.text, "!"), s.state.entry() != "":
		return ""
	}
	return s.state.text
}

// Literal reports whether the settings contain the value itself.
func (s Secret) Literal() bool {
	return s.IsSet() && s.Variable() == "" && s.Entry() == "" && !s.IsCommand()
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Secret) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil || string(data) == "null" {
		return errors.New("expected a string: a key, ${NAME}, !command or keyring:NAME")
	}
	switch {
	case text == "":
		*s = Secret{}
		return nil
	case text == redacted:
		return errors.New("this is the placeholder for a redacted key")
	case strings.HasPrefix(text, "${") && !envForm().MatchString(text):
		return errors.New("expected the name of one environment variable, as in ${NAME}")
	case strings.TrimSpace(text) == "!":
		return errors.New("expected a command after the exclamation mark")
	case text == keyringForm:
		return errors.New("expected the name of a keyring entry, as in keyring:openai")
	case strings.ContainsAny(text, "\r\n\x00"):
		return errors.New("a key must not contain line breaks")
	}
	*s = Secret{&secretState{text: text}}
	return nil
}

// String implements [fmt.Stringer].
func (s Secret) String() string {
	if s.state == nil {
		return ""
	}
	return redacted
}

// GoString implements [fmt.GoStringer].
func (s Secret) GoString() string { return s.String() }

// Format implements [fmt.Formatter], for all verbs.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText implements [encoding.TextMarshaler].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON implements [json.Marshaler].
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
