package skill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/skills"
)

// installedOptions are what the commands about installed skills share.
type installedOptions struct {
	options
	project bool

	// Set by open.
	set       *setup.Setup
	installer *skills.Installer
}

func (o *installedOptions) register(cmd *cobra.Command) {
	o.options.register(cmd)
	cmd.Flags().BoolVar(&o.project, "project", false, "use the project's skills (.agent/skills) instead of yours")
}

// open loads the settings and opens the folder of installed skills.
func (o *installedOptions) open() (err error) {
	if o.set, err = o.flags.Load(o.IO); err != nil {
		return err
	}
	dir, err := folder(o.set, o.project)
	if err != nil {
		return err
	}
	o.installer = skills.NewInstaller(dir, nil)
	return nil
}

// entries returns the named entries of the lock file, or all.
func (o *installedOptions) entries(ctx context.Context, names []string) ([]bundle.Entry, error) {
	all, err := o.installer.Installed(ctx)
	if err != nil || len(names) == 0 {
		if err == nil && len(all) == 0 {
			fmt.Fprintf(o.Err, "No skills are recorded in %s.\n", o.installer.LockFile())
		}
		return all, err
	}
	var known []string
	for _, e := range all {
		known = append(known, e.Name)
	}
	var chosen []bundle.Entry
	for _, name := range names {
		i := slices.IndexFunc(all, func(e bundle.Entry) bool { return strings.EqualFold(e.Name, name) })
		if i < 0 {
			return nil, fmt.Errorf("no skill %q in %s; installed: %s", name, o.installer.LockFile(), cmp.Or(strings.Join(known, ", "), "none"))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// The results of a command for one skill.
const (
	resultInstalled = "installed"
	resultUpdated   = "updated"
	resultCurrent   = "current" // nothing to do
	resultDeclined  = "declined"
	resultRemoved   = "removed"
	resultClean     = "clean"
	resultChanged   = "changed"
	resultAccepted  = "accepted"
)

// outcome is what a command did with one skill.
type outcome struct {
	Name    string          `json:"name"`
	Result  string          `json:"result"`
	Source  string          `json:"source,omitempty"`
	Commit  string          `json:"commit,omitempty"`
	Tree    string          `json:"tree,omitempty"`
	Changes []bundle.Change `json:"changes,omitempty"`
	Edited  bool            `json:"edited,omitempty"` // by the user, and left so
	Kept    string          `json:"kept,omitempty"`   // where the user's edits are
}

func newOutcome(e bundle.Entry, result string) outcome {
	return outcome{Name: e.Name, Result: result, Source: skills.OriginOf(e).String(), Commit: e.Source.Commit, Tree: e.Tree}
}

// installs reports whether the files of the skill are new.
func (d outcome) installs() bool { return d.Result == resultInstalled || d.Result == resultUpdated }

// report prints outcomes.
func (o *installedOptions) report(done []outcome) error {
	if o.json {
		return cmdutil.WriteJSON(o.Out, append([]outcome{}, done...))
	}
	for _, d := range done {
		line := d.Name + ": " + d.Result
		if d.Commit != "" {
			line += " at " + d.Commit[:min(12, len(d.Commit))]
		}
		if d.Edited {
			line += ", with your edits"
		}
		fmt.Fprintln(o.Out, line)
		if d.Kept != "" {
			fmt.Fprintf(o.Out, "  your edits are kept in %s\n", display.VisibleLine(d.Kept, 500))
		}
		for _, c := range d.Changes {
			fmt.Fprintf(o.Out, "  %s %s\n", c.Kind, display.VisibleLine(c.Path, 200))
		}
	}
	if o.project && slices.ContainsFunc(done, outcome.installs) {
		fmt.Fprintln(o.Out, "Run 'agent trust' to activate project skills.")
	}
	return nil
}
