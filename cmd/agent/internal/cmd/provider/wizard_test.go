package provider

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// answer runs the wizard for a provider with answers, one per line, and returns what it
// printed.
func answer(t *testing.T, home string, candidates []setup.KnownServer, name string, answers ...string) (string, error) {
	t.Helper()
	return answerWith(t, home, nil, candidates, name, answers...)
}

// ring is a keyring in memory.
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

func answerWith(t *testing.T, home string, keys cmdutil.Keyring, candidates []setup.KnownServer, name string, answers ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s := &cmdutil.IO{
		In: strings.NewReader(strings.Join(answers, "\n") + "\n"), Out: &out, Err: &out, Cwd: t.TempDir(), Keyring: keys,
		Env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] },
	}
	err := (&wizard{Prompter: cmdutil.NewPrompter(s), candidates: candidates, name: name}).run(t.Context())
	return out.String(), err
}

// TestSetupOffersLocalServers checks that a server found on this machine is the
// default, and can be chosen by number.
func TestSetupOffersLocalServers(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	chat.Models = []string{"m2", "m1"}
	first, second := setup.KnownServer{Name: "First", URL: modeltest.NewChat().Serve(t)}, setup.KnownServer{Name: "Second", URL: chat.Serve(t)}
	home := filepath.Join(t.TempDir(), "home")
	out, err := answer(t, home, []setup.KnownServer{first, second}, "local", "2", "", "", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"  1  " + first.URL + " (First?): no models yet", "  2  " + second.URL, "Endpoint [" + first.URL + "]: ", "Model [m1]: ", "m1 answered in"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	data, err := os.ReadFile(filepath.Join(home, "settings.json"))
	if err != nil || !strings.Contains(string(data), `"baseUrl": "`+second.URL+`"`) || !strings.Contains(string(data), `"model": "m1"`) {
		t.Errorf("settings %s, %v", data, err)
	}
}

// TestSetupLongLists checks that a long list is cut, and that models which are
// not shown can be chosen.
func TestSetupLongLists(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	for c := 'a'; c <= 'z'; c++ {
		chat.Models = append(chat.Models, "x-"+string(c), "y-"+string(c))
	}
	out, err := answer(t, t.TempDir(), nil, "local", chat.Serve(t), "", "y-z", "")
	if err != nil || !strings.Contains(out, "30  y-d\n      and 22 more (enter the name)\n") || !strings.Contains(out, "y-z answered") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSetupKeyring checks that the key is saved in the keyring, not in the
// settings, and is read from there.
func TestSetupKeyring(t *testing.T) {
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
	s := &cmdutil.IO{Out: &stdout, Err: &stdout, Cwd: t.TempDir(), Keyring: keys, Env: func(name string) string { return map[string]string{"AGENT_HOME": home}[name] }}
	if err := (&testOptions{IO: s}).run(t.Context(), nil); err != nil || !strings.Contains(stdout.String(), "m1 answered") {
		t.Errorf("%v: %s", err, stdout.String())
	}
	delete(keys, "local")
	if err := (&testOptions{IO: s}).run(t.Context(), nil); cmdutil.ExitCode(err) != cmdutil.ExitConfig || !strings.Contains(err.Error(), "providers.local.apiKey: no such entry") {
		t.Errorf("without the entry: %v", err)
	}
}

func TestSetupWithoutHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	out, err := answer(t, "", nil, "local")
	if cmdutil.ExitCode(err) != cmdutil.ExitConfig || !strings.Contains(err.Error(), "set HOME or AGENT_HOME") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSetupOfANewProvider asks for the endpoint of a provider with a new name once.
func TestSetupOfANewProvider(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	chat.Models = []string{"m1"}
	out, err := answer(t, t.TempDir(), nil, "ours", chat.Serve(t), "chat", "", "")
	if err != nil || strings.Count(out, "Endpoint") != 1 || !strings.Contains(out, "m1 answered in") || !strings.Contains(out, "Try it:") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSetupAsksForTheName: another service has no name yet.
func TestSetupAsksForTheName(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"yes"}} })
	chat.Models = []string{"m1"}
	out, err := answer(t, t.TempDir(), nil, "", "opnai", "", "ours", chat.Serve(t), "chat", "", "")
	if err != nil || !strings.Contains(out, "did you mean openai?") || !strings.Contains(out, "ours is a new provider.") {
		t.Errorf("%v\n%s", err, out)
	}
}
