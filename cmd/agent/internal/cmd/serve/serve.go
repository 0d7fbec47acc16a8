package serve

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// defaultListen is where a service is reached unless told otherwise.
const defaultListen = "127.0.0.1:7433"

type options struct {
	*run.Options
	stdio  bool
	socket string
	api    apiOptions
	work   workOptions
	price  page.Price
}

// NewCmd returns agent serve.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{Options: run.NewOptions(s)}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run sessions for other programs and machines",
		Long: "Run sessions that outlive programs and machines, with an HTTP API: see docs/service.md. What is kept is below\n" +
			"~/.agent/service, or with --nats in a cluster. The first start prints a token; agent exec --on URL uses it.\n" +
			"Each session works in a separate directory, in the sandbox, with the model of your settings, and without your\n" +
			"environment and your home directory. Calls that need approval wait for agent answer. Ctrl-C lets go of the\n" +
			"sessions, and the next start continues them.\n\n" +
			"With --stdio or --socket, sessions are for programs on this machine, which send commands and get events as lines\n" +
			"of JSON: see docs/host-protocol.md. With --stdio it is one session on stdin and stdout, as with agent exec\n" +
			"--input-format stream-json. With --socket each connection to a Unix socket begins a session, or resumes or\n" +
			"attaches to one; only your user can connect. --stdio --resume ID attaches to a session that another process\n" +
			"serves on a socket. Ctrl-C closes all sessions; they are saved and can be resumed.",
		Example: "  agent serve\n  agent serve --listen 0.0.0.0:7433 --host agents.example --tls-cert cert.pem --tls-key key.pem\n" +
			"  agent serve --stdio\n  agent serve --socket ~/.agent/serve.sock",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().BoolVar(&o.stdio, "stdio", false, "run one session on stdin and stdout")
	cmd.Flags().StringVar(&o.socket, "socket", "", "run a session for each connection to the Unix socket `PATH`, which is created")
	cmdutil.FlagSection(cmd.Flags(), cmdutil.ServiceSection, func(f *pflag.FlagSet) {
		o.api.register(f)
		o.work.register(f)
	})
	cmdutil.FlagSection(cmd.Flags(), cmdutil.SessionSection, o.RegisterServe)
	o.Flags.Register(cmd.Flags(), setup.SessionFlags)
	cmd.AddCommand(newTokenCmd(s), newWebhookCmd(s))
	return cmd
}

// run finds out what kind of service is wanted.
func (o *options) run(cmd *cobra.Command) error {
	local := o.stdio || o.socket != ""
	if err := refuse(cmd.Flags(), local); err != nil {
		return err
	}
	switch {
	case o.stdio && o.socket != "":
		return cmdutil.Usagef("choose how programs connect: --stdio, or --socket PATH")
	case local:
		return o.Serve(cmd.Context(), o.socket)
	}
	if err := o.Check(); err != nil {
		return err
	}
	return cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error { return o.serve(ctx) })
}

// refuse finds flags of the other kind of service.
func refuse(flags *pflag.FlagSet, local bool) (err error) {
	others := []string{"resume", "continue", "fork", "ephemeral"}
	hint := "use it with --stdio or --socket"
	if local {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		(&apiOptions{}).register(set)
		(&workOptions{}).register(set)
		others, hint = nil, "leave out --stdio and --socket"
		set.VisitAll(func(f *pflag.Flag) { others = append(others, f.Name) })
	}
	others = append(others, map[bool][]string{false: {"cd", "env", "add-dir"}}[local]...)
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case err != nil || !slices.Contains(others, f.Name):
		case !local && slices.Contains([]string{"cd", "env", "add-dir"}, f.Name):
			err = cmdutil.Usagef("--%s: the sessions of a service say where they work; to let them use a directory: --allow-dir DIR", f.Name)
		default:
			err = cmdutil.Usagef("--%s: %s", f.Name, hint)
		}
	})
	return err
}

// NewWorkerCmd returns agent worker.
func NewWorkerCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{Options: run.NewOptions(s)}
	cmd := &cobra.Command{
		Use:   "worker [--nats URL] [flags]",
		Short: "Run sessions of a service on this machine, too",
		Long: "Run sessions of the service whose machines share the NATS servers at URL, as agent serve --nats does, but without\n" +
			"its API: see docs/service.md. If this machine fails, another one continues its sessions.",
		Example: "  agent worker --nats nats://nats.example:4222 --creds agent.creds --sessions 16",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.work.nats.URL == "" && s.Env(natsVariable) == "" {
				return cmdutil.Usagef("--nats is missing, or %s: the URL of the NATS servers that agent serve --nats uses", natsVariable)
			}
			if err := refuse(cmd.Flags(), false); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			return cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error { return o.worker(ctx) })
		},
	}
	cmdutil.FlagSection(cmd.Flags(), cmdutil.ServiceSection, o.work.register)
	o.Flags.Register(cmd.Flags(), setup.SessionFlags)
	return cmd
}
