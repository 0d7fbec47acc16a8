package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// workOptions are what all machines of a service need.
type workOptions struct {
	data      string // directory; empty = below the agent's own
	dirs      string // of the sessions
	allowed   []string
	nats      jetstream.ConnectOptions
	replicas  int
	places    int
	most      string // permission mode
	noSandbox bool
	nearHooks bool
	quotas    quotaFlag
}

func (o *workOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.data, "data", "", "keep the sessions and tokens in `DIR` (default ~/.agent/service)")
	f.StringVar(&o.dirs, "work-dir", "", "keep the directories that sessions work in below `DIR` (default ~/.local/state/agent/work)")
	cmdutil.RepeatVar(f, &o.allowed, "allow-dir", "let sessions that ask for it work in `DIR` and below, instead of a separate directory")
	f.StringVar(&o.nats.URL, "nats", "", "keep the sessions in the NATS servers at `URL`, with JetStream (default: "+natsVariable+")")
	f.StringVar(&o.nats.Creds, "creds", "", "with --nats: sign in with the credentials in `FILE`")
	f.StringVar(&o.nats.CA, "nats-ca", "", "with --nats: use TLS, and trust the servers whose certificates those in `FILE` signed")
	f.IntVar(&o.replicas, "replicas", 0, "with --nats: keep each record on `N` servers, an odd number (default: as it is, at first 1)")
	f.IntVar(&o.places, "sessions", 8, "run up to `N` sessions at the same time")
	f.StringVar(&o.most, "max-permission-mode", string(permissions.ModeWorkspace), "refuse sessions with a permission `MODE` that allows more")
	f.Var(&o.quotas, "quota", "bound tenants with `QUOTA`: [TENANT:]NAME=N,… of sessions, running, tokens, cost; repeatable (default: service.quotas of the settings)")
	f.BoolVar(&o.nearHooks, "private-webhooks", false, "let webhooks reach this machine and private networks, also by http")
	f.BoolVar(&o.noSandbox, "no-sandbox", false, "run commands of sessions without the sandbox if the settings say so, or if it does not work here")
}

// natsVariable is the environment variable with the address for --nats: on a command line,
// every user of the machine would see a password in it.
const natsVariable = "AGENT_NATS_URL"

// check finds wrong values, and fills in directories.
func (o *workOptions) check(s *cmdutil.IO) error {
	o.nats.URL = cmp.Or(o.nats.URL, s.Env(natsVariable))
	switch {
	case o.nats.URL == "" && (o.nats.Creds != "" || o.nats.CA != "" || o.replicas != 0):
		return cmdutil.Usagef("--creds, --nats-ca and --replicas: use them with --nats URL, or " + natsVariable)
	case o.replicas < 0 || o.replicas > 5 || o.replicas != 0 && o.replicas%2 == 0:
		return cmdutil.Usagef("--replicas %d: use 1, 3 or 5", o.replicas)
	case o.places < 1:
		return cmdutil.Usagef("--sessions %d: use 1 or more", o.places)
	}
	if _, err := permissions.ParseMode(o.most); err != nil {
		return cmdutil.Usagef("--max-permission-mode: %w", err)
	}
	home, err := s.AgentHome()
	if err != nil {
		return err
	}
	if o.data = cmp.Or(o.data, remote.ServiceDir(home)); o.dirs == "" {
		state := s.Env("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			state = filepath.Join(cmdutil.UserHome(), ".local", "state")
		}
		o.dirs = filepath.Join(state, "agent", "work")
	}
	for _, dir := range []*string{&o.data, &o.dirs} {
		*dir = s.WorkDir(*dir)
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return err
		}
	}
	for i, dir := range o.allowed {
		real := s.WorkDir(dir)
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return cmdutil.Usagef("--allow-dir %s: not a readable directory", dir)
		}
		o.allowed[i] = real
	}
	if under, err := filepath.Rel(home, o.dirs); err == nil && under != ".." && !strings.HasPrefix(under, ".."+string(filepath.Separator)) {
		return cmdutil.Usagef("--work-dir %s: sessions cannot work in the agent's own directory, %s, whose files are protected", o.dirs, home)
	}
	return nil
}

// ownLease is how long after the death of the only worker the next one continues
// its sessions, and how long a process may be stopped without losing them.
const ownLease = 10 * time.Second

// machine is this machine in a service. The caller closes it.
type machine struct {
	db     *jetstream.DB
	worker *service.Worker
	quotas *service.Quotas
	root   *workspace.Root
	close  func()
}

// open locks the data, opens the engine, and makes the worker.
func (o *options) open(ctx context.Context, log *slog.Logger) (*machine, error) {
	var undo []func()
	m := &machine{close: func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}}
	err := o.openEngine(ctx, m, func(f func()) { undo = append(undo, f) })
	if err == nil {
		m.root, err = workspace.Open(workspace.Options{Dir: o.work.dirs, Allow: o.work.allowed})
	}
	if err == nil {
		m.quotas = service.NewQuotas(m.db, o.work.quotas)
		m.worker, err = service.NewWorker(service.WorkerOptions{
			Engine: m.db, Quotas: m.quotas, Open: o.openSession, Places: o.work.places, Workspaces: m.root, PrivateWebhooks: o.work.nearHooks, Logger: log,
		})
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (o *options) openEngine(ctx context.Context, m *machine, undo func(func())) error {
	tmp := filepath.Join(o.work.data, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return err
	}
	opts := jetstream.Options{Replicas: o.work.replicas, TempDir: tmp}
	if o.work.nats.URL != "" {
		nc, err := jetstream.Connect(o.work.nats)
		if err != nil {
			return err
		}
		undo(nc.Close)
		m.db, err = jetstream.Open(ctx, nc, opts)
		return err
	}
	opts.Lease = ownLease
	server, err := jetstream.Serve(jetstream.ServeOptions{Dir: filepath.Join(o.work.data, "jetstream")})
	if err != nil {
		return err
	}
	undo(server.Close)
	nc, err := server.Connect()
	if err != nil {
		return err
	}
	undo(nc.Close)
	m.db, err = jetstream.Open(ctx, nc, opts)
	return err
}

// lock makes this process the only one that serves from the data.
func lock(dir string) (*flock.Flock, error) {
	l := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	held, err := l.TryLock()
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, fmt.Errorf("another agent serve uses %s: end that one, or use --data DIR", dir)
	}
	return l, nil
}

// worker runs sessions until ctx is done.
func (o *options) worker(ctx context.Context) error {
	log, err := o.ready(ctx)
	if err != nil {
		return err
	}
	m, err := o.open(ctx, log)
	if err != nil {
		return err
	}
	defer m.close()
	fmt.Fprintf(o.Err, "agent: running sessions of %s\n", jetstream.Redact(o.work.nats.URL))
	m.worker.Run(ctx)
	return nil
}

// ready checks the options, the settings and the sandbox.
func (o *options) ready(ctx context.Context) (*slog.Logger, error) {
	if err := o.work.check(o.IO); err != nil {
		return nil, err
	}
	if err := o.checkSessions(ctx); err != nil {
		return nil, err
	}
	log := o.Logger(o.IO)
	if log == nil {
		log = slog.New(slog.NewTextHandler(o.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return log, nil
}
