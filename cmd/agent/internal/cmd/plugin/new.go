package plugin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/plugins"
)

// scaffolds are the beginnings of plugins, by language. The names of their
// files end in ".tmpl"; a leading dot is left out.
//
//go:embed scaffold
var scaffolds embed.FS

// hiddenFiles are the files of scaffolds whose names begin with a dot.
var hiddenFiles = []string{"gitignore", "npmrc"}

func newPluginsNew(s *cmdutil.IO) *cobra.Command {
	var lang, sdk string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a plugin of your own: a folder that builds, has a test and can be added",
		Example: "  agent plugins new weather --lang go\n" +
			"  agent plugins new weather --lang python",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := plugins.CheckName(args[0]); err != nil {
				return &cmdutil.UsageError{Err: err}
			}
			if sdk != "" && !filepath.IsAbs(sdk) {
				sdk = filepath.Join(s.Cwd, sdk)
			}
			return writeScaffold(s, args[0], lang, sdk)
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "go", "the `LANGUAGE`: go, python or node")
	cmd.Flags().StringVar(&sdk, "sdk", "", "for go: take package sdk from the source of agent in `DIR`")
	return cmd
}

// writeScaffold writes the files of a new plugin into a folder of its name.
func writeScaffold(s *cmdutil.IO, name, lang, sdk string) error {
	files, err := scaffold(name, lang, sdk)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.Cwd, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return cmdutil.Usagef("%s is there already", name)
		}
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, file), files[file], 0o644); err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%s\n", filepath.Join(name, file))
	}
	fmt.Fprintf(s.Out, "\nWhat to do next stands in %s.\n", filepath.Join(name, "README.md"))
	return nil
}

// scaffold makes the files of a new plugin.
func scaffold(name, lang, sdk string) (map[string][]byte, error) {
	entries, err := scaffolds.ReadDir(path.Join("scaffold", lang))
	if err != nil || !fs.ValidPath(lang) || lang == "." {
		return nil, cmdutil.Usagef("--lang %q: use go, python or node", lang)
	}
	release, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
	module := ""
	if sdk != "" {
		module = "\nrequire github.com/seed-009c0928/agent v0.0.0\n\nreplace github.com/seed-009c0928/agent => " + sdk + "\n"
	}
	// No text/template: what it can call, the linker has to keep of the whole
	// program, which is 3 MB.
	fill := strings.NewReplacer("{{.Name}}", name, "{{.Tool}}", strings.ReplaceAll(name, "-", "_"), "{{.SDK}}", module, "{{.Go}}", release)
	files := map[string][]byte{}
	for _, e := range entries {
		text, err := scaffolds.ReadFile(path.Join("scaffold", lang, e.Name()))
		if err != nil {
			return nil, err
		}
		file := strings.TrimSuffix(e.Name(), ".tmpl")
		if slices.Contains(hiddenFiles, file) {
			file = "." + file
		}
		files[file] = []byte(fill.Replace(string(text)))
	}
	switch lang {
	case "python":
		files["protocol.binpb"], err = plugins.ProtocolDescriptor()
	case "node":
		files["plugin.proto"] = []byte(plugins.ProtocolSource())
	}
	return files, err
}
