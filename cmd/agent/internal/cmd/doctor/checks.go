package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func (d *doctor) checkSettings(context.Context) finding {
	if d.set == nil {
		return found(healthFail, "%v", d.broken).fix("correct it; agent config validate checks it again")
	}
	var read, rest []string
	for _, f := range d.set.Files {
		if f.Status == config.FileRead {
			read = append(read, f.Path)
		} else {
			rest = append(rest, f.Path+" "+string(f.Status))
		}
	}
	if len(read) == 0 {
		read = []string{"no file: the defaults hold"}
	}
	if w := d.set.Warnings; len(w) > 0 {
		return found(healthWarn, "%s", strings.Join(w, "; ")).fix("agent config validate names them again once they are corrected")
	}
	detail := strings.Join(read, ", ")
	if len(rest) > 0 {
		detail += " (" + strings.Join(rest, ", ") + ")"
	}
	return found(healthOK, "%s", detail)
}

// checkHome looks at the agent's own directory and at what must be its owner's
// alone.
func (d *doctor) checkHome(context.Context) finding {
	if d.home == "" {
		return found(healthFail, "there is no home directory").fix("set HOME, or AGENT_HOME to a directory for the agent's own files")
	}
	info, err := os.Stat(d.home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := existing(d.home)
		if err := writable(parent); err != nil {
			return found(healthFail, "%s does not exist and cannot be made: %v", d.home, err).fix("make it by hand, or set AGENT_HOME to a directory that you may write to")
		}
		return found(healthOK, "%s does not exist yet; it is made when it is needed", d.home)
	case err != nil:
		return found(healthFail, "%v", err).fix("make %s a directory that you can read and write, or set AGENT_HOME to one", d.home)
	case !info.IsDir():
		return found(healthFail, "%s is not a directory", d.home).fix("move it away, or set AGENT_HOME to a directory")
	}
	if err := writable(d.home); err != nil {
		return found(healthFail, "%s cannot be written to: %v", d.home, err).fix("chmod u+rwx %s", setup.ShellWord(d.home))
	}
	for _, p := range []struct {
		name string
		mode fs.FileMode
	}{{"", 0o700}, {"settings.json", 0o600}, {"sessions", 0o700}} {
		path := filepath.Join(d.home, p.name)
		if f, ok := checkMode(path, p.mode); !ok {
			return f
		}
	}
	return found(healthOK, "%s, for you alone", d.home)
}

// checkMode compares a file's permissions with those that it should have; ok is
// also true for a file that is not there.
func checkMode(path string, want fs.FileMode) (finding, bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" { // where there are access lists instead
		return finding{}, true
	}
	mode, h := info.Mode().Perm(), healthWarn
	switch {
	case mode&0o002 != 0:
		h = healthFail // what it holds may be commands of somebody else
	case mode&0o077 == 0:
		return finding{}, true
	}
	return found(h, "%s is open to other users (%#o)", path, mode).fix("chmod %o %s", want, setup.ShellWord(path)), false
}

// existing returns the nearest directory above a path that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

func (d *doctor) checkDisk(context.Context) finding {
	const little, nothing = 1 << 30, 50 << 20
	if d.home == "" {
		return found(healthSkip, "there is no home directory")
	}
	dir := existing(d.home)
	free, err := freeSpace(dir)
	if err != nil {
		return found(healthSkip, "free space of %s: %v", dir, err)
	}
	text := fmt.Sprintf("%.1f GiB free in %s", float64(free)/(1<<30), dir)
	fix := "make room, move the directory with AGENT_HOME, or lower session.maxContextMb"
	switch {
	case free < nothing:
		return found(healthFail, "%s", text).fix("%s", fix)
	case free < little:
		return found(healthWarn, "%s", text).fix("%s", fix)
	}
	return found(healthOK, "%s", text)
}

