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

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func (d *doctor) checkSettings(context.Context) finding {
	if d.set == nil {
		return found(healthFail, "%v", d.invalid).fix("correct it, then run agent config validate")
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
		read = []string{"no settings file, only defaults"}
	}
	if w := d.set.Warnings; len(w) > 0 {
		return found(healthWarn, "%s", strings.Join(w, "; ")).fix("correct them, then run agent config validate")
	}
	detail := strings.Join(read, ", ")
	if len(rest) > 0 {
		detail += " (" + strings.Join(rest, ", ") + ")"
	}
	return found(healthOK, "%s", detail)
}

// checkHome checks the agent's directory and the permissions of its files.
func (d *doctor) checkHome(context.Context) finding {
	if d.home == "" {
		return found(healthFail, "no home directory").fix("set HOME, or AGENT_HOME to a directory for the agent's files")
	}
	info, err := os.Stat(d.home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := existing(d.home)
		if err := writable(parent); err != nil {
			return found(healthFail, "%s does not exist and cannot be created: %v", d.home, err).fix("create it, or set AGENT_HOME to a writable directory")
		}
		return found(healthOK, "%s does not exist yet; it is created when needed", d.home)
	case err != nil:
		return found(healthFail, "%v", err).fix("make %s readable and writable, or set AGENT_HOME to another directory", d.home)
	case !info.IsDir():
		return found(healthFail, "%s is not a directory", d.home).fix("move it away, or set AGENT_HOME to a directory")
	}
	if err := writable(d.home); err != nil {
		return found(healthFail, "%s is not writable: %v", d.home, err).fix("chmod u+rwx %s", setup.ShellWord(d.home))
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
	return found(healthOK, "%s, private", d.home)
}

// checkMode checks that other users have no access to a file; ok is also true if
// the file does not exist.
func checkMode(path string, want fs.FileMode) (finding, bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" { // which has access lists instead
		return finding{}, true
	}
	mode, h := info.Mode().Perm(), healthWarn
	switch {
	case mode&0o002 != 0:
		h = healthFail // it may contain commands of another user
	case mode&0o077 == 0:
		return finding{}, true
	}
	return found(h, "%s is accessible to other users (%#o)", path, mode).fix("chmod %o %s", want, setup.ShellWord(path)), false
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
		return found(healthSkip, "no home directory")
	}
	dir := existing(d.home)
	free, err := freeSpace(dir)
	if err != nil {
		return found(healthSkip, "cannot read the free space of %s: %v", dir, err)
	}
	text := fmt.Sprintf("%.1f GiB free in %s", float64(free)/(1<<30), dir)
	fix := "free some space, move the directory (AGENT_HOME), or lower session.maxContextMb"
	switch {
	case free < nothing:
		return found(healthFail, "%s", text).fix("%s", fix)
	case free < little:
		return found(healthWarn, "%s", text).fix("%s", fix)
	}
	return found(healthOK, "%s", text)
}

// checkSessions looks for damaged session logs, the latest first, in as many as
// time allows.
func (d *doctor) checkSessions(ctx context.Context) finding {
	if d.home == "" {
		return found(healthSkip, "no home directory")
	}
	dir := agent.SessionsDir(d.home)
	list, err := store.List(dir)
	if list == nil && err != nil {
		return found(healthFail, "%v", err).fix("make %s readable", dir)
	}
	var damaged []string
	checked := 0
	for _, s := range list {
		damage, err := store.Check(ctx, dir, s.ID)
		if ctx.Err() != nil {
			break
		}
		if checked++; damage != nil || unreadable(err) {
			damaged = append(damaged, s.ID)
		}
	}
	text := display.Plural(len(list), "session") + " in " + dir
	if checked < len(list) {
		text += fmt.Sprintf(", only the latest %d checked", checked)
	}
	switch {
	case len(damaged) > 0:
		return found(healthWarn, "%s; damaged: %s", text, names(damaged)).fix("agent sessions repair %s", damaged[0])
	case err != nil:
		return found(healthWarn, "%s; some cannot be read: %v", text, err).fix("agent sessions repair ID")
	}
	return found(healthOK, "%s, none damaged", text)
}

