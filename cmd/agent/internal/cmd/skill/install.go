package skill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/skills"
)

// installing are the flags and the state of commands that install skills.
type installing struct {
	skillFlags
	project, yes, toolsets bool
	in                     *skills.Installer
	set                    *setup.Setup
}

func (o *installing) register(f *pflag.FlagSet) {
	o.skillFlags.register(f)
	f.BoolVar(&o.project, "project", false, "of this directory (.agent/skills), not of your own")
}

func (o *installing) registerConsent(f *pflag.FlagSet) {
	f.BoolVarP(&o.yes, "yes", "y", false, "agree to what is shown, save to programs of a skill")
	f.BoolVar(&o.toolsets, "allow-toolsets", false, "agree to programs of a skill (toolsets), too: they become plugins")
}

// open loads the settings and opens the folder of skills.
func (o *installing) open() (err error) {
	if o.set, err = o.Load(o.IO); err != nil {
		return err
	}
	folder, err := skillsFolder(o.set, o.project)
	if err != nil {
		return err
	}
	o.in = skills.NewInstaller(folder, nil)
	return nil
}

// installedInfo is what a command did with a skill.
type installedInfo struct {
	Name    string          `json:"name"`
	Result  string          `json:"result"` // installed, updated, current, declined, removed, clean, changed
	Source  string          `json:"source,omitempty"`
	Commit  string          `json:"commit,omitempty"`
	Tree    string          `json:"tree,omitempty"`
	Changes []bundle.Change `json:"changes,omitempty"`
}

// print prints what was done.
func (o *installing) print(done []installedInfo) error {
	if o.asJSON {
		return cmdutil.WriteJSON(o.Out, append([]installedInfo{}, done...))
	}
	for _, d := range done {
		line := d.Name + ": " + d.Result
		if d.Commit != "" {
			line += " at " + d.Commit[:min(12, len(d.Commit))]
		}
		fmt.Fprintln(o.Out, line)
		for _, c := range d.Changes {
			fmt.Fprintf(o.Out, "  %s %s\n", c.Kind, display.VisibleLine(c.Path, 200))
		}
	}
	if o.project && slices.ContainsFunc(done, func(d installedInfo) bool { return d.Result == "installed" || d.Result == "updated" }) {
		fmt.Fprintln(o.Out, "They count once the directory is trusted with them: agent trust")
	}
	return nil
}

func newSkillsAdd(s *cmdutil.IO) *cobra.Command {
	o := &installing{skillFlags: skillFlags{IO: s}}
	var frozen, all bool
	var names []string
	cmd := &cobra.Command{
		Use: "add [SOURCE]", Short: "Install skills from a folder, an archive, a repository or a site", Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		Long: "add brings skills from elsewhere, shows what they hold, and installs what you agree to. SOURCE is\n" +
			"  ./FOLDER, ./FILE.zip (or .tar, .tar.gz, .tgz, .tar.bz2), https://…/FILE.zip\n" +
			"  OWNER/REPO[/PATH][@REF], the address of a git repository with //PATH and @REF behind it\n" +
			"  https://SITE, which lists its skills at /.well-known/agent-skills/index.json\n\n" +
			"A lock file says what was installed, to the byte; agent skills verify compares. With --frozen and no SOURCE, everything that\n" +
			"the lock file names is installed as it says, or not at all.",
		Example: "  agent skills add ./my-skill\n  agent skills add microsoft/agent-skills --skill mcp-builder\n  agent skills add --project --frozen",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.open(); err != nil {
				return err
			}
			switch {
			case len(args) == 0 && frozen:
				return o.restore(cmd.Context(), names)
			case len(args) == 0:
				return cmdutil.Usagef("there is no SOURCE; with --frozen, the lock file is one")
			}
			return o.add(cmd.Context(), args[0], names, all, frozen)
		},
	}
	o.register(cmd.Flags())
	o.registerConsent(cmd.Flags())
	cmd.Flags().StringArrayVar(&names, "skill", nil, "the skill of this `NAME`, where the source holds several")
	cmd.Flags().BoolVar(&all, "all", false, "all skills of the source")
	cmd.Flags().BoolVar(&frozen, "frozen", false, "fail if what is fetched is not what the lock file says")
	return cmd
}

