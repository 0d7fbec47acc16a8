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

// The doctor's time: for what a check waits for, and for all checks together.
const (
	checkTime  = 4 * time.Second
	doctorTime = 5 * time.Second
)

// health is how a check came out.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn" // something does not work, or not as well as it could
	healthFail health = "fail" // agent cannot do its work
	healthSkip health = "skip" // could not be looked at
)

// finding is the outcome of one check.
type finding struct {
	Name   string `json:"name"`
	Status health `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// found makes a finding; its check gives it the name.
func found(h health, format string, args ...any) finding {
	return finding{Status: h, Detail: display.OneLine(fmt.Sprintf(format, args...), 1000)}
}

// fix returns the finding with what to do about it.
func (f finding) fix(format string, args ...any) finding {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// check is one thing that the doctor looks at. run returns when ctx ends.
type check struct {
	name string
	run  func(ctx context.Context) finding
}

// doctor looks at everything that agent needs. It writes nothing, and calls
// nobody but the endpoint of the default provider.
type doctor struct {
	*cmdutil.IO
	set     *setup.Setup // nil if the settings are broken
	broken  error        // why
	home    string       // the agent's own directory; empty = none
	offline bool
	local   *env.Local
	// commands starts what the checks run; it tells which sandboxes work.
	commands *proc.Supervisor
	environ  []string
	now      time.Time
	built    time.Time // the time of the program's source, if it is known
}

func NewCmd(s *cmdutil.IO) *cobra.Command {
	sh, asJSON, offline := &setup.Flags{}, false, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything is in place, with a fix for what is not",
		Long: "doctor looks at the settings, the agent's own files, the default provider, the programs that sessions use, the\n" +
			"terminal and the environment. It changes nothing and takes two seconds at most. The exit code is 1 if a\n" +
			"check failed; warnings do not count.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := newDoctorOf(s, sh)
			if err != nil {
				return err
			}
			defer d.commands.Close()
			defer d.local.Close()
			d.offline = offline
			findings := examine(cmd.Context(), d.checks(), checkTime, doctorTime)
			return report(s.Out, findings, asJSON)
		},
	}
	sh.Register(cmd.Flags(), setup.DirFlag|setup.WorkspaceFlags|setup.SettingsFlags|setup.ProviderFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&offline, "offline", false, "do not call the provider's endpoint")
	return cmd
}

// newDoctorOf returns a doctor for the settings in force, also if they are
// broken. The error is a mistake on the command line.
func newDoctorOf(s *cmdutil.IO, sh *setup.Flags) (*doctor, error) {
	quiet := *s
	quiet.Err = io.Discard // warnings are findings
	d := &doctor{IO: s, environ: os.Environ(), now: time.Now(), built: sourceTime()}
	set, err := sh.Load(&quiet)
	dir := s.Cwd
	switch code := cmdutil.ExitCode(err); {
	case err == nil:
		d.set, d.home, dir = set, set.Home, set.Dir
	case code == cmdutil.ExitUsage:
		return nil, err
	default:
		d.broken = err
		d.home = config.Home(config.LoadOptions{Env: s.Env, Home: cmdutil.UserHome(), Cwd: s.Cwd})
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

// sourceTime returns the time of the commit that the program was built from,
// zero if it is not known.
func sourceTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			t, _ := time.Parse(time.RFC3339, s.Value) // the zero time if it is none
			return t
		}
	}
	return time.Time{}
}

// checks lists the checks in the order in which they are shown.
func (d *doctor) checks() []check {
	list := []check{
		{"settings", d.checkSettings},
		{"home", d.checkHome},
		{"disk", d.checkDisk},
		{"sessions", d.checkSessions},
		{"key", d.checkKey},
		{"endpoint", d.checkEndpoint},
	}
	for _, p := range programs {
		list = append(list, check{p.name, func(ctx context.Context) finding { return d.checkProgram(ctx, p) }})
	}
	list = append(list,
		check{"shell", d.checkShell},
		check{"sandbox", d.checkSandbox},
	)
	list = append(list, d.sandboxLevels()...)
	return append(list,
		check{"terminal", d.checkTerminal},
		check{"clock", d.checkClock},
		check{"variables", d.checkVariables},
		check{"secrets", d.checkSecrets},
	)
}

// examine runs the checks side by side. Their context ends after soft; one that
// has not returned after hard has failed, and is left behind.
func examine(ctx context.Context, checks []check, soft, hard time.Duration) []finding {
	ctx, cancel := context.WithTimeout(ctx, soft)
	defer cancel()
	var mu sync.Mutex
	findings := make([]finding, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		findings[i] = found(healthFail, "the check did not end within %s", hard).fix("look for a disk or a network that does not answer")
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

// report prints the findings. The error is an exit code.
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
		_, err = fmt.Fprintf(out, "\n%d ok, %s, %d failed%s\n", count[healthOK], cmdutil.Plural(count[healthWarn], "warning"), count[healthFail], skipped(count[healthSkip]))
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

// names joins names, the first few of many.
func names(all []string) string {
	const few = 12
	if len(all) <= few {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
}
