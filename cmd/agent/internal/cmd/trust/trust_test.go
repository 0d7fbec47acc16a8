package trust

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

func TestTrust(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AGENT_HOME", "")
	var out bytes.Buffer
	s := &cmdutil.IO{Out: &out, Err: t.Output(), Env: os.Getenv, Cwd: t.TempDir()}
	write := func(text string) {
		t.Helper()
		file := filepath.Join(s.Cwd, ".agent", "settings.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(o trustOptions, want string) {
		t.Helper()
		out.Reset()
		o.IO = s
		if err := o.run(t.Context(), nil); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%+v: %v, printed %s", o, err, &out)
		}
	}
	run(trustOptions{show: true}, " has nothing to trust.\n")
	run(trustOptions{}, " is now trusted. It has nothing to trust yet; you will be asked when it does.\n")
	write(`{"agent": {"maxRounds": 3}, "permissions": {"deny": ["shell(rm *)"]}}`)
	run(trustOptions{show: true}, " has changed since it was trusted: ")
	run(trustOptions{}, "agent.maxRounds = 3\n    deny shell(rm *)\n")
	run(trustOptions{show: true}, " is trusted, with:\n")
	run(trustOptions{list: true, json: true}, "")
	var list []info
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != 1 || list[0].Status != "trusted" {
		t.Errorf("list %+v, %v", list, err)
	}
	run(trustOptions{revoke: true}, "Revoked trust in ")
	run(trustOptions{revoke: true}, " was not trusted.\n")

	write(`{"agnt": {}}`)
	if err := (&trustOptions{IO: s}).run(t.Context(), nil); cmdutil.ExitCode(err) != cmdutil.ExitConfig {
		t.Errorf("invalid settings: %v", err)
	}
	for _, o := range []trustOptions{{list: true, show: true}, {revoke: true, show: true}, {json: true}} {
		if err := o.run(t.Context(), nil); cmdutil.ExitCode(err) != cmdutil.ExitUsage {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