// add installs skills of a source.
func (o *installing) add(ctx context.Context, text string, names []string, all, frozen bool) error {
	origin, err := skills.ParseSource(text, o.Cwd, cmdutil.UserHome())
	if err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	batch, err := o.in.Fetch(ctx, origin)
	if err != nil {
		return err
	}
	defer batch.Close()
	for _, p := range batch.Problems {
		fmt.Fprintf(o.Err, "agent: %s\n", display.VisibleLine(p.Error(), 500))
	}
	chosen, err := choose(batch.Offers, names, all)
	if err != nil {
		return err
	}
	var done []installedInfo
	var failed error
	for _, offer := range chosen {
		if frozen && (offer.Before == nil || offer.Before.Tree != offer.Tree.Hash) {
			return fmt.Errorf("skill %s: it is not what the lock file %s says, and nothing was installed", offer.Skill.Name, o.in.LockFile())
		}
	}
	for _, offer := range chosen {
		info, err := o.install(ctx, offer)
		if err != nil {
			failed = err
			break
		}
		done = append(done, info)
	}
	return errors.Join(o.print(done), failed)
}

// choose picks the offers that were asked for.
func choose(offers []*skills.Offer, names []string, all bool) ([]*skills.Offer, error) {
	if all || len(offers) == 1 && len(names) == 0 {
		return offers, nil
	}
	var known []string
	for _, o := range offers {
		known = append(known, o.Skill.Name)
	}
	if len(names) == 0 {
		return nil, cmdutil.Usagef("the source holds %s: choose with --skill NAME or --all: %s", cmdutil.Plural(len(offers), "skill"), display.VisibleLine(strings.Join(known, ", "), 2000))
	}
	var chosen []*skills.Offer
	for _, name := range names {
		i := slices.IndexFunc(offers, func(o *skills.Offer) bool { return strings.EqualFold(o.Skill.Name, name) })
		if i < 0 {
			return nil, cmdutil.Usagef("the source holds no skill %q, but %s", name, display.VisibleLine(strings.Join(known, ", "), 2000))
		}
		chosen = append(chosen, offers[i])
	}
	return chosen, nil
}

// install shows an offer, asks, and installs it.
func (o *installing) install(ctx context.Context, offer *skills.Offer) (installedInfo, error) {
	info := installedInfo{Name: offer.Skill.Name, Source: offer.Origin.String(), Commit: offer.Commit, Tree: offer.Tree.Hash, Result: "installed"}
	if offer.Before != nil {
		_, edits, err := o.in.Verify(ctx, offer.Skill.Name)
		if err == nil && len(edits) == 0 && len(offer.Changes) == 0 && offer.Before.Source.Commit == offer.Commit {
			info.Result = "current"
			return info, nil
		}
		info.Result, info.Changes = "updated", offer.Changes
	}
	if err := o.show(ctx, offer); err != nil {
		return info, err
	}
	terms := offer.Terms()
	yes, err := o.Confirm(ctx, "Install "+offer.Skill.Name+"?", o.yes)
	if err != nil {
		return info, err
	}
	if !yes {
		info.Result, info.Changes = "declined", nil
		return info, nil
	}
	if len(terms.Toolsets) > 0 {
		fmt.Fprintf(o.Err, "\nIts toolsets (%s) are programs. Each runs in a process of its own that may do nothing but compute, where a sandbox works; otherwise with your rights.\n", display.VisibleLine(strings.Join(terms.Toolsets, ", "), 200))
		allowed := o.toolsets
		if !allowed && o.InTTY && !o.yes {
			if allowed, err = o.Confirm(ctx, "Start them when the skill is used?", false); err != nil {
				return info, err
			}
		}
		if !allowed {
			fmt.Fprintln(o.Err, "They are not started; --allow-toolsets agrees to them.")
			terms.Toolsets = nil
		}
	}
	return info, o.in.Install(ctx, offer, terms, time.Now())
}

