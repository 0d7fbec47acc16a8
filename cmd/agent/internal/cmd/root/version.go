package root

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

func newVersion(s *cmdutil.IO) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return cmdutil.WriteJSON(s.Out, map[string]string{"version": cmdutil.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintln(s.Out, versionLine())
			return err
		},
	}
	cmdutil.JSONFlag(cmd, &asJSON)
	return cmd
}

func versionLine() string {
	return fmt.Sprintf("agent %s %s/%s %s", cmdutil.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
