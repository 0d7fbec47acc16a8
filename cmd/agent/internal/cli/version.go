package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(s.out, map[string]string{"version": buildVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(s.out, "agent %s %s/%s %s\n", buildVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