// checkSessions looks for records that a crash cut off, in as many sessions as
// there is time for, the last ones first.
func (d *doctor) checkSessions(ctx context.Context) finding {
	if d.home == "" {
		return found(healthSkip, "there is no home directory")
	}
	dir := agent.SessionsDir(d.home)
	list, err := store.List(dir)
	if list == nil && err != nil {
		return found(healthFail, "%v", err).fix("make %s a directory that you can read", dir)
	}
	var damaged []string
	looked := 0
	for _, s := range list {
		damage, err := store.Check(ctx, dir, s.ID)
		if ctx.Err() != nil {
			break
		}
		if looked++; damage != nil || unreadable(err) {
			damaged = append(damaged, s.ID)
		}
	}
	text := display.Plural(len(list), "session") + " in " + dir
	if looked < len(list) {
		text += fmt.Sprintf(", of which the last %d were looked at", looked)
	}
	switch {
	case len(damaged) > 0:
		return found(healthWarn, "%s; damaged: %s", text, names(damaged)).fix("agent sessions repair %s", damaged[0])
	case err != nil:
		return found(healthWarn, "%s; some cannot be read: %v", text, err).fix("agent sessions repair mends what can be mended")
	}
	return found(healthOK, "%s, none damaged", text)
}

// unreadable reports whether a session that could not be looked at may be
// damaged: it is not open elsewhere, gone, or of a newer version.
func unreadable(err error) bool {
	for _, fine := range []error{store.ErrLocked, store.ErrUnknownRecord, fs.ErrNotExist} {
		if errors.Is(err, fine) {
			return false
		}
	}
	return err != nil
}

func (d *doctor) checkKey(ctx context.Context) finding {
	k, info, skip := d.provider()
	if skip != nil {
		return *skip
	}
	if info.Key.Status == setup.KeyCommand {
		if _, err := k.Values(&d.set.Settings.Providers).Key.Reveal(ctx); err != nil {
			return found(healthFail, "%v", err).fix("correct the command in %s, or run agent providers setup", d.set.Setting(k, "apiKey"))
		}
	}
	switch {
	case info.Key.Status == setup.KeyMissing && (info.Key.Needed || info.Key.From != ""):
		return found(healthFail, "%s: %s", k.Name, info.Key).fix("run agent providers setup, or set %s", d.set.Setting(k, "apiKey"))
	case info.Key.Status == setup.KeyMissing:
		return found(healthOK, "%s needs none", k.Name)
	}
	return found(healthOK, "%s: from %s", k.Name, info.Key)
}

// provider returns the default provider, or a finding if the settings do not
// say which it is.
func (d *doctor) provider() (setup.ProviderKind, setup.ProviderInfo, *finding) {
	if d.set == nil {
		f := found(healthSkip, "the settings cannot be read")
		return setup.ProviderKind{}, setup.ProviderInfo{}, &f
	}
	k, err := d.set.Kind()
	if err != nil {
		f := found(healthFail, "%v", err).fix("set providers.default")
		return k, setup.ProviderInfo{}, &f
	}
	return k, d.set.Describe(k, d.Env), nil
}

// checkEndpoint asks the default provider for its models, which costs nothing.
func (d *doctor) checkEndpoint(ctx context.Context) finding {
	k, info, skip := d.provider()
	switch {
	case skip != nil:
		return *skip
	case d.offline:
		return found(healthSkip, "%s is not called (--offline)", info.Endpoint)
	}
	p, err := d.set.Provider(ctx)
	if err != nil {
		return found(healthSkip, "%s cannot be called without its configuration", info.Name)
	}
	start := time.Now()
	models, err := model.ListModels(ctx, p)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return found(healthFail, "%s did not answer within %s", info.Endpoint, checkTime).fix("check the network, or try agent providers test, which waits longer")
	case err != nil && setup.CodeOf(err) == model.CodeNotSupported:
		return found(healthSkip, "%s does not list its models; agent providers test makes a call", info.Endpoint)
	case err != nil:
		return found(healthFail, "%s: %v", setup.CodeOf(err), err).fix("%s", d.set.Remedy(err, d.Env))
	case !slices.Contains(models, info.Model):
		return found(healthWarn, "%s answers, but does not list the model of the settings, %s", info.Endpoint, info.Model).
			fix("agent models lists those there are; set %s", d.set.Setting(k, "model"))
	}
	return found(healthOK, "%s answered in %d ms and has %s", info.Endpoint, time.Since(start).Milliseconds(), info.Model)
}

// program is one that sessions use if it is there. agent itself needs none.
type program struct {
	name, use, get string
}

var programs = []program{
	{"git", "models look at a project's history and changes with it", "install git: apt install git, brew install git, winget install Git.Git"},
	{"rg", "models that search with a command use it; the grep tool does without", "install ripgrep: apt install ripgrep, brew install ripgrep, winget install BurntSushi.ripgrep.MSVC"},
	{"docker", "it is wanted by projects that build or test in containers", "see https://docs.docker.com/engine/install/"},
	{"node", "it is wanted by JavaScript projects", "see https://nodejs.org/en/download"},
}

