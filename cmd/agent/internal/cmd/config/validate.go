package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type validateOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newValidateCmd(s *cmdutil.IO) *cobra.Command {
	o := &validateOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check settings files",
		Long:  "Check the settings files of this directory and, in addition, FILE.",
		Args:  cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.run("")
			}
			return o.run(args[0])
		},
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// run checks the settings, with those of a file if it is not "".
func (o *validateOptions) run(file string) error {
	if err := o.add(file); err != nil {
		return err
	}
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, map[string]any{"valid": true, "files": fileInfos(set)})
	}
	for _, f := range set.Files {
		if f.Status == config.FileRead {
			fmt.Fprintf(o.Out, "%s: valid\n", f.Path)
		}
	}
	_, err = fmt.Fprintln(o.Out, "The settings are valid.")
	return err
}

// add makes a file the additional settings file.
func (o *validateOptions) add(file string) error {
	switch {
	case file == "":
		return nil
	case o.flags.SettingsFile != "":
		return cmdutil.Usagef("FILE and --settings cannot be combined")
	case !filepath.IsAbs(file):
		file = filepath.Join(o.Cwd, file)
	}
	if _, err := os.Stat(file); err != nil {
		return &config.Error{Err: err}
	}
	o.flags.SettingsFile = file
	return nil
}
