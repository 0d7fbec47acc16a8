package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// checkSessions reports what would keep every session from being opened.
func (o *options) checkSessions(ctx context.Context) error {
	set, err := o.Load(o.IO)
	if err != nil {
		return err
	}
	if _, err := set.Provider(ctx); err != nil {
		return err
	}
	o.price = set.Prices()
	if o.work.quotas, err = o.work.quotas.withSettings(set.Settings.Service.Quotas); err != nil {
		return &config.Error{Err: err}
	}
	if o.Mode == "" && set.Source("permissions.mode").Layer == config.LayerDefault { // else bypass by an alias, too
		o.Mode = string(permissions.ModeDefault)
		if most := permissions.Mode(o.work.most); remote.Within(permissions.ModeWorkspace, most) && !o.work.noSandbox {
			o.Mode = string(permissions.ModeWorkspace)
		} else if !remote.Within(permissions.ModeDefault, most) {
			o.Mode = o.work.most
		}
	} else {
		o.Mode = set.Mode()
	}
	if !remote.Within(permissions.Mode(o.Mode), permissions.Mode(o.work.most)) {
		return cmdutil.Usagef("the permission mode of sessions is %s, which allows more than %s: raise --max-permission-mode, or lower --permission-mode", o.Mode, o.work.most)
	}
	if o.work.noSandbox {
		return nil
	}
	s := proc.NewSupervisor(proc.Options{})
	defer s.Close()
	if _, err := s.Sandbox().Choose(ctx, sandbox.ModeRequire); err != nil {
		return fmt.Errorf("sessions of a service run in the sandbox: %w; agent doctor says why, and --no-sandbox runs them without it", err)
	}
	return nil
}

// checkSpec says what is wrong with a new session.
func (o *options) checkSpec(s service.Session) error {
	spec, err := remote.ParseSpec(s.Spec)
	if err != nil {
		return err
	}
	if mode := permissions.Mode(cmp.Or(spec.Mode, o.Mode)); !remote.Within(mode, permissions.Mode(o.work.most)) {
		return fmt.Errorf("spec: permissionMode is %s, and this service allows %s at most", mode, o.work.most)
	}
	return nil
}

// directory returns where a session works. One without a workspace has an empty directory.
func (o *options) directory(s service.Session) (string, error) {
	if s.Dir != "" {
		return s.Dir, nil
	}
	dir := filepath.Join(o.work.dirs, "none", s.Tenant, s.ID)
	return dir, os.MkdirAll(dir, 0o700)
}

// openSession is a [service.Opener].
func (o *options) openSession(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
	if err := o.checkSpec(s); err != nil {
		return host.Opened{}, err
	}
	spec, err := remote.ParseSpec(s.Spec)
	if err != nil {
		return host.Opened{}, err
	}
	streams := *o.IO
	streams.In, streams.Out, streams.Err, streams.Terminal = strings.NewReader(""), io.Discard, io.Discard, nil // what it warns of was shown at the start
	flags := *o.Flags
	opts := run.NewOptions(&streams)
	opts.Flags = &flags
	spec.Mode = cmp.Or(spec.Mode, o.Mode)
	spec.Apply(&flags)
	if flags.Dir, err = o.directory(s); err != nil {
		return host.Opened{}, err
	}
	noModes := func(context.Context, host.Command) error {
		return errors.New("the permission mode of a session of a service stays as it is")
	}
	d, err := opts.Drive(ctx, base.Asker, noModes, func(a *agent.Options, so *agent.SessionOptions) {
		a.Home, a.Environ = "", environ(os.Environ())
		a.Permissions.Confine = true
		confine(a.Sandbox, o.work.noSandbox)
		so.ID, so.Journal, so.Store, so.OpenSubagent, so.OnSubagent, so.Hooks = base.ID, base.Journal, base.Store, base.OpenSubagent, base.OnSubagent, base.Hooks
		so.Resume, so.Ephemeral = "", false
	})
	if err != nil {
		return host.Opened{}, err
	}
	return d.Opened, nil
}

// confine requires the sandbox for all that a session starts, and hides the home
// directory.
func confine(s *agent.SandboxOptions, optional bool) {
	s.Home = agent.HomeMasked
	if optional {
		return
	}
	for _, mode := range []*sandbox.Mode{&s.Shell, &s.Skills, &s.Plugins, &s.MCP} {
		if *mode == sandbox.ModeAuto || *mode == sandbox.ModeOff || *mode == "" {
			*mode = sandbox.ModeRequire
		}
	}
}

// passed are the variables that commands of a session get: what every program needs.
var passed = [...]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"}

// passedOnWindows are more of them.
var passedOnWindows = [...]string{
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "WINDIR", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
}

// environ returns what commands of a session get of an environment. It is never nil.
func environ(all []string) []string {
	kept := []string{}
	for _, line := range all {
		name, _, _ := strings.Cut(line, "=")
		upper := strings.ToUpper(name)
		if slices.Contains(passed[:], name) || strings.HasPrefix(name, "LC_") || runtime.GOOS == "windows" && (upper == "PATH" || slices.Contains(passedOnWindows[:], upper)) {
			kept = append(kept, line)
		}
	}
	return kept
}