// maxShownDiff bounds what is shown of a change, in bytes.
const maxShownDiff = 8 << 10

// show says what there is to agree to.
func (o *installing) show(ctx context.Context, offer *skills.Offer) error {
	one, w := offer.Skill, o.Err
	list := func(name string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(w, "  %-10s %s\n", name+":", display.VisibleLine(strings.Join(items, ", "), 2000))
		}
	}
	fmt.Fprintf(w, "\n%s: %s\n", one.Name, display.VisibleLine(one.Description, 500))
	list("From", []string{offer.Origin.String()})
	list("Commit", nonEmpty(offer.Commit))
	list("License", nonEmpty(one.License))
	list("Files", []string{fmt.Sprintf("%s, %d bytes", cmdutil.Plural(len(offer.Tree.Files), "file"), offer.Tree.Bytes())})
	list("Scripts", offer.Scripts)
	list("Toolsets", one.Toolsets)
	list("Keywords", one.Triggers.Keywords)
	list("Verbs", one.Triggers.Verbs)
	list("Patterns", one.Triggers.Patterns)
	list("Wants", one.AllowedTools)
	for _, d := range one.Diagnostics {
		if d.Severity > skills.Note {
			fmt.Fprintf(w, "  ! SKILL.md:%d: %s\n", d.Line, display.VisibleLine(d.Message, 300))
		}
	}
	for _, d := range offer.Findings {
		fmt.Fprintf(w, "  ! %s:%d: %s\n", display.VisibleLine(d.File, 200), d.Line, display.VisibleLine(d.Message, 300))
	}
	if len(offer.Findings) == 0 {
		fmt.Fprintln(w, "  The scan found nothing; that proves nothing.")
	}
	if c := o.set.Library().Catalog(); offer.Before == nil {
		if other, ok := c.Find(one.Name); ok {
			fmt.Fprintf(w, "  ! there is a skill of this name already: %s\n", other.File)
		}
	}
	for _, grave := range offer.SensitiveChanges() {
		fmt.Fprintf(w, "  ! %s\n", display.VisibleLine(grave, 300))
	}
	for _, c := range offer.Changes {
		fmt.Fprintf(w, "  %s %s\n", c.Kind, display.VisibleLine(c.Path, 200))
		diff, err := o.in.Diff(ctx, offer, c)
		if err != nil {
			return err
		}
		if len(diff) > maxShownDiff {
			diff = strings.ToValidUTF8(diff[:maxShownDiff], "") + "\n[…]\n"
		}
		fmt.Fprint(w, display.Visible(diff))
	}
	return nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// restore installs what the lock file names, as it says.
func (o *installing) restore(ctx context.Context, names []string) error {
	entries, err := o.entries(ctx, names)
	if err != nil {
		return err
	}
	var done []installedInfo
	for _, e := range entries {
		if _, edits, err := o.in.Verify(ctx, e.Name); err == nil && len(edits) == 0 {
			done = append(done, installedInfo{Name: e.Name, Result: "current", Source: skills.OriginOf(e).String(), Commit: e.Source.Commit, Tree: e.Tree})
			continue
		}
		info, err := o.restoreOne(ctx, e)
		if err != nil {
			return errors.Join(o.print(done), err)
		}
		done = append(done, info)
	}
	return o.print(done)
}

func (o *installing) restoreOne(ctx context.Context, e bundle.Entry) (installedInfo, error) {
	batch, err := o.in.FetchLocked(ctx, e)
	if err != nil {
		return installedInfo{}, err
	}
	defer batch.Close()
	info, err := o.install(ctx, batch.Offers[0])
	if info.Result == "updated" {
		info.Result = "installed"
	}
	return info, err
}

