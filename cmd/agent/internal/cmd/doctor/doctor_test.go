package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

func TestRun(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	var out bytes.Buffer
	env := map[string]string{"AGENT_HOME": filepath.Join(home, "new")}
	o := &doctorOptions{IO: &cmdutil.IO{Out: &out, Err: t.Output(), Env: func(name string) string { return env[name] }, Cwd: t.TempDir()}, offline: true}
	if err := o.run(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"ok    home ", "new does not exist yet; it is created when needed\n", "(--offline)\n", " 0 failed, 1 skipped\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	o.flags.Sets = []string{"agent.maxRounds=many"}
	if err := o.run(t.Context()); cmdutil.ExitCode(err) != cmdutil.ExitUsage {
		t.Errorf("invalid --set: %v", err)
	}
}

// TestHelp checks that help promises the time limit that is enforced.
func TestHelp(t *testing.T) {
	if long := NewCmd(&cmdutil.IO{}).Long; !strings.Contains(long, "at most 5 seconds") {
		t.Errorf("help %q", long)
	}
}

// TestExamine checks that a check which never returns is reported and does not
// delay the others, and that the context ends.
func TestExamine(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	findings := examine(t.Context(), []check{
		{"stuck", func(context.Context) finding { <-release; return found(healthOK, "late") }},
		{"patient", func(ctx context.Context) finding { <-ctx.Done(); return found(healthWarn, "%v", ctx.Err()) }},
		{"quick", func(context.Context) finding { return found(healthOK, "one\n two") }},
	}, time.Millisecond, 500*time.Millisecond)
	for i, want := range []finding{
		{"stuck", healthFail, "the check did not end within 500ms", "check for a disk or network that does not respond"},
		{"patient", healthWarn, "context deadline exceeded", ""},
		{"quick", healthOK, "one two", ""},
	} {
		if findings[i] != want {
			t.Errorf("finding %+v, want %+v", findings[i], want)
		}
	}
	var out bytes.Buffer
	err := report(&out, findings, true)
	var decoded struct {
		OK     bool
		Checks []finding
	}
	if cmdutil.ExitCode(err) != cmdutil.ExitError || json.Unmarshal(out.Bytes(), &decoded) != nil || decoded.OK || len(decoded.Checks) != 3 {
		t.Errorf("report %v\n%s", err, &out)
	}
}

func TestDoctorClock(t *testing.T) {
	built := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		now, built time.Time
		want       health
	}{
		"after the build":        {built.Add(time.Hour), built, healthOK},
		"another time zone":      {built.Add(-23 * time.Hour), built, healthOK},
		"before the build":       {built.Add(-48 * time.Hour), built, healthFail},
		"unknown build":          {built, time.Time{}, healthOK},
		"the epoch of a machine": {time.Unix(0, 0), time.Time{}, healthFail},
	} {
		t.Run(name, func(t *testing.T) {
			d := &doctor{now: test.now, built: test.built}
			if got := d.checkClock(t.Context()); got.Status != test.want || (got.Fix == "") != (test.want == healthOK) {
				t.Errorf("finding %+v", got)
			}
		})
	}
}

func TestDoctorTerminal(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		tty  bool
		want health
		text string
	}{
		"none":       {nil, false, healthOK, "not a terminal"},
		"good":       {map[string]string{"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}, true, healthOK, "with colours"},
		"no colours": {map[string]string{"TERM": "xterm", "LC_CTYPE": "C.utf8", "LANG": "C", "NO_COLOR": "1"}, true, healthOK, "no colours (NO_COLOR)"},
		"no UTF-8":   {map[string]string{"TERM": "xterm", "LC_ALL": "C", "LANG": "en_US.UTF-8"}, true, healthWarn, `"C" is not UTF-8`},
		"dumb":       {map[string]string{"TERM": "dumb"}, true, healthWarn, "TERM=dumb"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &doctor{IO: &cmdutil.IO{OutTTY: test.tty, Env: func(name string) string { return test.env[name] }}}
			got := d.checkTerminal(t.Context())
			if runtime.GOOS == "windows" && test.tty {
				test.want, test.text = healthOK, "a terminal"
			}
			if got.Status != test.want || !strings.Contains(got.Detail, test.text) {
				t.Errorf("finding %+v", got)
			}
		})
	}
}

func TestNames(t *testing.T) {
	if got := names(strings.Split("a b c", " ")); got != "a, b, c" {
		t.Errorf("got %q", got)
	}
	if got := names(strings.Split("a b c d e f g h i j k l m n", " ")); got != "a, b, c, d, e, f, g, h, i, j, k, l and 2 more" {
		t.Errorf("got %q", got)
	}
}
