package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

func wireConfig(url string) wire.Config { return wire.Config{BaseURL: url} }

// answer runs setup with the answers, one a line, and returns what it printed.
func answer(t *testing.T, home string, candidates []knownServer, answers ...string) (string, error) {
	t.Helper()
	return answerWith(t, home, nil, candidates, answers...)
}

// ring is a keyring.
type ring map[string]string

func (r ring) Available(context.Context) bool { return true }

func (r ring) Running() bool { return true }

func (r ring) Delete(_ context.Context, name string) error {
	if _, ok := r[name]; !ok {
		return fs.ErrNotExist
	}
	delete(r, name)
	return nil
}

func (r ring) Get(_ context.Context, name string) (string, error) {
	if v, ok := r[name]; ok {
		return v, nil
	}
	return "", fmt.Errorf("no such entry: %w", fs.ErrNotExist)
}

func (r ring) Set(_ context.Context, name, value string) error {
	r[name] = value
	return nil
}

func answerWith(t *testing.T, home string, keys keyStore, candidates []knownServer, answers ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s := &streams{
		in: strings.NewReader(strings.Join(answers, "\n") + "\n"), out: &out, err: &out, cwd: t.TempDir(), keyring: keys,
		env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] },
	}
	err := (&setup{prompter: newPrompter(s), candidates: candidates}).run(t.Context())
	return out.String(), err
}

// TestSetupOffersLocalServers checks that a server found on this machine is
// what an empty answer means, and can be chosen by number.
func TestSetupOffersLocalServers(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	chat.Models = []string{"m2", "m1"}
	first, second := serve(t, "First"), knownServer{"Second", chat.Serve(t)}
	home := filepath.Join(t.TempDir(), "home")
	out, err := answer(t, home, []knownServer{first, second}, "local", "2", "", "", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"  1  " + first.url + " (First?): no models yet", "  2  " + second.url, "Endpoint [" + first.url + "]: ", "Model [m1]: ", "m1 answered in"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	data, err := os.ReadFile(filepath.Join(home, "settings.json"))
	if err != nil || !strings.Contains(string(data), `"baseUrl": "`+second.url+`"`) || !strings.Contains(string(data), `"model": "m1"`) {
		t.Errorf("settings %s, %v", data, err)
	}
}

// TestSetupLongLists checks that a long list is cut, and that all of it can
// still be chosen.
func TestSetupLongLists(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	for c := 'a'; c <= 'z'; c++ {
		chat.Models = append(chat.Models, "x-"+string(c), "y-"+string(c))
	}
	out, err := answer(t, t.TempDir(), nil, "", chat.Serve(t), "", "y-z", "")
	if err != nil || !strings.Contains(out, "30  y-d\n      and 22 more, by name\n") || !strings.Contains(out, "y-z answered") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSetupKeepsTheKeyInTheKeyring checks that the key is in the keyring, not in
// the settings, and is read from there.
func TestSetupKeepsTheKeyInTheKeyring(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	chat.Models, chat.Key = []string{"m1"}, "a-key-of-ours"
	keys, home := ring{}, t.TempDir()
	out, err := answerWith(t, home, keys, nil, "local", chat.Serve(t), "a-key-of-ours", "", "m1")
	if err != nil || keys["local"] != "a-key-of-ours" {
		t.Fatalf("%v, keyring %v\n%s", err, keys, out)
	}
	data, err := os.ReadFile(filepath.Join(home, "settings.json"))
	if err != nil || !strings.Contains(string(data), `"apiKey": "keyring:local"`) || strings.Contains(string(data)+out, "a-key-of-ours") {
		t.Errorf("settings %s, %v\n%s", data, err, out)
	}
	var stdout bytes.Buffer
	s := &streams{out: &stdout, err: &stdout, cwd: t.TempDir(), keyring: keys, env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] }}
	if code := run(t.Context(), []string{"providers", "test"}, s); code != 0 || !strings.Contains(stdout.String(), "m1 answered") {
		t.Errorf("exit %d: %s", code, stdout.String())
	}
	delete(keys, "local")
	stdout.Reset()
	if code := run(t.Context(), []string{"providers", "test"}, s); code != exitConfig || !strings.Contains(stdout.String(), "providers.local.apiKey: no such entry") {
		t.Errorf("exit %d: %s", code, stdout.String())
	}
}

func TestSetupWithoutHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	out, err := answer(t, "", nil, "local")
	if exitCode(err) != exitConfig || !strings.Contains(err.Error(), "set HOME or AGENT_HOME") {
		t.Errorf("%v\n%s", err, out)
	}
}