// unreadable reports whether the error of a check may mean damage: the session is
// not in use, gone, or from a newer version.
func unreadable(err error) bool {
	for _, fine := range []error{store.ErrLocked, store.ErrUnknownRecord, fs.ErrNotExist} {
		if errors.Is(err, fine) {
			return false
		}
	}
	return err != nil
}

// checkSkills reports skills that cannot be read or are not trusted.
func (d *doctor) checkSkills(context.Context) finding {
	if d.set == nil {
		return found(healthSkip, "the settings are invalid")
	}
	lib := d.set.SkillOptions().Library
	if lib == nil {
		return found(healthOK, "disabled")
	}
	c := lib.Catalog()
	if w := d.set.UntrustedSkills(); w != "" {
		return found(healthWarn, "%s", w)
	}
	if n := len(c.Problems); n > 0 {
		return found(healthWarn, "%s left out, such as %v", display.Plural(n, "skill"), c.Problems[0]).fix("agent skills lint")
	}
	return found(healthOK, "%d, %d of them on", len(c.Skills), len(c.Active()))
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
		return found(healthOK, "%s: not required", k.Name)
	}
	return found(healthOK, "%s: from %s", k.Name, info.Key)
}

// provider returns the default provider, or a finding if the settings name none.
func (d *doctor) provider() (setup.ProviderKind, setup.ProviderInfo, *finding) {
	if d.set == nil {
		f := found(healthSkip, "settings not readable")
		return setup.ProviderKind{}, setup.ProviderInfo{}, &f
	}
	k, err := d.set.Kind()
	if err != nil {
		f := found(healthFail, "%v", err).fix("set providers.default")
		return k, setup.ProviderInfo{}, &f
	}
	return k, d.set.Describe(k, d.Env), nil
}

// checkEndpoint lists the default provider's models, which is free of charge.
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
		return found(healthSkip, "%s is not fully configured", info.Name)
	}
	start := time.Now()
	models, err := model.ListModels(ctx, p)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return found(healthFail, "%s did not answer within %s", info.Endpoint, checkTime).fix("check the network, or run agent providers test, which waits longer")
	case err != nil && setup.CodeOf(err) == model.CodeNotSupported:
		return found(healthSkip, "%s does not list its models; to test it: agent providers test", info.Endpoint)
	case err != nil:
		return found(healthFail, "%s: %v", setup.CodeOf(err), err).fix("%s", d.set.Remedy(err, d.Env))
	case !slices.Contains(models, info.Model):
		return found(healthWarn, "%s answered, but does not list the model %s", info.Endpoint, info.Model).
			fix("run agent models, then set %s", d.set.Setting(k, "model"))
	}
	return found(healthOK, "%s answered in %d ms and has %s", info.Endpoint, time.Since(start).Milliseconds(), info.Model)
}

// checkTelemetry connects to the collector.
func (d *doctor) checkTelemetry(ctx context.Context) finding {
	switch {
	case d.set == nil:
		return found(healthSkip, "the settings are invalid")
	case !d.set.TelemetryOn():
		return found(healthOK, "off")
	}
	target, err := d.set.TelemetryTarget(ctx)
	switch {
	case err != nil:
		return found(healthFail, "%v", err).fix("correct telemetry.*; see docs/telemetry.md")
	case d.offline:
		return found(healthSkip, "%s is not called (--offline)", target.Endpoint)
	case !setup.TelemetryReachable(ctx, target.Endpoint):
		return found(healthWarn, "nothing answers at %s", target.Endpoint).fix("start the collector, or set telemetry.endpoint or telemetry.enabled")
	}
	return found(healthOK, "on, to %s (%s)", target.Endpoint, target.Protocol)
}

// program is an optional program. agent itself needs none.
type program struct {
	name, use, get string
}

