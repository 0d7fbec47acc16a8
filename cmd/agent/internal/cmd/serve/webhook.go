package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

// webhookOptions are those of agent serve webhook.
type webhookOptions struct {
	*cmdutil.IO
	on, id string
	events []string
	json   bool
}

// newWebhookCmd returns agent serve webhook.
func newWebhookCmd(s *cmdutil.IO) *cobra.Command {
	o := &webhookOptions{IO: s}
	add := &cobra.Command{
		Use: "add URL", Short: "Add a webhook, and print its secret once",
		Long: "Have the service call URL when something happens in a session of your tenant, and print the secret that signs the\n" +
			"calls: see docs/service.md. It takes a token with the scopes run and read.",
		Example: "  agent serve webhook add https://bot.example/agent --event question.opened",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.add(cmd.Context(), args[0]) },
	}
	cmdutil.ListVar(add.Flags(), &o.events, "event", "call it for `EVENTS`: "+strings.Join(service.WebhookEvents(), ", ")+" (default all)")
	add.Flags().StringVar(&o.id, "id", "", "give it the `ID` instead of a new one")
	list := &cobra.Command{
		Use: "list", Short: "List the webhooks, and how their last calls went",
		Args: cmdutil.Args(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	remove := &cobra.Command{
		Use: "delete ID", Short: "Delete a webhook with the notices that it has waiting",
		Args: cmdutil.Args(cobra.ExactArgs(1)), RunE: func(cmd *cobra.Command, args []string) error { return o.remove(cmd.Context(), args[0]) },
	}
	for _, cmd := range []*cobra.Command{add, list, remove} {
		cmd.Flags().StringVar(&o.on, remote.Flag, "http://"+defaultListen, "use the service at `URL`")
	}
	cmdutil.JSONFlag(add, &o.json)
	cmdutil.JSONFlag(list, &o.json)
	return cmdutil.Group("webhook", "Manage the addresses that a service calls", add, list, remove)
}

// connected calls do with a client of the service.
func (o *webhookOptions) connected(ctx context.Context, do func(c *client.Client) error) error {
	c, err := remote.Connect(ctx, o.IO, o.on)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func (o *webhookOptions) add(ctx context.Context, url string) error {
	h := service.Webhook{ID: o.id, URL: url, Events: o.events}
	if len(h.Events) == 0 {
		h.Events = service.WebhookEvents()
	}
	return o.connected(ctx, func(c *client.Client) error {
		added, err := c.AddWebhook(ctx, h)
		switch {
		case errors.Is(err, fs.ErrExist):
			return fmt.Errorf("there is a webhook %s: choose another --id, or delete that one", o.id)
		case err != nil:
			return err
		case o.json:
			return cmdutil.WriteJSON(o.Out, added)
		}
		fmt.Fprintf(o.Err, "Added webhook %s for %s. The secret of its signatures, shown only now:\n", added.ID, strings.Join(added.Events, ", "))
		fmt.Fprintln(o.Out, added.Secret)
		return nil
	})
}

func (o *webhookOptions) list(ctx context.Context) error {
	return o.connected(ctx, func(c *client.Client) error {
		all, err := c.Webhooks(ctx)
		switch {
		case err != nil:
			return err
		case o.json:
			return cmdutil.WriteJSON(o.Out, append([]service.Webhook{}, all...))
		case len(all) == 0:
			fmt.Fprintln(o.Err, "No webhooks.")
			return nil
		}
		t := cmdutil.NewTable(o.Out, "ID", "URL", "EVENTS", "PENDING", "LAST CALL", "RESULT")
		for _, h := range all {
			age, result := lastCall(h)
			t.Row(h.ID, display.VisibleLine(h.URL, 60), strings.Join(h.Events, ","), fmt.Sprint(h.Pending), age, result)
		}
		return t.Flush()
	})
}

// lastCall says when a webhook was last called, and what came of it.
func lastCall(h service.Webhook) (age, result string) {
	if h.LastTry.IsZero() {
		return "never", ""
	}
	return cmdutil.Age(time.Since(h.LastTry)), cmp.Or(display.VisibleLine(h.LastError, 100), "delivered")
}

func (o *webhookOptions) remove(ctx context.Context, id string) error {
	return o.connected(ctx, func(c *client.Client) error {
		err := c.DeleteWebhook(ctx, id)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no webhook %s: see agent serve webhook list", id)
		}
		if err == nil {
			fmt.Fprintf(o.Err, "Deleted webhook %s.\n", id)
		}
		return err
	})
}
