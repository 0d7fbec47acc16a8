package config

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// NewCmd returns agent config.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("config", "Manage settings",
		newListCmd(s), newGetCmd(s), newSetCmd(s), newUnsetCmd(s), newValidateCmd(s), newPathCmd(s), newSchemaCmd(s))
}

// fileInfo is a settings file in JSON.
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

type pathOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newPathCmd(s *cmdutil.IO) *cobra.Command {
	o := &pathOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "path",
		Short: "List settings files, lowest precedence first",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *pathOptions) run() error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	infos := fileInfos(set)
	if o.json {
		return cmdutil.WriteJSON(o.Out, infos)
	}
	t := cmdutil.NewTable(o.Out)
	for _, f := range infos {
		t.Row(f.Path, f.Layer, strings.ReplaceAll(f.Status, "_", " "))
	}
	return t.Flush()
}

type schemaOptions struct{ *cmdutil.IO }

func newSchemaCmd(s *cmdutil.IO) *cobra.Command {
	o := &schemaOptions{s}
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of settings.json",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
}

func (o *schemaOptions) run() error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s\n", strings.TrimRight(string(schema), "\n"))
	return err
}
