package plugin

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

// maxLog limits how much of a log is read, in bytes from its end.
const maxLog = 1 << 20

type logsOptions struct {
	options
	lines int
}

func newLogsCmd(s *cmdutil.IO) *cobra.Command {
	o := &logsOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the last lines of a plugin's output and log",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().IntVarP(&o.lines, "lines", "n", 200, "print the last `N` lines")
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	return cmd
}

func (o *logsOptions) run(ctx context.Context, name string) error {
	if o.lines < 0 {
		return cmdutil.Usagef("--lines %d: expected 0 or more", o.lines)
	}
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.check(name); err != nil {
		return err
	}
	var log strings.Builder
	if err := plugins.ReadLog(&log, plugins.LogDir(h.set.Home), name, maxLog); err != nil {
		return err
	}
	lines := strings.SplitAfter(log.String(), "\n") // the last is what follows the last line end
	_, err = io.WriteString(o.Out, strings.Join(lines[max(0, len(lines)-1-o.lines):], ""))
	return err
}
