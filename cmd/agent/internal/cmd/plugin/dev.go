package plugin

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

type devOptions struct{ addOptions }

func newDevCmd(s *cmdutil.IO) *cobra.Command {
	o := &devOptions{}
	o.IO, o.link = s, true
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build and test a plugin whenever its files change",
		Long: "Link the folder of a plugin after showing its permissions (see 'agent plugins add --link'). Whenever one of its\n" +
			"files changes, build it if it is a Go module, and test it (see 'agent plugins test'). Open sessions use the new\n" +
			"program from their next call on. Ctrl-C ends it; the folder stays linked until 'agent plugins remove'.",
		Example: "  agent plugins dev\n  agent plugins dev ./weather",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), o.folder(args)) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for approval")
	return cmd
}

// devPoll is the time between looks at the files.
const devPoll = 300 * time.Millisecond

func (o *devOptions) run(ctx context.Context, dir string) error {
	if linked, err := o.linkOnce(ctx, dir); err != nil || !linked {
		return err
	}
	tick := time.NewTicker(devPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		built, _ := plugins.Built(dir) // the test reports the error
		made := o.madeHere(built)
		seen := plugins.SourceStamp(dir, made)
		o.test(ctx, dir)
		for now := seen; ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
			before := now
			if now = plugins.SourceStamp(dir, made); now != seen && now == before { // all is written
				break
			}
		}
	}
	return nil
}

// madeHere returns what finds the files that this command writes: the built program, and
// its output if that is a file.
func (o *devOptions) madeHere(built string) func(string, fs.FileInfo) bool {
	var outputs []fs.FileInfo
	for _, w := range []io.Writer{o.Out, o.Err} {
		if checked, ok := w.(*cmdutil.CheckedWriter); ok {
			w = checked.Writer
		}
		if f, ok := w.(interface{ Stat() (fs.FileInfo, error) }); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				outputs = append(outputs, info)
			}
		}
	}
	return func(path string, info fs.FileInfo) bool {
		return path == built || slices.ContainsFunc(outputs, func(out fs.FileInfo) bool { return os.SameFile(out, info) })
	}
}

// linkOnce links the folder, unless it is linked with all that its manifest asks for.
// It reports whether the folder is linked.
func (o *devOptions) linkOnce(ctx context.Context, dir string) (bool, error) {
	h, err := o.open(ctx)
	if err != nil {
		return false, err
	}
	defer h.Close()
	if h.Store().Linked(dir) {
		return true, nil
	}
	if err := o.addLink(ctx, h, dir); err != nil {
		return false, err
	}
	return h.Store().Linked(dir), nil
}

// test prints how the plugin does now.
func (o *devOptions) test(ctx context.Context, dir string) {
	t := trial{options: &o.options, dir: dir}
	fmt.Fprintf(o.Out, "%s  testing …\n", time.Now().Format(time.TimeOnly))
	err := t.run(ctx)
	if ctx.Err() != nil {
		return
	}
	t.print(o.Out, false)
	if err == nil {
		err = t.failed()
	}
	if err != nil {
		fmt.Fprintf(o.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), display.Visible(err.Error()))
		return
	}
	fmt.Fprintf(o.Out, "%s  ready: %s passed\n", time.Now().Format(time.TimeOnly), display.Plural(len(t.results), "check"))
}
