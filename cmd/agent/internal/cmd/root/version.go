package root

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/version"
)

type versionOptions struct {
	*cmdutil.IO
	json bool
}

func newVersionCmd(s *cmdutil.IO) *cobra.Command {
	o := &versionOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *versionOptions) run() error {
	if o.json {
		return cmdutil.WriteJSON(o.Out, map[string]string{"version": cmdutil.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	_, err := fmt.Fprintln(o.Out, version.Line()) // after an error of package prelude
	return err
}
