package root

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// keyVariables are the variables from which the settings take keys.
func keyVariables(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		switch name := f.Tag.Get("env"); {
		case f.Type == reflect.TypeFor[config.Secret]() && name != "":
			names = append(names, name)
		case f.Type.Kind() == reflect.Struct:
			names = append(names, keyVariables(f.Type)...)
		}
	}
	return names
}

// tellScript is what tell does, as a script.
const tellScript = `#!/bin/sh
marked() { tr '\0' '\n' | grep -a ` + keyMark + ` | cut -d= -f1 | sort -u | sed "s/^/$1 /"; }
marked own </proc/$$/environ
{ for f in /proc/[0-9]*/environ; do cat "$f"; done; } 2>/dev/null | marked other
echo looked
`

// TestKeysStayInTheAgent has every kind of process that the agent starts look
// for keys: in its own environment and in that of all processes that it sees.
// The key of the model comes from each place that a key can come from; the
// variables of all providers are set besides. A variable that each process must
// see shows that it looks in the right place.
func TestKeysStayInTheAgent(t *testing.T) {
	env := []string{tellerEnv + "=" + keyMark, "MY_SERVICE_TOKEN=" + keyMark, "AWS_SECRET_ACCESS_KEY=" + keyMark, keyringEnv + "=" + keyMark + "-keyring", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere"}
	variables := keyVariables(reflect.TypeFor[config.Settings]())
	if len(variables) < 6 {
		t.Fatalf("the settings take keys from %q only", variables)
	}
	for _, name := range variables {
		env = append(env, name+"="+keyMark+"-"+strings.ToLower(name))
	}
	for _, from := range []struct{ place, text, key string }{
		{"environment", "${OPENAI_API_KEY}", keyMark + "-openai_api_key"},
		{"settings", keyMark + "-text", keyMark + "-text"},
		{"command", "!echo " + keyMark + "-command", keyMark + "-command"},
		{"keyring", "keyring:test", keyMark + "-keyring"},
	} {
		for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock, sandbox.ModeOff} {
			t.Run(from.place+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				s := proc.NewSupervisor(proc.Options{})
				defer s.Close()
				if _, err := s.Sandbox().Choose(t.Context(), mode); err != nil && mode != sandbox.ModeOff {
					t.Skip(err)
				}
				w := newTeller(t, mode, from.text)
				args := []string{"--permission-mode", "workspace", "--allow", "plugin(*)", "--allow", "mcp(*)", "--allow", "skill-script(*)"}
				if mode == sandbox.ModeOff { // with a sandbox, it would run outside
					args = append(args, "--allow", "shell(sh *)")
				}
				set := env
				if from.place != "environment" { // which would go before it
					set = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "OPENAI_API_KEY=") })
				}
				a := w.execWith(set, append(args, "Look")...)
				if err := await("the last command", func() bool { _, err := os.Stat(filepath.Join(w.workspace, "sub", "waiting")); return err == nil }); err != nil {
					t.Fatalf("%v\n%s", err, a.read(a.stdout))
				}
				for pid, names := range markedBelow(t, a.cmd.Process.Pid) {
					t.Errorf("process %s has %q in its environment", pid, names)
				}
				if err := os.WriteFile(filepath.Join(w.workspace, "sub", "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				a.exits(0)
				w.check(t, mode, a.read(a.stdout))
				if got := w.chat.Requests()[0].Header.Get("Authorization"); got != "Bearer "+from.key {
					t.Errorf("the model's key is %q, want %q", got, from.key)
				}
			})
		}
	}
}

// teller is a world in which every kind of process tells what it sees.
type teller struct{ *world }

// tellers are the calls that have them tell, and whether each is confined where
// there is a sandbox.
var tellers = []struct {
	tool, args string
	confined   bool
}{
	{"shell", `{"command": "sh tell.sh"}`, true},
	{"skill", `{"action": "run_script", "name": "tell", "path": "tell.sh"}`, true},
	{"tell", `{}`, true},
	{"boxed__tell", `{}`, true},
	{"free__tell", `{}`, false},
	{"shell", `{"command": "sh wait.sh"}`, true},
}

