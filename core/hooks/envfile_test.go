package hooks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/hooks"
)

// TestEnvFile reads what a SessionStart hook leaves in CLAUDE_ENV_FILE.
func TestEnvFile(t *testing.T) {
	t.Parallel()
	refuse := hooks.Options{Variable: func(name, _ string) error {
		if name == "PATH" {
			return errors.New("no paths")
		}
		return nil
	}}
	for _, tt := range []struct{ name, script, names, message, err string }{
		{name: "nothing", script: "true"},
		{name: "a line", script: `echo 'export MODE=fast' >>"$CLAUDE_ENV_FILE"`, names: "MODE"},
		{name: "several", script: `printf '# c\nexport A=1 B="two words"; export C='"\"it's\""'\n\nexport A=3\n' >"$CLAUDE_ENV_FILE"`, names: "A B C"},
		{name: "as export -p prints it", script: `printf 'declare -x A="1\n2"\ndeclare -x OLD\ndeclare -x PATH="/x"\n' >>"$CLAUDE_ENV_FILE"`, names: "A", message: "PATH is not set: no paths"},
		{name: "expanded", script: `echo 'export A="$HOME/x" B=1' >>"$CLAUDE_ENV_FILE"`, names: "B", message: "A is not set: its value has $"},
		{name: "a command", script: `printf 'export A=1\nrm -r x\n' >>"$CLAUDE_ENV_FILE"`, err: "line 2 is not: export NAME=value"},
		{name: "not exported", script: `echo 'A=1' >>"$CLAUDE_ENV_FILE"`, err: "line 1 is not"},
		{name: "a pipe", script: `echo 'export A=1 | sh' >>"$CLAUDE_ENV_FILE"`, err: "line 1 is not"},
		{name: "an open quote", script: `echo "export A='1" >>"$CLAUDE_ENV_FILE"`, err: "line 1 is not"},
		{name: "a wrong name", script: `echo "export A-B=1" >>"$CLAUDE_ENV_FILE"`, err: "line 1 is not"},
		{name: "an array", script: `echo "export A=(1 2)" >>"$CLAUDE_ENV_FILE"`, err: "line 1 is not"},
		{name: "a NUL", script: `printf 'export A=1\0002\n' >>"$CLAUDE_ENV_FILE"`, err: "line 1 is not"},
		{name: "too much", script: `yes 'export A=1' | head -c 70000 >>"$CLAUDE_ENV_FILE"`, err: "more than 64 KiB"},
		{name: "another file in its place", script: `echo 'export A=1' >other; rm "$CLAUDE_ENV_FILE"; ln -s "$PWD/other" "$CLAUDE_ENV_FILE"`},
		{name: "a hook that fails", script: `echo 'export A=1' >>"$CLAUDE_ENV_FILE"; exit 1`, err: "exit code 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := engine(t, refuse, hooks.Source{}, `{"SessionStart": [{"hooks": [`+command(tt.script)+`]}]}`).
				Run(t.Context(), place(t), hooks.Input{Event: hooks.SessionStart, Source: "startup"}, nil, nil)
			r := out.Results[0]
			if names := strings.Join(r.Variables, " "); names != tt.names || !strings.Contains(r.Message, tt.message) || (tt.message == "") != (r.Message == "") {
				t.Errorf("variables = %q, %q; want %q, %q", names, r.Message, tt.names, tt.message)
			}
			if (r.Err == nil) != (tt.err == "") || r.Err != nil && !strings.Contains(r.Err.Error(), tt.err) {
				t.Errorf("err = %v, want %q", r.Err, tt.err)
			}
		})
	}
}

// TestEnvFileIsForSessionStart shows that other hooks get no file.
func TestEnvFileIsForSessionStart(t *testing.T) {
	t.Parallel()
	set := hooks.Options{Variable: func(string, string) error { return nil }}
	other := engine(t, set, hooks.Source{}, `{"Stop": [{"hooks": [`+command(`test -z "$CLAUDE_ENV_FILE"`)+`]}]}`)
	if out := other.Run(t.Context(), place(t), hooks.Input{Event: hooks.Stop}, nil, nil); out.Results[0].Err != nil {
		t.Error(out.Results[0].Err)
	}
	without := engine(t, hooks.Options{}, hooks.Source{}, `{"SessionStart": [{"hooks": [`+command(`test -z "$CLAUDE_ENV_FILE"`)+`]}]}`)
	if out := without.Run(t.Context(), place(t), hooks.Input{Event: hooks.SessionStart}, nil, nil); out.Results[0].Err != nil {
		t.Error(out.Results[0].Err)
	}
}
