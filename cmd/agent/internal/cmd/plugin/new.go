package plugin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
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

// templates holds new plugins by language. The names of their files end in
// ".tmpl"; a leading dot is left out.
//
//go:embed scaffold
var templates embed.FS

// hiddenFiles are the files of templates whose names begin with a dot.
var hiddenFiles = []string{"gitignore", "npmrc"}

type createOptions struct {
	*cmdutil.IO
	lang string
	sdk  string // source of agent, "" for its released module
}

func newCreateCmd(s *cmdutil.IO) *cobra.Command {
	o := &createOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a plugin from a template",
		Example: "  agent plugins new weather --lang go\n" +
			"  agent plugins new weather --lang python",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	cmd.Flags().StringVar(&o.lang, "lang", "go", "`LANGUAGE` of the plugin: go, python, node or rust")
	cmd.Flags().StringVar(&o.sdk, "sdk", "", "for go: use package sdk from the source of agent in `DIR`")
	return cmd
}

// run writes the files of a new plugin into a folder with its name.
func (o *createOptions) run(name string) error {
	if err := plugins.CheckName(name); err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	if o.sdk != "" && !filepath.IsAbs(o.sdk) {
		o.sdk = filepath.Join(o.Cwd, o.sdk)
	}
	files, err := o.files(name)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Cwd, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return cmdutil.Usagef("%s already exists", name)
		}
		return err
	}
	for _, file := range cmdutil.SortedKeys(files) {
		at := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, files[file], 0o644); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "%s\n", filepath.Join(name, file))
	}
	fmt.Fprintf(o.Out, "\nFor the next steps, see %s.\n", filepath.Join(name, "README.md"))
	return nil
}

// files returns the content of a new plugin by file name.
func (o *createOptions) files(name string) (map[string][]byte, error) {
	if !slices.Contains([]string{"go", "python", "node", "rust"}, o.lang) {
		return nil, cmdutil.Usagef("--lang %q: expected go, python, node or rust", o.lang)
	}
	fill := o.replacer(name)
	files := map[string][]byte{}
	root := path.Join("scaffold", o.lang)
	err := fs.WalkDir(templates, root, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := templates.ReadFile(at)
		file := strings.TrimSuffix(strings.TrimPrefix(at, root+"/"), ".tmpl")
		if slices.Contains(hiddenFiles, file) {
			file = "." + file
		}
		files[file] = []byte(fill.Replace(string(text)))
		return err
	})
	switch o.lang {
	case "python":
		files["protocol.binpb"], err = plugins.ProtocolDescriptor()
	case "node":
		files["plugin.proto"] = []byte(plugins.ProtocolSource())
	}
	return files, err
}

// replacer fills in templates. It is not text/template because the methods that
// a template may call would all stay in the binary, which is 3 MB.
func (o *createOptions) replacer(name string) *strings.Replacer {
	release, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
	require := ""
	if o.sdk != "" {
		require = "\nrequire github.com/seed-009c0928/agent v0.0.0\n\nreplace github.com/seed-009c0928/agent => " + o.sdk + "\n"
	}
	return strings.NewReplacer("{{.Name}}", name, "{{.Tool}}", strings.ReplaceAll(name, "-", "_"), "{{.SDK}}", require, "{{.Go}}", release)
}