// entries are those of the lock file, all or the named ones.
func (o *installing) entries(ctx context.Context, names []string) ([]bundle.Entry, error) {
	all, err := o.in.Installed(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen []bundle.Entry
	for _, name := range names {
		i := slices.IndexFunc(all, func(e bundle.Entry) bool { return strings.EqualFold(e.Name, name) })
		if i < 0 {
			return nil, fmt.Errorf("skill %q was not installed here: %s does not name it", name, o.in.LockFile())
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func newSkillsUpdate(s *cmdutil.IO) *cobra.Command {
	o := &installing{skillFlags: skillFlags{IO: s}}
	cmd := &cobra.Command{
		Use: "update [NAME…]", Short: "Fetch installed skills again, show what changed, and install what you agree to",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.open(); err != nil {
				return err
			}
			entries, err := o.entries(cmd.Context(), args)
			if err != nil {
				return err
			}
			var done []installedInfo
			var failed []error
			for _, e := range entries {
				info, err := o.update(cmd.Context(), e)
				if err != nil {
					failed = append(failed, err)
					continue
				}
				done = append(done, info)
			}
			return errors.Join(append(failed, o.print(done))...)
		},
	}
	o.register(cmd.Flags())
	o.registerConsent(cmd.Flags())
	return cmd
}

func (o *installing) update(ctx context.Context, e bundle.Entry) (installedInfo, error) {
	batch, err := o.in.Update(ctx, e)
	if err != nil {
		return installedInfo{}, err
	}
	defer batch.Close()
	return o.install(ctx, batch.Offers[0])
}

func newSkillsRemove(s *cmdutil.IO) *cobra.Command {
	o := &installing{skillFlags: skillFlags{IO: s}}
	force := false
	cmd := &cobra.Command{
		Use: "remove NAME…", Aliases: []string{"rm"}, Short: "Remove installed skills", Args: cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.open(); err != nil {
				return err
			}
			var done []installedInfo
			for _, name := range args {
				err := o.in.Remove(cmd.Context(), name, force)
				switch {
				case errors.Is(err, bundle.ErrNotInstalled):
					return errors.Join(o.print(done), fmt.Errorf("skill %q was not installed in %s: what you made yourself you remove yourself, and agent skills disable switches a skill off", name, o.in.Dir()))
				case errors.Is(err, bundle.ErrLocalEdits):
					return errors.Join(o.print(done), fmt.Errorf("%w: agent skills verify %s shows them, --force drops them", err, name))
				case err != nil:
					return errors.Join(o.print(done), err)
				}
				done = append(done, installedInfo{Name: name, Result: "removed"})
			}
			return o.print(done)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "drop what you changed in them")
	return cmd
}

func newSkillsVerify(s *cmdutil.IO) *cobra.Command {
	o := &installing{skillFlags: skillFlags{IO: s}}
	accept := false
	cmd := &cobra.Command{
		Use: "verify [NAME…]", Short: "Compare installed skills with what you agreed to",
		Long: "verify hashes every file of installed skills again. A changed skill is not used until it is as you agreed to: --accept takes over what\n" +
			"you changed yourself. Exit code 1 if something changed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.open(); err != nil {
				return err
			}
			if accept && len(args) == 0 {
				return cmdutil.Usagef("--accept needs the names of the skills whose changes you take over")
			}
			entries, err := o.entries(cmd.Context(), args)
			if err != nil {
				return err
			}
			var done []installedInfo
			changed := false
			for _, e := range entries {
				info, err := o.verify(cmd.Context(), e.Name, accept)
				if err != nil {
					return errors.Join(o.print(done), err)
				}
				changed = changed || info.Result == "changed"
				done = append(done, info)
			}
			if err := o.print(done); err != nil || !changed {
				return err
			}
			return &cmdutil.StatusError{Code: cmdutil.ExitError}
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&accept, "accept", false, "agree to the skills as they are now")
	return cmd
}

func (o *installing) verify(ctx context.Context, name string, accept bool) (installedInfo, error) {
	e, changes, err := o.in.Verify(ctx, name)
	if err != nil {
		return installedInfo{}, fmt.Errorf("skill %s: %w", name, err)
	}
	info := installedInfo{Name: name, Result: "clean", Source: skills.OriginOf(e).String(), Commit: e.Source.Commit, Tree: e.Tree, Changes: changes}
	switch {
	case len(changes) == 0:
	case accept:
		info.Result = "accepted"
		err = o.in.Accept(ctx, name, time.Now())
	default:
		info.Result = "changed"
	}
	return info, err
}
