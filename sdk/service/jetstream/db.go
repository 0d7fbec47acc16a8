package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
)

// Options are the settings of a [DB]. All that share the sessions need the same.
type Options struct {
	Name     string // of the stream and the object store, and the first token of subjects; empty = "agent"
	Replicas int    // servers that have each record, an odd number; 0 = as it is, at first 1
	TempDir  string // for outputs while they are written and read; empty = os.TempDir()
	// Lease is how long a worker that fell silent keeps a session; 0 = 30 s.
	Lease time.Duration
}

// DB has the sessions of a service. It is safe for concurrent use, and ends with its
// connection.
type DB struct {
	opts    Options
	nc      *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	objects jetstream.ObjectStore
	heads   jetstream.KeyValue // the newest record of each session when it was last synced
	index   jetstream.KeyValue // the sessions
	values  jetstream.KeyValue // of tenants
	inbox   jetstream.Stream   // the commands, which say what sessions have work
	work    jetstream.Consumer // of one item for each session that has work
	hooks   jetstream.Consumer // the same for webhooks
}

var _ service.Engine = (*DB)(nil)

// Open connects to the sessions of a NATS system, and creates what is missing there:
// streams, an object store, and buckets.
func Open(ctx context.Context, nc *nats.Conn, o Options) (*DB, error) {
	o.Name, o.Lease = cmp.Or(o.Name, "agent"), cmp.Or(o.Lease, 30*time.Second)
	if err := store.CheckID(o.Name); err != nil {
		return nil, fmt.Errorf("name of the stream: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	d := &DB{opts: o, nc: nc, js: js}
	d.stream, err = d.openStream(ctx, jetstream.StreamConfig{
		Name: o.Name + "-sessions", Subjects: []string{o.Name + ".*.session.>"},
		DenyDelete: true, // of single records: a session is deleted whole
	})
	if err != nil {
		return nil, err
	}
	if err := d.openBuckets(ctx); err != nil {
		return nil, err
	}
	return d, d.openQueue(ctx)
}

// openBuckets opens the object store and the buckets, which are streams with a prefix.
func (d *DB) openBuckets(ctx context.Context) error {
	name := d.opts.Name + "-objects"
	n, err := d.replicas(ctx, "OBJ_"+name)
	if err == nil {
		d.objects, err = d.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, Storage: jetstream.FileStorage, Replicas: n})
	}
	if err != nil {
		return fmt.Errorf("object store %s: %w", name, err)
	}
	for name, bucket := range map[string]*jetstream.KeyValue{"-heads": &d.heads, "-index": &d.index, "-values": &d.values} {
		name = d.opts.Name + name
		n, err := d.replicas(ctx, "KV_"+name)
		if err == nil {
			*bucket, err = d.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Storage: jetstream.FileStorage, Replicas: n})
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return nil
}

// replicas returns how many servers are to have each record of a stream: unless told,
// that is not changed.
func (d *DB) replicas(ctx context.Context, stream string) (int, error) {
	if d.opts.Replicas > 0 {
		return d.opts.Replicas, nil
	}
	s, err := d.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().Config.Replicas, nil
}

func (d *DB) openStream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	n, err := d.replicas(ctx, c.Name)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", c.Name, err)
	}
	c.Storage, c.Replicas = jetstream.FileStorage, n
	s, err := d.js.CreateOrUpdateStream(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", c.Name, err)
	}
	return s, nil
}

// session identifies a session of a tenant. The id of a subagent is a path.
type session struct{ tenant, id string }

func (s session) check() error {
	if err := store.CheckID(s.tenant); err != nil {
		return fmt.Errorf("tenant: %w", err)
	}
	id, child, nested := strings.Cut(s.id, "/")
	if nested {
		if err := store.CheckID(child); err != nil {
			return fmt.Errorf("subagent: %w", err)
		}
	}
	return store.CheckID(id)
}

func (s session) String() string { return s.tenant + "/" + s.id }

// object is the name of one of the session's objects.
func (s session) object(name string) string { return s.tenant + "/" + s.id + "/" + name }

// key is the session's key in buckets.
func (s session) key() string { return s.tenant + "." + strings.ReplaceAll(s.id, "/", ".") }

// subject is the subject of what is of a session.
func (d *DB) subjectOf(s session, what string) string {
	return d.opts.Name + "." + s.tenant + "." + what + "." + strings.ReplaceAll(s.id, "/", ".")
}

func (d *DB) subject(s session) string { return d.subjectOf(s, "session") }

// Delete implements [service.Engine].
func (d *DB) Delete(ctx context.Context, tenant, id string) error {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return err
	}
	if err := d.purge(ctx, s); err != nil {
		return fmt.Errorf("delete session %s: %w", s, err)
	}
	list, err := d.objects.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return fmt.Errorf("delete outputs of session %s: %w", s, err)
	}
	for _, o := range list {
		if strings.HasPrefix(o.Name, s.object("")) {
			if err := d.objects.Delete(ctx, o.Name); err != nil {
				return fmt.Errorf("delete outputs of session %s: %w", s, err)
			}
		}
	}
	return nil
}

// purge deletes a session and its subagents, but for their objects. What leads to the
// session goes last, so that a deletion that failed can be repeated.
func (d *DB) purge(ctx context.Context, s session) error {
	if err := d.inbox.Purge(ctx, jetstream.WithPurgeSubject(d.subjectOf(s, "inbox"))); err != nil {
		return err
	}
	for _, subject := range []string{d.subject(s), d.subject(s) + ".>"} {
		if err := d.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
	}
	children, err := d.heads.ListKeysFiltered(ctx, s.key()+".>")
	if err != nil {
		return err
	}
	for key := range children.Keys() {
		if err := d.heads.Purge(ctx, key); err != nil {
			return err
		}
	}
	if err := d.heads.Purge(ctx, s.key()); err != nil {
		return err
	}
	return d.index.Purge(ctx, s.key())
}
