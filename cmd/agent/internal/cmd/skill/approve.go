package skill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/skills"
)

// approveOptions are what the commands share that install what the user
// approves.
type approveOptions struct {
	installedOptions
	yes, allowToolsets bool
	restores           bool // an edited skill is replaced even if its source did not change
}

func (o *approveOptions) register(cmd *cobra.Command) {
	o.installedOptions.register(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "install without asking; toolsets need --allow-toolsets as well")
	cmd.Flags().BoolVar(&o.allowToolsets, "allow-toolsets", false, "let skills start their toolsets, which are plugins")
}

// install shows an offer, asks, and installs it.
func (o *approveOptions) install(ctx context.Context, offer *skills.Offer) (outcome, error) {
	done := outcome{Name: offer.Skill.Name, Source: offer.Origin.String(), Commit: offer.Commit, Tree: offer.Tree.Hash, Result: resultInstalled}
	if offer.Before != nil {
		upstream, edited, err := o.installer.Edited(ctx, *offer.Before)
		if err != nil {
			return done, err
		}
		if upstream == offer.Tree.Hash && (edited && !o.restores || !edited && offer.Before.Source.Commit == offer.Commit) {
			done.Result, done.Edited = resultCurrent, edited
			return done, nil
		}
		done.Result, done.Changes = resultUpdated, offer.Changes
		if edited {
			fmt.Fprintf(o.Err, "\nYou edited %s: your version will be kept beside the new one.\n", offer.Skill.Name)
		}
	}
	if err := o.show(ctx, offer); err != nil {
		return done, err
	}
	yes, err := o.Confirm(ctx, "Install "+offer.Skill.Name+"?", o.yes)
	if err != nil {
		return done, err
	}
	if !yes {
		done.Result, done.Changes = resultDeclined, nil
		return done, nil
	}
	terms := offer.Terms()
	if len(terms.Toolsets) > 0 {
		allowed, err := o.approveToolsets(ctx, terms.Toolsets)
		if err != nil {
			return done, err
		}
		if !allowed {
			terms.Toolsets = nil
		}
	}
	done.Kept, err = o.installer.Install(ctx, offer, terms, time.Now())
	return done, err
}

// intact reports whether the files of an installed skill are those of the lock
// file.
func (o *approveOptions) intact(ctx context.Context, name string) bool {
	_, edits, err := o.installer.Verify(ctx, name)
	return err == nil && len(edits) == 0
}

// approveToolsets asks whether toolsets may start, which --yes does not answer.
func (o *approveOptions) approveToolsets(ctx context.Context, names []string) (allowed bool, err error) {
	fmt.Fprintf(o.Err, "\nToolsets are native programs (%s). Each runs in a separate process: in a sandbox where it can only compute, or with your rights if no sandbox works.\n", display.VisibleLine(strings.Join(names, ", "), 200))
	allowed = o.allowToolsets
	if !allowed && o.InTTY && !o.yes {
		if allowed, err = o.Confirm(ctx, "Start them when the skill is used?", false); err != nil {
			return false, err
		}
	}
	if !allowed {
		fmt.Fprintln(o.Err, "Toolsets not approved: pass --allow-toolsets to let the skill start them.")
	}
	return allowed, nil
}

// show prints what the user has to approve.
func (o *approveOptions) show(ctx context.Context, offer *skills.Offer) error {
	fmt.Fprintf(o.Err, "\n%s: %s\n", offer.Skill.Name, display.VisibleLine(offer.Skill.Description, 500))
	if err := o.showContent(offer); err != nil {
		return err
	}
	o.showWarnings(offer)
	for _, c := range offer.Changes {
		if err := o.showChange(ctx, offer, c); err != nil {
			return err
		}
	}
	return nil
}

func (o *approveOptions) showContent(offer *skills.Offer) error {
	skill, t := offer.Skill, fields{cmdutil.NewTable(o.Err)}
	list := func(name string, items []string) { t.add("  "+name+":", strings.Join(items, ", ")) }
	t.add("  From:", offer.Origin.String())
	t.add("  Commit:", offer.Commit)
	t.add("  License:", skill.License)
	t.add("  Files:", fmt.Sprintf("%s, %d bytes", display.Plural(len(offer.Tree.Files), "file"), offer.Tree.Bytes()))
	list("Scripts", offer.Scripts)
	list("Toolsets", skill.Toolsets)
	for _, line := range skill.HookLines() {
		t.add("  Hook:", line)
	}
	list("Keywords", skill.Triggers.Keywords)
	list("Verbs", skill.Triggers.Verbs)
	list("Patterns", skill.Triggers.Patterns)
	list("Requested tools", skill.AllowedTools)
	return t.Flush()
}

func (o *approveOptions) showWarnings(offer *skills.Offer) {
	warn := func(format string, args ...any) { fmt.Fprintf(o.Err, "  ! "+format+"\n", args...) }
	for _, d := range offer.Skill.Diagnostics {
		if d.Severity > skills.Note {
			warn("SKILL.md:%d: %s", d.Line, display.VisibleLine(d.Message, 300))
		}
	}
	for _, d := range offer.Findings {
		warn("%s:%d: %s", display.VisibleLine(d.File, 200), d.Line, display.VisibleLine(d.Message, 300))
	}
	for _, r := range offer.LeftOut {
		warn("left out: %s: %s", display.VisibleLine(r.Path, 200), r.Reason)
	}
	if len(offer.Findings) == 0 {
		fmt.Fprintln(o.Err, "  The scan found nothing suspicious, which does not prove the skill safe.")
	}
	if offer.Before == nil {
		if other, ok := o.set.Library().Catalog().Find(offer.Skill.Name); ok {
			warn("another skill has the same name: %s", other.File)
		}
	}
	for _, change := range offer.SensitiveChanges() {
		warn("%s", display.VisibleLine(change, 300))
	}
}

// maxShownDiff limits what is shown of a changed file, in bytes.
const maxShownDiff = 8 << 10

func (o *approveOptions) showChange(ctx context.Context, offer *skills.Offer, c bundle.Change) error {
	fmt.Fprintf(o.Err, "  %s %s\n", c.Kind, display.VisibleLine(c.Path, 200))
	diff, err := o.installer.Diff(ctx, offer, c)
	if err != nil {
		return err
	}
	if len(diff) > maxShownDiff {
		diff = strings.ToValidUTF8(diff[:maxShownDiff], "") + "\n[…]\n"
	}
	fmt.Fprint(o.Err, display.Visible(diff))
	return nil
}
