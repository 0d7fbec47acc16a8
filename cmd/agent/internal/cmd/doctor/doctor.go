package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc"
)

const (
	checkTime = 4 * time.Second // when waiting checks are cancelled
	timeLimit = 5 * time.Second // when the command ends, whatever the checks do
)

// health is the status of a check.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn" // something optional is missing or could be better
	healthFail health = "fail" // agent cannot work
	healthSkip health = "skip" // could not be checked
)

// finding is the result of one check.
type finding struct {
	Name   string `json:"name"`
	Status health `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// found returns a finding; examine adds the name.
func found(h health, format string, args ...any) finding {
	return finding{Status: h, Detail: display.OneLine(fmt.Sprintf(format, args...), 1000)}
}

// fix returns the finding with a suggestion.
func (f finding) fix(format string, args ...any) finding {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// check is one thing to examine. run returns when ctx ends.
type check struct {
	name string
	run  func(ctx context.Context) finding
}

// doctor has the checks. They write nothing, and call only the endpoint of the
// default provider.
type doctor struct {
	*cmdutil.IO
	set     *setup.Setup // nil if the settings are invalid
	invalid error        // why
	home    string       // the agent's directory, "" for none
	offline bool
	local   *env.Local
	// commands runs the checks' programs and knows which sandbox levels work.
	commands *proc.Supervisor
	environ  []string
	now      time.Time
	built    time.Time // time of the program's source, if known
}

type doctorOptions struct {
	*cmdutil.IO
	flags         setup.Flags
	json, offline bool
}

// NewCmd returns agent doctor.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &doctorOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest fixes",
		Long: fmt.Sprintf("Check settings, files, provider, programs, sandbox, terminal and environment, and suggest fixes. It changes\n"+
			"nothing and takes at most %.0f seconds. The exit code is 1 if a check fails; warnings do not count.", timeLimit.Seconds()),
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags|setup.ProviderFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	cmd.Flags().BoolVar(&o.offline, "offline", false, "do not call the provider")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context) error {
	d, err := o.newDoctor()
	if err != nil {
		return err
	}
	defer d.commands.Close()
	defer d.local.Close()
	return report(o.Out, examine(ctx, d.checks(), checkTime, timeLimit), o.json)
}

// newDoctor returns a doctor for the current settings, even if they are invalid.
// The error is a usage error or comes from the environment.
func (o *doctorOptions) newDoctor() (*doctor, error) {
	quiet := *o.IO
	quiet.Err = io.Discard // warnings are findings
	d := &doctor{IO: o.IO, offline: o.offline, environ: os.Environ(), now: time.Now(), built: sourceTime()}
	set, err := o.flags.Load(&quiet)
	dir := o.Cwd
	switch code := cmdutil.ExitCode(err); {
	case err == nil:
		d.set, d.home, dir = set, set.Home, set.Dir
	case code == cmdutil.ExitUsage:
		return nil, err
	default:
		d.invalid = err
		d.home = config.Home(config.LoadOptions{Env: o.Env, Home: cmdutil.UserHome(), Cwd: o.Cwd})
	}
	d.commands = proc.NewSupervisor(proc.Options{})
	var pass []string
	if d.set != nil {
		pass = d.set.Settings.Tools.PassEnv
	}
	d.local, err = env.NewLocal(env.LocalOptions{Dir: dir, Environ: d.environ, PassEnv: pass, Supervisor: d.commands})
	if err != nil {
		return nil, errors.Join(err, d.commands.Close())
	}
	return d, nil
}

// sourceTime returns the time of the commit that the program was built from, zero
// if unknown.
func sourceTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			t, _ := time.Parse(time.RFC3339, s.Value) // zero if it is invalid
			return t
		}
	}
	return time.Time{}
}

// checks returns the checks in display order.
func (d *doctor) checks() []check {
	list := []check{
		{"settings", d.checkSettings},
		{"home", d.checkHome},
		{"disk", d.checkDisk},
		{"sessions", d.checkSessions},
		{"skills", d.checkSkills},
		{"key", d.checkKey},
		{"endpoint", d.checkEndpoint},
		{"telemetry", d.checkTelemetry},
	}
	for _, p := range programs {
		list = append(list, check{p.name, func(ctx context.Context) finding { return d.checkProgram(ctx, p) }})
	}
	list = append(list,
		check{"lsp", d.checkLanguageServers},
		check{"shell", d.checkShell},
		check{"sandbox", d.checkSandbox},
	)
	list = append(list, d.sandboxLevels()...)
	return append(list,
		check{"terminal", d.checkTerminal},
		check{"clock", d.checkClock},
		check{"variables", d.checkVariables},
		check{"secrets", d.checkSecrets},
		check{"paths", d.checkPaths},
	)
}

// examine runs the checks concurrently. Their context ends after soft; a check
// that has not returned after hard has failed and is abandoned.
func examine(ctx context.Context, checks []check, soft, hard time.Duration) []finding {
	ctx, cancel := context.WithTimeout(ctx, soft)
	defer cancel()
	var mu sync.Mutex
	findings := make([]finding, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		findings[i] = found(healthFail, "the check did not end within %s", hard).fix("check for a disk or network that does not respond")
		findings[i].Name = c.name
		running.Go(func() {
			f := c.run(ctx)
			f.Name = c.name
			mu.Lock()
			defer mu.Unlock()
			findings[i] = f
		})
	}
	done := make(chan struct{})
	go func() { // ends with the slowest check, or with the process
		running.Wait()
		close(done)
	}()
	limit := time.NewTimer(hard)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
	mu.Lock()
	defer mu.Unlock()
	return append([]finding(nil), findings...)
}

// report prints the findings. The error is a *cmdutil.StatusError if one failed.
func report(out io.Writer, findings []finding, asJSON bool) error {
	count := map[health]int{}
	width := 0
	for _, f := range findings {
		count[f.Status]++
		width = max(width, len(f.Name))
	}
	var err error
	if asJSON {
		err = cmdutil.WriteJSON(out, map[string]any{"ok": count[healthFail] == 0, "checks": findings})
	} else {
		for _, f := range findings {
			fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.Status, width, f.Name, f.Detail)
			if f.Fix != "" {
				fmt.Fprintf(out, "      %-*s  → %s\n", width, "", f.Fix)
			}
		}
		_, err = fmt.Fprintf(out, "\n%d ok, %s, %d failed%s\n", count[healthOK], display.Plural(count[healthWarn], "warning"), count[healthFail], skipped(count[healthSkip]))
	}
	if count[healthFail] > 0 {
		return errors.Join(err, &cmdutil.StatusError{Code: cmdutil.ExitError})
	}
	return err
}

func skipped(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d skipped", n)
}

// names joins names, or the first few of many.
func names(all []string) string {
	const few = 12
	if len(all) <= few {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
}
