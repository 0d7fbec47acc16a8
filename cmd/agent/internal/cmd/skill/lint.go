package skill

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/skills"
)

type lintOptions struct{ options }

func newLintCmd(s *cmdutil.IO) *cobra.Command {
	o := &lintOptions{options{IO: s}}
	cmd := &cobra.Command{
		Use:   "lint [PATH…]",
		Short: "Lint skills (default: project and user skills)",
		Long: "Check skills strictly and print FILE:LINE:COLUMN: SEVERITY: MESSAGE, and on stderr how many were checked. Notes are\n" +
			"advice; warnings and errors lead to exit code 1. Lint also warns of suspicious content; finding none does not prove a\n" +
			"skill safe.",
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.register(cmd)
	return cmd
}

func (o *lintOptions) run(paths []string) error {
	found, checked, err := o.lint(paths)
	if err != nil {
		return err
	}
	if o.json {
		if err := cmdutil.WriteJSON(o.Out, append([]skills.Diagnostic{}, found...)); err != nil {
			return err
		}
	} else {
		for _, d := range found {
			fmt.Fprintln(o.Out, display.OneLine(d.Error(), 1000))
		}
		fmt.Fprintf(o.Err, "%s checked: %s\n", display.Plural(checked, "skill"), summary(found))
	}
	if skills.Worst(found) > skills.Note {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	return nil
}

// summary counts the findings.
func summary(found []skills.Diagnostic) string {
	counts := map[skills.Severity]int{}
	for _, d := range found {
		counts[d.Severity]++
	}
	var parts []string
	for _, s := range []skills.Severity{skills.Error, skills.Warning, skills.Note} {
		if n := counts[s]; n > 0 {
			parts = append(parts, display.Plural(n, s.String()))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no findings")
}

// lint checks the skills in folders, or without any those of the project and
// the user, and returns how many that were.
func (o *lintOptions) lint(paths []string) (found []skills.Diagnostic, checked int, err error) {
	if len(paths) == 0 {
		return o.lintAll()
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Cwd, path)
		}
		list, err := lintFolder(path)
		if err != nil {
			return nil, 0, err
		}
		found = append(found, list...)
	}
	return found, len(paths), nil
}

func (o *lintOptions) lintAll() (found []skills.Diagnostic, checked int, err error) {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return nil, 0, err
	}
	c := set.Library().Catalog()
	for _, p := range c.Problems {
		found = append(found, p.Diagnostics...)
		checked++
	}
	for _, skill := range c.Skills {
		if skill.Scope != skills.ScopeBundled {
			found = append(found, skill.Lint()...)
			checked++
		}
	}
	return found, checked, nil
}

func lintFolder(dir string) ([]skills.Diagnostic, error) {
	skill, err := skills.ReadFolder(dir)
	if p := (*skills.Problem)(nil); errors.As(err, &p) {
		return p.Diagnostics, nil
	}
	if err != nil {
		return nil, err
	}
	return skill.Lint(), nil
}
