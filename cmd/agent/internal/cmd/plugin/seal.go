package plugin

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/plugins"
)

type sealOptions struct{ *cmdutil.IO }

func newSealCmd(s *cmdutil.IO) *cobra.Command {
	o := &sealOptions{s}
	return &cobra.Command{
		Use:   "seal DIR",
		Short: "Write a plugin's file checksums to its plugin.json",
		Long: "Seal a project's plugin, in .agent/plugins/NAME: whoever trusts the project's plugin.json then trusts these files\n" +
			"and no others. Seal it again after each change; every user is then asked to trust it again.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
}

func (o *sealOptions) run(ctx context.Context, dir string) error {
	path := dir
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Cwd, path)
	}
	n, err := plugins.Seal(ctx, path)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Wrote the checksums of %s to %s.\n", display.Plural(n, "file"), filepath.Join(dir, plugins.SpecFile))
	return nil
}
