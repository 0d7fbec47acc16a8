package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

func newIO(t *testing.T) (s *cmdutil.IO, out *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	out = &bytes.Buffer{}
	env := map[string]string{"AGENT_HOME": home}
	return &cmdutil.IO{In: strings.NewReader("7\n"), Out: out, Err: out, Cwd: t.TempDir(), Env: func(name string) string { return env[name] }}, out
}

func TestSetGetUnset(t *testing.T) {
	s, out := newIO(t)
	printed := func(err error, want string) {
		t.Helper()
		if err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("error %v, printed %q, want %q", err, out, want)
		}
		out.Reset()
	}
	const key = "agent.maxRounds"
	printed((&setOptions{editOptions{IO: s}}).run(t.Context(), key, "-"), "Set agent.maxRounds in ")
	printed((&getOptions{IO: s}).run(t.Context(), key), "7\n")
	printed((&listOptions{IO: s}).run(), "KEY              VALUE  SOURCE\nversion          1      ")
	if _, err := trust.Open(os.Getenv("HOME")).Trust(t.Context(), s.WorkDir(""), time.Now()); err != nil {
		t.Fatal(err)
	}
	printed((&setOptions{editOptions{IO: s, project: true}}).run(t.Context(), key, "8"), "Set agent.maxRounds in "+s.Cwd)
	printed((&getOptions{IO: s}).run(t.Context(), key), "8\n") // the project stays trusted
	printed((&setOptions{editOptions{IO: s}}).run(t.Context(), key, "9"), "Set agent.maxRounds in ")
	printed((&unsetOptions{editOptions{IO: s, project: true}}).run(t.Context(), key), "Removed agent.maxRounds from "+s.Cwd)
	printed((&unsetOptions{editOptions{IO: s, project: true}}).run(t.Context(), key), "agent.maxRounds is not set in "+s.Cwd)
	printed((&getOptions{IO: s}).run(t.Context(), key), "9\n")
	printed((&pathOptions{IO: s}).run(), filepath.Join(os.Getenv("HOME"), "settings.json"))
	printed((&validateOptions{IO: s}).run(""), filepath.Join(os.Getenv("HOME"), "settings.json")+": valid\n")
	printed((&schemaOptions{s}).run(), "{")
}

func TestUsageErrors(t *testing.T) {
	s, out := newIO(t)
	o := &validateOptions{IO: s}
	o.flags.SettingsFile = "x"
	for name, err := range map[string]error{
		"two files":     o.run("y"),
		"--cd alone":    (&setOptions{editOptions{IO: s, dir: "x"}}).run(t.Context(), "agent.maxRounds", "1"),
		"unknown key":   (&getOptions{IO: s}).run(t.Context(), "agent.maxRound"),
		"invalid value": (&setOptions{editOptions{IO: s}}).run(t.Context(), "agent.maxRounds", "many"),
	} {
		if cmdutil.ExitCode(err) != cmdutil.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&validateOptions{IO: s}).run("nope.json"); cmdutil.ExitCode(err) != cmdutil.ExitConfig {
		t.Errorf("missing file: %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("printed %q", out)
	}
}
