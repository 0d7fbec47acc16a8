package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// streams returns the IO of a command whose only settings are those of env.
func streams(t *testing.T, env map[string]string) (s *cmdutil.IO, out, errs *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &cmdutil.IO{Out: out, Err: errs, Cwd: t.TempDir(), Env: func(name string) string {
		if name == "AGENT_HOME" {
			return home
		}
		return env[name]
	}}, out, errs
}

// localAt returns flags that set the address of the local provider.
func localAt(url string) setup.Flags {
	return setup.Flags{Sets: []string{"providers.local.baseUrl=" + url, "providers.local.model=m1"}}
}

func TestList(t *testing.T) {
	s, out, _ := streams(t, map[string]string{"OPENAI_API_KEY": "sk-hidden-12345"})
	if err := (&listOptions{IO: s}).run(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"* local ", "  not required\n", "  openai ", "  environment variable OPENAI_API_KEY\n", "  missing: set ANTHROPIC_API_KEY\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "hidden") {
		t.Errorf("the key is shown:\n%s", out)
	}
}

func TestTest(t *testing.T) {
	s, out, _ := streams(t, nil)
	const closed = "http://127.0.0.1:1/v1"
	err := (&testOptions{IO: s, flags: localAt(closed)}).run(t.Context(), nil)
	if cmdutil.ExitCode(err) != cmdutil.ExitProvider || !strings.Contains(err.Error(), "NETWORK_ERROR: local: cannot connect") {
		t.Errorf("text: %v", err)
	}
	err = (&testOptions{IO: s, flags: localAt(closed), json: true}).run(t.Context(), []string{"local"})
	var result setup.CallResult
	if jsonErr := json.Unmarshal(out.Bytes(), &result); jsonErr != nil || cmdutil.ExitCode(err) != cmdutil.ExitProvider || result.OK || result.Error.Fix == "" {
		t.Errorf("JSON: %v, %v, %+v", err, jsonErr, result)
	}
	if err := (&testOptions{IO: s}).run(t.Context(), []string{"locl"}); cmdutil.ExitCode(err) != cmdutil.ExitUsage || !strings.Contains(err.Error(), "did you mean \"local\"?") {
		t.Errorf("unknown name: %v", err)
	}
}

func TestModels(t *testing.T) {
	chat := modeltest.NewChat()
	chat.Models = []string{"m2", "gpt-5-mini"}
	s, out, errs := streams(t, nil)
	if err := (&modelsOptions{IO: s, flags: localAt(chat.Serve(t))}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "  gpt-5-mini  400 k tokens\n  m2\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if !strings.Contains(errs.String(), "local does not list the configured model m1") {
		t.Errorf("stderr is %q", errs)
	}
}
