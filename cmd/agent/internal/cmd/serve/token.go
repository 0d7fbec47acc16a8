package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service/api"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

type tokenOptions struct {
	*cmdutil.IO
	data, tenant string
	scopes       []string
	json         bool
}

// newTokenCmd returns agent serve token.
func newTokenCmd(s *cmdutil.IO) *cobra.Command {
	o := &tokenOptions{IO: s}
	add := &cobra.Command{
		Use: "add NAME", Short: "Make a token, and print it once",
		Long: "Make a token, and print it. Only its hash is kept. A service that is running takes it at once. What a token may do\n" +
			"are its scopes: read (list and follow sessions), run (create and delete them, and send them inputs), answer\n" +
			"(answer questions) and admin (read the metrics of all tenants). A token reaches only the sessions of its tenant.",
		Example: "  agent serve token add --scope read,run ci",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.add(cmd.Context(), args[0]) },
	}
	cmdutil.ListVar(add.Flags(), &o.scopes, "scope", "allow `SCOPES`: read, run, answer, admin (default all but admin)")
	add.Flags().StringVar(&o.tenant, "tenant", defaultTenant, "reach the sessions of tenant `NAME`")
	list := &cobra.Command{
		Use: "list", Short: "List the tokens of the service",
		Args: cmdutil.Args(cobra.NoArgs), RunE: func(*cobra.Command, []string) error { return o.list() },
	}
	cmdutil.JSONFlag(list, &o.json)
	revoke := &cobra.Command{
		Use: "revoke NAME", Short: "Make a token invalid, also in a service that is running",
		Args: cmdutil.Args(cobra.ExactArgs(1)), RunE: func(cmd *cobra.Command, args []string) error { return o.revoke(cmd.Context(), args[0]) },
	}
	keep := &cobra.Command{
		Use: "keep URL", Short: "Keep the token of a service in the keyring",
		Long: "Keep the token on stdin in the system's keyring, for commands with --on URL.",
		Args: cmdutil.Args(cobra.ExactArgs(1)), RunE: func(cmd *cobra.Command, args []string) error { return o.keep(cmd.Context(), args[0]) },
	}
	for _, cmd := range []*cobra.Command{add, list, revoke} {
		cmd.Flags().StringVar(&o.data, "data", "", "of the service with its data in `DIR` (default ~/.agent/service)")
	}
	return cmdutil.Group("token", "Manage the tokens of the service", add, list, revoke, keep)
}

// tokens returns the list of the service.
func (o *tokenOptions) tokens() (tokenList, error) {
	if o.data != "" {
		return tokenList{o.WorkDir(o.data)}, nil
	}
	home, err := o.AgentHome()
	return tokenList{remote.ServiceDir(home)}, err
}

func (o *tokenOptions) add(ctx context.Context, name string) error {
	if err := store.CheckID(name); err != nil {
		return cmdutil.Usagef("NAME: %w", err)
	}
	scopes := []api.Scope{api.ScopeRead, api.ScopeRun, api.ScopeAnswer}
	if len(o.scopes) > 0 {
		scopes = nil
	}
	for _, text := range o.scopes {
		s := api.Scope(text)
		if !slices.Contains(allScopes(), s) {
			return cmdutil.Usagef("--scope %q: use read, run, answer or admin", text)
		}
		scopes = append(scopes, s)
	}
	list, err := o.tokens()
	if err != nil {
		return err
	}
	token, err := list.add(ctx, name, o.tenant, scopes)
	if err == nil {
		fmt.Fprintln(o.Out, token)
	}
	return err
}

// listedToken is a token as list shows it.
type listedToken struct {
	Name    string      `json:"name"`
	Tenant  string      `json:"tenant"`
	Scopes  []api.Scope `json:"scopes"`
	Created time.Time   `json:"created"`
}

func (o *tokenOptions) list() error {
	list, err := o.tokens()
	if err != nil {
		return err
	}
	records, err := list.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := []listedToken{}
	for _, r := range records {
		all = append(all, listedToken{r.Name, r.Tenant, r.Scopes, r.Created})
	}
	switch {
	case o.json:
		return cmdutil.WriteJSON(o.Out, all)
	case len(all) == 0:
		fmt.Fprintf(o.Err, "No tokens. The first start of agent serve makes one.\n")
		return nil
	}
	t := cmdutil.NewTable(o.Out, "NAME", "TENANT", "SCOPES", "AGE")
	for _, l := range all {
		t.Row(display.VisibleLine(l.Name, 40), l.Tenant, fmt.Sprint(l.Scopes), cmdutil.Age(time.Since(l.Created)))
	}
	return t.Flush()
}

func (o *tokenOptions) revoke(ctx context.Context, name string) error {
	list, err := o.tokens()
	if err != nil {
		return err
	}
	if err := list.revoke(ctx, name); err != nil {
		return err
	}
	if name == firstToken {
		if err := os.Remove(remote.TokenFile(list.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	fmt.Fprintf(o.Err, "Revoked %s.\n", name)
	return nil
}

func (o *tokenOptions) keep(ctx context.Context, address string) error {
	token, err := cmdutil.ReadAll(ctx, o.In)
	if err != nil {
		return err
	}
	token = strings.TrimSpace(token)
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return cmdutil.Usagef("stdin must have one token, such as in: agent serve token keep URL < FILE")
	}
	if _, err := client.New(client.Options{URL: address, Token: token}); err != nil {
		return cmdutil.Usagef("URL: %w", err)
	}
	if o.Keyring == nil || !o.Keyring.Running() {
		return fmt.Errorf("no keyring is running: set %s to the token instead", remote.TokenVariable)
	}
	if err := o.Keyring.Set(ctx, remote.KeyringEntry(address), token); err != nil {
		return err
	}
	fmt.Fprintf(o.Err, "Kept the token of %s in the keyring.\n", address)
	return nil
}
