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

type devOptions struct {
	approveOptions
	build string
}

func newDevCmd(s *cmdutil.IO) *cobra.Command {
	o := &devOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build and test a plugin whenever its files change",
		Long: "Link the folder of a plugin of any format after showing its permissions (see 'agent plugins add --link').\n" +
			"Whenever one of its files changes, run the command of --build, or build it if it is a Go module, and test it (see\n" +
			"'agent plugins test'). If it then runs, reads or reaches more than you approved, you are asked again. What changes\n" +
			"during a build counts as its result. Open sessions use a new program from their next call on, other changes after\n" +
			"/clear or /resume. Ctrl-C ends it; the folder stays linked until 'agent plugins remove'.",
		Example: "  agent plugins dev\n  agent plugins dev ./weather\n  agent plugins dev --build 'npm run build'",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), o.folder(args)) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for approval")
	cmd.Flags().StringVar(&o.build, "build", "", "run `COMMAND` with the shell in the folder before each test; not sandboxed")
	return cmd
}

// devPoll is the time between looks at the files.
const devPoll = 300 * time.Millisecond

func (o *devOptions) run(ctx context.Context, dir string) error {
	tick := time.NewTicker(devPoll)
	defer tick.Stop()
	for first := true; ctx.Err() == nil; first = false {
		built, _ := plugins.Built(dir) // the test reports the error
		made := o.madeHere(built)
		seen := plugins.SourceStamp(dir, made)
		linked, err := o.link(ctx, dir)
		if o.build != "" {
			seen = plugins.SourceStamp(dir, made)
		}
		switch {
		case linked:
			o.test(ctx, dir)
		case first || ctx.Err() != nil:
			return err
		case err != nil:
			o.say(err.Error())
		}
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

// say prints a line with the time.
func (o *devOptions) say(text string) {
	fmt.Fprintf(o.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), display.Visible(text))
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

// link runs the command of --build and links the folder, unless it is linked with all
// that the plugin asks for. It reports whether the folder is linked.
func (o *devOptions) link(ctx context.Context, dir string) (bool, error) {
	h, err := o.open(ctx)
	if err != nil {
		return false, err
	}
	defer h.Close()
	if o.build != "" {
		o.say("building …")
		if err := h.Store().RunBuild(ctx, dir, o.build, &indented{o.Err}); err != nil {
			return false, err
		}
	}
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
	o.say("testing …")
	err := t.run(ctx)
	if ctx.Err() != nil {
		return
	}
	t.print(o.Out, false)
	if err == nil {
		err = t.failed()
	}
	if err != nil {
		o.say(err.Error())
		return
	}
	o.say("ready: " + display.Plural(len(t.results), "check") + " passed")
}