func newTeller(t *testing.T, mode sandbox.Mode, key string) teller {
	var turns []string
	for _, c := range tellers {
		turns = append(turns, fmt.Sprintf("{calls: [{name: %s, args: '%s'}]}", c.tool, c.args))
	}
	w := teller{newWorld(t, "["+strings.Join(turns, ", ")+", {text: [Done.]}]")}
	file := filepath.Join(w.home, ".agent", "settings.json")
	var before struct {
		Providers struct{ Local struct{ BaseURL string } }
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &before)
	}
	if err != nil {
		t.Fatal(err)
	}
	control := map[string]string{tellerEnv: keyMark}
	settings, err := json.Marshal(map[string]any{
		"version":   1,
		"providers": map[string]any{"default": "openai", "openai": map[string]any{"baseUrl": before.Providers.Local.BaseURL, "apiKey": key, "api": "chat", "model": "fake-1"}},
		"sandbox":   map[string]any{"shell": mode, "skills": mode, "plugins": mode, "mcp": mode},
		"mcp": map[string]any{"servers": map[string]any{
			"boxed": map[string]any{"command": "mcpserver", "env": control, "required": true, "sandbox": map[string]any{}},
			"free":  map[string]any{"command": "mcpserver", "env": control, "required": true},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for at, text := range map[string]string{
		file:                                  string(settings),
		filepath.Join(w.workspace, "tell.sh"): tellScript,
		filepath.Join(w.workspace, "wait.sh"): tellScript + "touch sub/waiting; until [ -e sub/go ]; do sleep 0.05; done\n",
		filepath.Join(w.home, ".agent/skills/tell/SKILL.md"):        "---\nname: tell\ndescription: Tells what it sees.\n---\nTell.\n",
		filepath.Join(w.home, ".agent/skills/tell/scripts/tell.sh"): tellScript,
	} {
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

var toldName = regexp.MustCompile(`(?m)^(own|other) (\w+)$`)

// check looks at what the processes told.
func (w teller) check(t *testing.T, mode sandbox.Mode, stream string) {
	t.Helper()
	n := 0
	for line := range strings.Lines(stream) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		result, ok := e.Body.(event.ToolResult)
		if !ok {
			continue
		}
		call := tellers[n]
		n++
		text := result.Content.Text()
		if result.IsError || !strings.Contains(text, "looked") {
			t.Errorf("%s %s: %s", call.tool, call.args, text)
			continue
		}
		own := []string{}
		for _, found := range toldName.FindAllStringSubmatch(text, -1) {
			switch kind, name := found[1], found[2]; {
			case kind == "own":
				own = append(own, name)
			case call.confined && mode != sandbox.ModeOff && name != tellerEnv:
				t.Errorf("%s %s sees the %s of another process", call.tool, call.args, name)
			}
		}
		want := []string{tellerEnv}
		if call.tool == "skill" {
			want = []string{} // it gets no more than programs need
		}
		if !slices.Equal(own, want) {
			t.Errorf("%s %s has %q in its environment, want %q", call.tool, call.args, own, want)
		}
	}
	if n != len(tellers) {
		t.Errorf("%d calls have results, want %d", n, len(tellers))
	}
}

// markedBelow returns the marked variables of all processes below one, but for
// the control. One that may not be looked at tells nobody anything.
func markedBelow(t *testing.T, root int) map[string][]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[string]string{}
	for _, file := range stats {
		if stat, err := os.ReadFile(file); err == nil {
			fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			parents[filepath.Base(filepath.Dir(file))] = fields[1]
		}
	}
	found, below := map[string][]string{}, 0
	for pid := range parents {
		up := parents[pid]
		for up != "" && up != strconv.Itoa(root) {
			up = parents[up]
		}
		if up == "" {
			continue
		}
		below++
		environ, _ := os.ReadFile(filepath.Join("/proc", pid, "environ")) // it has ended, or is hidden
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if name, value, _ := strings.Cut(entry, "="); strings.Contains(value, keyMark) && name != tellerEnv {
				found[pid] = append(found[pid], name)
			}
		}
	}
	if below < 4 {
		t.Errorf("there are %d processes below the agent, want its servers, a plugin and a command", below)
	}
	return found
}
