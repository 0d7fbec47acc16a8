package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/internal/plugintest"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

type testOptions struct {
	options
	json bool
}

func newTestCmd(s *cmdutil.IO) *cobra.Command {
	o := &testOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Test the plugin in a folder",
		Long: "Check that all which the plugin in a folder holds can be used, whatever program it was written for. If it has a\n" +
			"program, build that if it is a Go module, start it, confined to its manifest, and check what an agent expects of\n" +
			"every plugin, in any language. Its samples.json has calls with their expected results (docs/plugins.md).\n" +
			"The plugin has an empty workspace and data directory, and the settings in samples.json. Its code runs without\n" +
			"further approval.",
		Example: "  agent plugins test\n  agent plugins test ./weather",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), o.folder(args))
		},
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// folder returns the absolute path of the folder that the arguments name.
func (o *options) folder(args []string) string {
	dir := strings.Join(args, "")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.Cwd, dir)
	}
	return dir
}

func (o *testOptions) run(ctx context.Context, dir string) error {
	t := trial{options: &o.options, dir: dir}
	if err := t.run(ctx); err != nil {
		return err
	}
	if o.json {
		if err := cmdutil.WriteJSON(o.Out, t.results); err != nil {
			return err
		}
	} else {
		t.print(o.Out, true)
	}
	return t.failed()
}

// trial is one test of a plugin.
type trial struct {
	*options
	dir     string
	results []checkResult
}

// checkResult is the outcome of a check.
type checkResult struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// run builds and starts the plugin and runs all checks. The error says why there are
// no results.
func (t *trial) run(ctx context.Context) (err error) {
	b, err := bundles.Read(t.dir, "", nil)
	if err == nil {
		t.pieces(b)
		if !b.Program {
			return nil
		}
	} // else reading the program's plugin.json says what is wrong, too
	samples, err := plugintest.ReadSamples(filepath.Join(t.dir, plugintest.SamplesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, err := sandbox.NewTempDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	workspace := filepath.Join(temp.Path, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return err
	}
	h, err := t.openEmpty(ctx, temp.Path, workspace)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Store().Build(ctx, t.dir); err != nil {
		return err
	}
	return h.Try(ctx, t.dir, &indented{t.Err}, func(client toolproto.PluginClient) error {
		d := &plugintest.Driver{Client: client, Workspace: workspace, Settings: samples.Settings}
		for _, c := range plugintest.Checks(d, samples.Samples) {
			r := checkResult{Check: c.Name, OK: true}
			if err := c.Run(ctx); err != nil {
				r.OK, r.Error = false, err.Error()
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.results = append(t.results, r)
		}
		return t.rules(ctx, d)
	})
}

// rules checks the permission rules of the hooks that the program serves.
func (t *trial) rules(ctx context.Context, d *plugintest.Driver) error {
	desc, err := d.Describe(ctx)
	if err != nil {
		return err
	}
	for _, h := range desc.Hooks {
		if h.Condition == "" {
			continue
		}
		r := checkResult{Check: "rule of hook " + h.Name, OK: true}
		if err := agent.CheckHookRule(h.Condition); err != nil {
			r.OK, r.Error = false, err.Error()
		}
		t.results = append(t.results, r)
	}
	return nil
}

// pieces checks that what the plugin's folder holds besides a program can be used. What
// this program has no counterpart for is no failure.
func (t *trial) pieces(b *bundles.Bundle) {
	for _, l := range pieces(b) {
		what, text, _ := strings.Cut(l, "\t")
		name, _, _ := strings.Cut(text, "  ")
		t.results = append(t.results, checkResult{Check: what + " " + name, OK: true})
	}
	for _, u := range slices.Concat(b.Unusable, setup.HookProblems(b)) {
		other := u.Kind == "file" || u.Kind == "manifest" || u.Kind == "rule"
		r := checkResult{Check: u.Kind + " " + u.Name, OK: other, Error: u.Reason}
		if other {
			r.Check, r.Error = "not used: "+u.String(), ""
		}
		t.results = append(t.results, r)
	}
}

// openEmpty opens a host without plugins in a home.
func (o *options) openEmpty(ctx context.Context, home, workspace string) (*host, error) {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return nil, err
	}
	opts := set.PluginOptions()
	opts.Home, opts.Workspace, opts.Project, opts.Secret = home, workspace, "", nil
	opts.Bundled, opts.Bundles, opts.BrokenBundles = nil, nil, nil
	a, err := set.OpenPlugins(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &host{Host: a.Plugins(), set: set, agent: a}, nil
}

// print prints the results, or only those of checks that failed.
func (t *trial) print(w io.Writer, all bool) {
	for _, r := range t.results {
		switch {
		case !r.OK:
			text := strings.ReplaceAll(strings.TrimSpace(display.Visible(r.Error)), "\n", "\n      ")
			fmt.Fprintf(w, "FAIL  %s\n      %s\n", display.VisibleLine(r.Check, 100), text)
		case all:
			fmt.Fprintf(w, "ok    %s\n", display.VisibleLine(r.Check, 100))
		}
	}
}

// failed returns an error if checks failed.
func (t *trial) failed() error {
	n := 0
	for _, r := range t.results {
		if !r.OK {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	name := filepath.Base(t.dir)
	if b, err := bundles.Read(t.dir, "", nil); err == nil {
		name = b.Name
	}
	return fmt.Errorf("the plugin %s failed %d of %s", name, n, display.Plural(len(t.results), "check"))
}

// indented writes lines of a plugin or its build.
type indented struct{ io.Writer }

func (w *indented) Write(line []byte) (int, error) {
	text := strings.ReplaceAll(strings.TrimRight(string(line), "\n"), "\n", "\n    | ")
	_, err := fmt.Fprintf(w.Writer, "    | %s\n", text)
	return len(line), err
}
