package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

type verifyOptions struct{ options }

func newVerifyCmd(s *cmdutil.IO) *cobra.Command {
	o := &verifyOptions{options{IO: s}}
	cmd := &cobra.Command{
		Use:   "verify [NAME…]",
		Short: "Compare plugin files with what you approved",
		Args:  cobra.ArbitraryArgs,
		RunE:  func(cmd *cobra.Command, names []string) error { return o.run(cmd.Context(), names) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	return cmd
}

func (o *verifyOptions) run(ctx context.Context, names []string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	var failed []error
	for _, name := range names {
		if err := h.check(name); err != nil {
			failed = append(failed, err)
		}
	}
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	for _, p := range h.Plugins() {
		if !wanted(p.Name()) {
			continue
		}
		if err := p.Verify(ctx); err != nil {
			failed = append(failed, err)
			continue
		}
		result := "verified"
		if p.Scope() == plugins.Linked {
			result = "linked, not verified"
		}
		fmt.Fprintf(o.Out, "%s: %s\n", p.Name(), result)
	}
	for _, b := range h.bundles { // reading them verified their files
		if wanted(b.Name) && !b.Program {
			result := "verified"
			if b.Linked {
				result = "linked, not verified"
			}
			fmt.Fprintf(o.Out, "%s: %s\n", b.Name, result)
		}
	}
	for _, b := range h.Broken() {
		same := func(err error) bool { return err.Error() == b.Error() }
		if wanted(b.Plugin) && !slices.ContainsFunc(failed, same) {
			failed = append(failed, b)
		}
	}
	return errors.Join(failed...)
}
