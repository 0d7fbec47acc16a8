package plugin

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/sdk"
)

func newIO(t *testing.T) (*cmdutil.IO, *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AGENT_HOME", "")
	var out bytes.Buffer
	return &cmdutil.IO{
		In: strings.NewReader(""), Out: &out, Err: t.Output(), Env: os.Getenv, Cwd: t.TempDir(),
		Bundled: cmdutil.Bundled{"hello": func() sdk.Plugin { return sdk.Plugin{Name: "hello", Version: "1.0.0"} }},
	}, &out
}

// check reports a run that did not end and print as wanted.
func check(t *testing.T, what string, err error, code int, out *bytes.Buffer, want string) {
	t.Helper()
	if cmdutil.ExitCode(err) != code || !strings.Contains(out.String(), want) {
		t.Errorf("%s: %v, printed %s", what, err, out)
	}
	out.Reset()
}

func TestNewPluginIsLinked(t *testing.T) {
	s, out := newIO(t)
	bin := t.TempDir() // a linked plugin's program must exist; nothing runs it
	for _, name := range []string{"node", "node.exe"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	create := createOptions{IO: s, lang: "node"}
	check(t, "new", create.run("weather"), cmdutil.ExitDone, out, "For the next steps, see "+filepath.Join("weather", "README.md"))
	for _, name := range []string{".npmrc", ".gitignore", "plugin.proto", "plugin.json"} {
		if _, err := os.Stat(filepath.Join(s.Cwd, "weather", name)); err != nil {
			t.Error(err)
		}
	}
	check(t, "new twice", create.run("weather"), cmdutil.ExitUsage, out, "")
	check(t, "new with a bad name", create.run("Weather"), cmdutil.ExitUsage, out, "")

	o := options{IO: s}
	link := addOptions{link: true}
	link.IO = s
	check(t, "link without approval", link.run(t.Context(), "weather"), cmdutil.ExitUsage, out, "  - nothing but compute")
	link.yes = true
	check(t, "link", link.run(t.Context(), "weather"), cmdutil.ExitDone, out, "Linked weather.\n")
	check(t, "verify", (&verifyOptions{o}).run(t.Context(), nil), cmdutil.ExitDone, out, "weather: linked, not verified\n")
	check(t, "list", (&listOptions{options: o}).run(t.Context()), cmdutil.ExitDone, out, "weather  0.1.0    link     on ")
	remove := removeOptions{options: o}
	check(t, "remove", remove.run(t.Context(), []string{"weather"}), cmdutil.ExitDone, out, "Removed weather.\n")
}

func TestNotFound(t *testing.T) {
	s, out := newIO(t)
	o, one := options{IO: s}, []string{"nobody"}
	for what, run := range map[string]func(context.Context) error{
		"disable": func(ctx context.Context) error { return (&enableOptions{options: o}).run(ctx, one) },
		"verify":  func(ctx context.Context) error { return (&verifyOptions{o}).run(ctx, one) },
		"logs":    func(ctx context.Context) error { return (&logsOptions{options: o}).run(ctx, one[0]) },
		"serve":   func(context.Context) error { return serve(s.Bundled, one[0]) },
	} {
		if err := run(t.Context()); cmdutil.ExitCode(err) != cmdutil.ExitError || !strings.Contains(err.Error(), `plugin "nobody"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	err := (&logsOptions{options: o, lines: -1}).run(t.Context(), "hello")
	check(t, "logs", err, cmdutil.ExitUsage, out, "")
}

// TestEnable checks that enable and disable change the user's settings by the
// named plugins only, whatever other settings disable.
func TestEnable(t *testing.T) {
	s, out := newIO(t)
	disabled := func(on bool, sets ...string) ([]string, error) {
		o := enableOptions{options{IO: s}, on}
		o.flags.Sets = sets
		runErr := o.run(t.Context(), []string{"hello"})
		loaded, err := config.Load(config.LoadOptions{Env: s.Env, Home: cmdutil.UserHome(), Cwd: s.Cwd})
		if err != nil {
			t.Fatal(err)
		}
		return loaded.Settings.Plugins.Disabled, runErr
	}
	list, err := disabled(false, `plugins.disabled=["other"]`)
	check(t, "disable", err, cmdutil.ExitDone, out, "Disabled hello.\n")
	if !slices.Equal(list, []string{"hello"}) {
		t.Errorf("disabled: %q", list)
	}
	list, err = disabled(true)
	check(t, "enable", err, cmdutil.ExitDone, out, "Enabled hello.\n")
	if len(list) > 0 {
		t.Errorf("enabled: %q", list)
	}
	_, err = disabled(true, `plugins.disabled=["hello"]`)
	check(t, "enable against other settings", err, cmdutil.ExitError, out, "")
}