var programs = []program{
	{"git", "models use it for a project's history and changes", "install git: apt install git, brew install git, winget install Git.Git"},
	{"rg", "models may search with it; the grep tool does not need it", "install ripgrep: apt install ripgrep, brew install ripgrep, winget install BurntSushi.ripgrep.MSVC"},
	{"docker", "for projects that build or test in containers", "see https://docs.docker.com/engine/install/"},
	{"node", "for JavaScript projects", "see https://nodejs.org/en/download"},
}

func (d *doctor) checkProgram(ctx context.Context, p program) finding {
	path, err := exec.LookPath(p.name)
	if err != nil {
		return found(healthWarn, "not found (optional: %s)", p.use).fix("%s", p.get)
	}
	out, exit, err := core.Exec(ctx, d.local, core.Command{Argv: []string{path, "--version"}})
	switch {
	case ctx.Err() != nil:
		return found(healthWarn, "%s --version timed out", path).fix("run it to see why")
	case err != nil:
		return found(healthWarn, "cannot run %s: %v", path, err).fix("%s", p.get)
	case exit.Code != 0:
		return found(healthWarn, "%s --version failed: %s", path, firstLine(string(out))).fix("%s", p.get)
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
		return found(healthFail, "cannot run commands in the shell (%s): %v", name, errors.Join(err, errors.New(firstLine(string(out))))).
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
		return found(healthWarn, "TERM=%s; the locale %q is not UTF-8: some characters may look wrong", kind, locale).fix("export LANG=C.UTF-8")
	}
	colours := "with colours"
	if d.Env("NO_COLOR") != "" {
		colours = "no colours (NO_COLOR)"
	}
	return found(healthOK, "TERM=%s, %s, %s", kind, locale, colours)
}

// checkClock compares the clock with the time of the program's source: an earlier
// clock is wrong, and makes certificates look invalid.
func (d *doctor) checkClock(context.Context) finding {
	now := d.now.UTC().Format(time.RFC3339)
	earliest := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	if d.built.After(earliest) {
		earliest = d.built
	}
	if d.now.Before(earliest.Add(-24 * time.Hour)) {
		return found(healthFail, "%s is before this program was built: TLS connections fail", now).fix("set the system clock")
	}
	return found(healthOK, "%s", now)
}

// checkVariables lists the AGENT_* variables, and those that are unknown.
func (d *doctor) checkVariables(context.Context) finding {
	known := append(config.Variables(), "AGENT_PROC_ID") // set for commands that agent runs
	var seen, unknown []string
	for _, entry := range d.environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, "AGENT_"):
		case slices.Contains(known, name):
			seen = append(seen, name)
		default:
			unknown = append(unknown, name)
		}
	}
	slices.Sort(seen)
	slices.Sort(unknown)
	switch {
	case len(unknown) > 0:
		fix := "unset it, unless another program uses it"
		if near := jsonpos.Nearest(unknown[0], known); near != "" {
			fix = "did you mean " + near + "?"
		}
		return found(healthWarn, "unknown: %s", names(unknown)).fix("%s", fix)
	case len(seen) == 0:
		return found(healthOK, "no AGENT_* variables are set")
	}
	return found(healthOK, "%s", names(seen))
}

func (d *doctor) checkSecrets(context.Context) finding {
	if all := d.local.Withheld(); len(all) > 0 {
		return found(healthOK, "withheld from commands: %s", names(all))
	}
	return found(healthOK, "no variable looks like a secret")
}

// checkPaths counts what is here of the list of paths with secrets.
func (d *doctor) checkPaths(context.Context) finding {
	home := cmdutil.UserHome()
	var patterns []string
	for _, pattern := range sensitive.SecretPaths(filepath.ToSlash(home), filepath.ToSlash(d.home)) {
		patterns = append(patterns, filepath.FromSlash(pattern))
	}
	here := env.Existing(patterns)
	here = append(here, env.Secrets(d.local.Info().Roots, sensitive.IsSecret, sensitive.Fixture)...)
	slices.Sort(here)
	here = slices.Compact(here)
	if len(here) == 0 {
		return found(healthOK, "none of the places where secrets are kept exists here")
	}
	return found(healthOK, "%d places with secrets, which are asked for and hidden in sandboxes: %s", len(here), names(here))
}
