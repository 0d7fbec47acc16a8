package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("config", "Show and change the settings, check them, find their files",
		newConfigList(s), newConfigGet(s), newConfigSet(s), newConfigUnset(s), newConfigValidate(s), newConfigPath(s), newConfigSchema(s))
}

func newConfigValidate(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check the settings in force, or one file",
		Args:  cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if sh.SettingsFile != "" {
					return cmdutil.Usagef("a FILE and --settings exclude each other")
				}
				sh.SettingsFile = args[0]
				if !filepath.IsAbs(args[0]) {
					sh.SettingsFile = filepath.Join(s.Cwd, args[0])
				}
				if _, err := os.Stat(sh.SettingsFile); err != nil {
					return &config.Error{Err: err}
				}
			}
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, map[string]any{"valid": true, "files": fileInfos(set)})
			}
			for _, f := range set.Files {
				if f.Status == config.FileRead {
					fmt.Fprintf(s.Out, "%s: valid\n", f.Path)
				}
			}
			fmt.Fprintln(s.Out, "The settings are valid.")
			return nil
		},
	}
	sh.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// fileInfo is a settings file as lists show it.
type fileInfo struct {
	Path   string `json:"path"`
	Layer  string `json:"layer"`
	Status string `json:"status"`
}

func fileInfos(set *setup.Setup) []fileInfo {
	infos := []fileInfo{}
	for _, f := range set.Files {
		infos = append(infos, fileInfo{f.Path, f.Layer.String(), string(f.Status)})
	}
	return infos
}

func newConfigPath(s *cmdutil.IO) *cobra.Command {
	sh, asJSON := &setup.Flags{}, false
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print where settings are looked for, the lowest layer first",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			set, err := sh.Load(s)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, fileInfos(set))
			}
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			for _, f := range fileInfos(set) {
				fmt.Fprintf(w, "%s\t%s\t%s\n", f.Path, f.Layer, strings.ReplaceAll(f.Status, "_", " "))
			}
			return w.Flush()
		},
	}
	sh.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newConfigSchema(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of settings.json",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "%s\n", strings.TrimRight(string(schema), "\n"))
			return err
		},
	}
}
