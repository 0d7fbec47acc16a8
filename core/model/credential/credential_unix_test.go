//go:build unix

package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// program puts a script of that name at the front of the PATH, and returns a
// lookup and the number of its runs.
func program(t *testing.T, name, script string) (lookup func(string) string, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	count := filepath.Join(dir, "runs")
	text := "#!/bin/sh\necho \"$@\" >>'" + count + "'\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not for it")
	return os.Getenv, func() int {
		data, _ := os.ReadFile(count)
		return strings.Count(string(data), "\n")
	}
}

func TestTokens(t *testing.T) {
	later := time.Now().Add(time.Hour).Unix()
	for _, test := range []struct {
		name, script string
		token        func(func(string) string) Token
		want         string
		runs         int
	}{
		{"gh", `echo gho_token`, GitHub, "gho_token", 1},
		{"gcloud", `echo "ya29.${AWS_SECRET_ACCESS_KEY:-none}"`, Google, "ya29.none", 1},
		{"az", fmt.Sprintf(`echo '{"accessToken":"eyJ","expires_on":%d,"tokenType":"Bearer"}'`, later), func(l func(string) string) Token { return Azure(l, "r") }, "eyJ", 1},
		{"az", `echo '{"accessToken":"old","expires_on":1000}'`, func(l func(string) string) Token { return Azure(l, "r") }, "old", 2},
	} {
		lookup, runs := program(t, test.name, test.script)
		token := test.token(lookup)
		for range 2 {
			if got, err := token(t.Context()); got != test.want || err != nil {
				t.Errorf("%s: %q, %v", test.name, got, err)
			}
		}
		if runs() != test.runs {
			t.Errorf("%s: %d runs, want %d", test.name, runs(), test.runs)
		}
	}
}

func TestNoToken(t *testing.T) {
	for script, want := range map[string]string{
		`echo "To get started, please run: gh auth login" >&2; exit 4`: "gh has no token: run gh auth login, or set providers.github.token or GITHUB_TOKEN: To get started",
		`exit 1`:                    "exit status 1",
		`echo two words`:            "it printed no token",
		`true`:                      "it printed no token",
		`echo secret; echo; exit 3`: "exit status 3",
	} {
		lookup, _ := program(t, "gh", script)
		_, err := GitHub(lookup)(t.Context())
		if model.AsError(err).Code != model.CodeNotConfigured || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "two words") {
			t.Errorf("%s: %v", script, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := GitHub(os.Getenv)(t.Context()); model.AsError(err).Code != model.CodeNotConfigured || !strings.Contains(err.Error(), "install gh") {
		t.Errorf("no gh: %v", err)
	}
}

func TestCancel(t *testing.T) {
	lookup, _ := program(t, "gh", "sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := GitHub(lookup)(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestFoundryLocal(t *testing.T) {
	for script, want := range map[string]string{
		`echo "Model management service is running on http://127.0.0.1:5273/openai/status"`: "http://127.0.0.1:5273/v1",
		`echo "Model management service is not running!"`:                                   "",
		`exit 2`: "",
	} {
		lookup, _ := program(t, "foundry", script)
		got, err := FoundryLocal(t.Context(), lookup)
		if got != want || (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "foundry service start") {
			t.Errorf("%s: %q, %v", script, got, err)
		}
	}
}
