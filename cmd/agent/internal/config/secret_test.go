package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestReveal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are written for sh")
	}
	m := newMachine(t, "", "")
	m.env["MY_KEY"] = "from-env"
	m.env["OPENAI_API_KEY"] = "!echo not a command"
	for _, tt := range []struct{ name, text, want, err string }{
		{name: "literal", text: "sk-1", want: "sk-1"},
		{name: "empty", text: "", want: ""},
		{name: "variable", text: "${MY_KEY}", want: "from-env"},
		{name: "unset variable", text: "${NONE}", err: "providers.local.apiKey: the environment variable NONE is not set"},
		{name: "dollar", text: "a$b", want: "a$b"},
		{name: "command", text: "!printf ' k e y\\n'", want: "k e y"},
		{name: "pipe", text: "!echo abc | tr a-c x-z", want: "xyz"},
		{name: "failing", text: "!echo sk-hidden; echo sk-hidden >&2; exit 3", err: "providers.local.apiKey: the command failed: exit status 3; run it in a shell to see why"},
		{name: "silent", text: "!true", err: "providers.local.apiKey: the command printed nothing"},
		{name: "flood", text: "!yes sk-hidden | head -c 100000", err: "providers.local.apiKey: the command failed: the output is too long for a key; run it in a shell to see why"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, err := json.Marshal(map[string]any{"providers": map[string]any{"local": map[string]any{"apiKey": tt.text}}})
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(m.home, ".agent", "settings.json"), string(data))
			l := load(t, m.options())
			got, err := l.Settings.Providers.Local.APIKey.Reveal(t.Context())
			if got != tt.want || tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
				t.Errorf("got %q, %v", got, err)
			}
			if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
				t.Errorf("%T is no *Error", err)
			}
			if key, err := l.Settings.Providers.OpenAI.APIKey.Reveal(t.Context()); key != m.env["OPENAI_API_KEY"] || err != nil {
				t.Errorf("a variable's value was not taken as it is: %q, %v", key, err)
			}
			known := []string{m.env["OPENAI_API_KEY"]}
			if tt.want != "" {
				known = []string{tt.want, known[0]}
			}
			if got := l.KnownSecrets(); !slices.Equal(got, known) {
				t.Errorf("known %q", got)
			}
		})
	}
}

func TestCommandRunsOnceAndOnlyWhenNeeded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is written for sh")
	}
	count := filepath.Join(t.TempDir(), "count")
	m := newMachine(t, fmt.Sprintf(`{"providers":{"openai":{"apiKey":"!echo x >> '%s'; echo key"}}}`, count), "")
	l := load(t, m.options())
	if got := l.KnownSecrets(); got != nil {
		t.Errorf("known before it ran: %v", got)
	}
	if _, err := os.Stat(count); err == nil {
		t.Fatal("the command ran before its key was needed")
	}
	settings := l.Settings // a copy shares the value
	for _, s := range []Secret{l.Settings.Providers.OpenAI.APIKey, settings.Providers.OpenAI.APIKey} {
		if got, err := s.Reveal(t.Context()); got != "key" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if data, err := os.ReadFile(count); string(data) != "x\n" || err != nil {
		t.Errorf("it ran %d times (%v)", strings.Count(string(data), "x"), err)
	}
}

func TestCommandEndsWithItsContext(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is written for sh")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "started")
	m := newMachine(t, fmt.Sprintf(`{"providers":{"openai":{"apiKey":"!echo > '%s'; sleep 1000 & wait"}}}`, pipe), "")
	l := load(t, m.options())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := os.Stat(pipe); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			runtime.Gosched()
		}
	}()
	_, err := l.Settings.Providers.OpenAI.APIKey.Reveal(ctx)
	cancel()
	<-done
	if !errors.Is(err, context.Canceled) || err.Error() != "providers.openai.apiKey: the command was cancelled: context canceled" {
		t.Errorf("got %v", err)
	}
}

func TestNoSecret(t *testing.T) {
	var none Secret
	if v, err := none.Reveal(t.Context()); v != "" || err != nil || none.IsSet() || none.known() != "" || none.String() != "" {
		t.Errorf("%q, %v", v, err)
	}
}

func TestSecretForm(t *testing.T) {
	for text, want := range map[string]struct {
		variable string
		command  bool
	}{
		`"sk-123"`:       {"", false},
		`"${MY_KEY}"`:    {"MY_KEY", false},
		`"!pass show k"`: {"", true},
		`""`:             {"", false},
	} {
		var s Secret
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if s.Variable() != want.variable || s.IsCommand() != want.command {
			t.Errorf("%s: variable %q, command %t", text, s.Variable(), s.IsCommand())
		}
	}
}
