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
		Long: "Check the settings files of this directory and, in addition, FILE. The project's file is checked for what a\n" +
			"project may set, also if the directory is not trusted; the exit code is then 1 if it is invalid.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
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
	problems := []string{}
	for _, f := range set.Files {
		if f.Status == config.FileUntrusted { // else it was checked when it was read
			for _, p := range config.ProjectProblems(set.Home, f.Path) {
				problems = append(problems, p.Error())
			}
		}
	}
	if o.json {
		err = cmdutil.WriteJSON(o.Out, map[string]any{"valid": len(problems) == 0, "problems": problems, "files": fileInfos(set)})
	} else {
		err = o.print(set.Files, problems)
	}
	if err == nil && len(problems) > 0 {
		err = &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	return err
}

func (o *validateOptions) print(files []config.File, problems []string) error {
	for _, f := range files {
		switch {
		case f.Status == config.FileRead:
			fmt.Fprintf(o.Out, "%s: valid\n", f.Path)
		case f.Status == config.FileUntrusted && len(problems) == 0:
			fmt.Fprintf(o.Out, "%s: valid, not trusted\n", f.Path)
		}
	}
	for _, p := range problems {
		fmt.Fprintf(o.Err, "agent: %s\n", p)
	}
	if len(problems) > 0 {
		return nil
	}
	_, err := fmt.Fprintln(o.Out, "The settings are valid.")
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
	info, err := os.Stat(file)
	if err != nil {
		return &config.Error{Err: err}
	}
	project, err := os.Stat(config.ProjectFile("", o.WorkDir(o.flags.Dir)).Path)
	if err == nil && os.SameFile(info, project) {
		return nil // it is checked as such
	}
	o.flags.SettingsFile = file
	return nil
}
