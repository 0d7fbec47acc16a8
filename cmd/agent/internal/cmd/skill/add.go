package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/skills"
)

type addOptions struct {
	approveOptions
	names  []string
	all    bool
	frozen bool
}

func newAddCmd(s *cmdutil.IO) *cobra.Command {
	o := &addOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:   "add [SOURCE]",
		Short: "Install skills from a folder, archive, repository or site",
		Long: "Fetch skills, show what they contain, and install those that you approve. SOURCE is one of\n" +
			"  ./FOLDER, ./FILE.zip (or .tar, .tar.gz, .tgz, .tar.bz2), https://…/FILE.zip\n" +
			"  OWNER/REPO[/PATH][@REF], or the address of a git repository followed by //PATH and @REF\n" +
			"  https://SITE, which lists its skills at /.well-known/agent-skills/index.json\n\n" +
			"A lock file records the hash of each installed file; 'agent skills verify' compares them. With --frozen and without\n" +
			"SOURCE, exactly what the lock file records is installed, or nothing.",
		Example: "  agent skills add ./my-skill\n" +
			"  agent skills add microsoft/agent-skills --skill mcp-builder\n" +
			"  agent skills add --project --frozen --yes     # in CI: what the lock file records",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd)
	cmdutil.RepeatVar(cmd.Flags(), &o.names, "skill", "install the skill with this `NAME`, if the source has several")
	cmd.Flags().BoolVar(&o.all, "all", false, "install all skills of the source")
	cmd.Flags().BoolVar(&o.frozen, "frozen", false, "fail if a skill differs from the lock file")
	return cmd
}

func (o *addOptions) run(ctx context.Context, source []string) error {
	if len(source) == 0 && !o.frozen {
		return cmdutil.Usagef("missing SOURCE; to install what the lock file records, use --frozen")
	}
	if err := o.open(); err != nil {
		return err
	}
	if len(source) == 0 {
		return o.restore(ctx)
	}
	return o.add(ctx, source[0])
}

// add installs skills of a source.
func (o *addOptions) add(ctx context.Context, source string) error {
	origin, err := skills.ParseSource(source, o.Cwd, cmdutil.UserHome())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return &cmdutil.UsageError{Err: err}
	}
	batch, err := o.installer.Fetch(ctx, origin)
	if err != nil {
		return err
	}
	defer batch.Close()
	for _, p := range batch.Problems {
		fmt.Fprintf(o.Err, "agent: %s\n", display.VisibleLine(p.Error(), 500))
	}
	chosen, err := o.choose(batch.Offers)
	if err != nil {
		return err
	}
	var done []outcome
	for _, offer := range chosen {
		d, err := o.install(ctx, offer)
		if err != nil {
			return errors.Join(o.report(done), err)
		}
		done = append(done, d)
	}
	return o.report(done)
}

// choose returns the offers that the flags ask for.
func (o *addOptions) choose(offers []*skills.Offer) ([]*skills.Offer, error) {
	chosen := offers
	if !o.all && (len(offers) != 1 || len(o.names) > 0) {
		var err error
		if chosen, err = named(offers, o.names); err != nil {
			return nil, err
		}
	}
	for _, offer := range chosen {
		if o.frozen && (offer.Before == nil || offer.Before.Tree != offer.Tree.Hash) {
			return nil, fmt.Errorf("skill %s differs from the lock file %s; nothing was installed", offer.Skill.Name, o.installer.LockFile())
		}
	}
	return chosen, nil
}

// named returns the offers with these names.
func named(offers []*skills.Offer, names []string) (chosen []*skills.Offer, err error) {
	var list []string
	for _, offer := range offers {
		list = append(list, offer.Skill.Name)
	}
	known := display.VisibleLine(strings.Join(list, ", "), 2000)
	if len(names) == 0 {
		return nil, cmdutil.Usagef("the source has %s, choose with --skill NAME or --all: %s", display.Plural(len(offers), "skill"), known)
	}
	for _, name := range names {
		i := slices.IndexFunc(offers, func(offer *skills.Offer) bool { return strings.EqualFold(offer.Skill.Name, name) })
		if i < 0 {
			return nil, fmt.Errorf("no skill %q in the source, which has: %s", name, known)
		}
		chosen = append(chosen, offers[i])
	}
	return chosen, nil
}

// restore installs what the lock file records.
func (o *addOptions) restore(ctx context.Context) error {
	entries, err := o.entries(ctx, o.names)
	if err != nil {
		return err
	}
	var done []outcome
	for _, e := range entries {
		d, err := o.restoreOne(ctx, e)
		if err != nil {
			return errors.Join(o.report(done), err)
		}
		done = append(done, d)
	}
	return o.report(done)
}

func (o *addOptions) restoreOne(ctx context.Context, e bundle.Entry) (outcome, error) {
	if o.intact(ctx, e.Name) {
		return newOutcome(e, resultCurrent), nil
	}
	batch, err := o.installer.FetchLocked(ctx, e)
	if err != nil {
		return outcome{}, err
	}
	defer batch.Close()
	o.restores = true
	d, err := o.install(ctx, batch.Offers[0])
	if d.Result == resultUpdated {
		d.Result = resultInstalled
	}
	return d, err
}