func (d *doctor) checkProgram(ctx context.Context, p program) finding {
	path, err := exec.LookPath(p.name)
	if err != nil {
		return found(healthWarn, "not found (optional: %s)", p.use).fix("%s", p.get)
	}
	out, exit, err := core.Exec(ctx, d.local, core.Command{Argv: []string{path, "--version"}})
	switch {
	case ctx.Err() != nil:
		return found(healthWarn, "%s --version did not end in time", path).fix("run it by hand to see why")
	case err != nil:
		return found(healthWarn, "%s cannot be run: %v", path, err).fix("%s", p.get)
	case exit.Code != 0:
		return found(healthWarn, "%s --version fails: %s", path, firstLine(string(out))).fix("%s", p.get)
	}
	return found(healthOK, "%s (%s)", firstLine(string(out)), path)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return display.OneLine(line, 80)
}

func (d *doctor) checkShell(ctx context.Context) finding {
	name := d.local.Info().Shell
	out, exit, err := core.Exec(ctx, d.local, core.Command{Script: "echo works"})
	if name == "" || err != nil || exit.Code != 0 || firstLine(string(out)) != "works" {
		return found(healthFail, "commands cannot be run in the shell (%s): %v", name, errors.Join(err, errors.New(firstLine(string(out))))).
			fix("install a POSIX shell as /bin/sh")
	}
	return found(healthOK, "commands run in %s", name)
}

func (d *doctor) checkTerminal(context.Context) finding {
	if !d.OutTTY {
		return found(healthOK, "stdout is not a terminal")
	}
	kind := d.Env("TERM")
	if runtime.GOOS == "windows" {
		return found(healthOK, "a terminal")
	}
	if kind == "" || kind == "dumb" {
		return found(healthWarn, "TERM=%s: no colours, no line editing", kind).fix("use a terminal that sets TERM, such as xterm-256color")
	}
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = d.Env(name); locale != "" {
			break
		}
	}
	if l := strings.ToLower(locale); !strings.Contains(l, "utf-8") && !strings.Contains(l, "utf8") {
		return found(healthWarn, "TERM=%s; the locale %q is not UTF-8, so that some characters may be shown wrong", kind, locale).fix("export LANG=C.UTF-8")
	}
	colours := "with colours"
	if d.Env("NO_COLOR") != "" {
		colours = "no colours (NO_COLOR)"
	}
	return found(healthOK, "TERM=%s, %s, %s", kind, locale, colours)
}

// checkClock compares the clock with the time of the program's own source: a
// clock that is before it is wrong, and then certificates look invalid.
func (d *doctor) checkClock(context.Context) finding {
	now := d.now.UTC().Format(time.RFC3339)
	earliest := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	if d.built.After(earliest) {
		earliest = d.built
	}
	if d.now.Before(earliest.Add(-24 * time.Hour)) {
		return found(healthFail, "%s is before the program was made: secure connections fail with such a clock", now).fix("set the clock of this machine")
	}
	return found(healthOK, "%s", now)
}

// checkVariables names the AGENT_* variables, and those of them that nothing
// reads.
func (d *doctor) checkVariables(context.Context) finding {
	known := append(config.Variables(), "AGENT_PROC_ID") // set for commands that agent runs
	var seen, strange []string
	for _, entry := range d.environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, "AGENT_"):
		case slices.Contains(known, name):
			seen = append(seen, name)
		default:
			strange = append(strange, name)
		}
	}
	slices.Sort(seen)
	slices.Sort(strange)
	switch {
	case len(strange) > 0:
		fix := "unset it, if it was meant for agent"
		if near := jsonpos.Nearest(strange[0], known); near != "" {
			fix = "did you mean " + near + "?"
		}
		return found(healthWarn, "nothing reads %s", names(strange)).fix("%s", fix)
	case len(seen) == 0:
		return found(healthOK, "no AGENT_* variable is set")
	}
	return found(healthOK, "%s", names(seen))
}

func (d *doctor) checkSecrets(context.Context) finding {
	if all := d.local.Withheld(); len(all) > 0 {
		return found(healthOK, "commands do not get %s", names(all))
	}
	return found(healthOK, "the environment holds no variable that looks like a secret")
}
