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
	Replicas int    // servers that have each record, an odd number; 0 = as it is, at first 1. Another number than it is is an error
	TempDir  string // for outputs while they are written and read; empty = os.TempDir()
	// Lease is how long a worker that fell silent keeps a session; 0 = 30 s.
	Lease time.Duration
}

// DB has the sessions of a service. It is safe for concurrent use, and ends with its
// connection.
type DB struct {
	opts    Options
	copies  int // replicas of new streams
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
	d := &DB{opts: o, copies: o.Replicas, nc: nc, js: js}
	d.stream, err = d.openStream(ctx, jetstream.StreamConfig{
		Name: o.Name + "-sessions", Subjects: []string{o.Name + ".*.session.>"},
		Compression: jetstream.S2Compression,
		DenyDelete:  true, // of single records: a session is deleted whole
	})
	if err != nil {
		return nil, err
	}
	d.copies = d.stream.CachedInfo().Config.Replicas
	if err := d.openBuckets(ctx); err != nil {
		return nil, err
	}
	return d, d.openQueue(ctx)
}

// openBuckets opens the object store and the buckets, which are streams with a prefix.
func (d *DB) openBuckets(ctx context.Context) error {
	objects := jetstream.ObjectStoreConfig{Bucket: d.opts.Name + "-objects", Storage: jetstream.FileStorage}
	err := d.open(ctx, "OBJ_"+objects.Bucket, func(n int, create bool) (err error) {
		if objects.Replicas = n; create {
			d.objects, err = d.js.CreateObjectStore(ctx, objects)
		} else {
			d.objects, err = d.js.UpdateObjectStore(ctx, objects)
		}
		return err
	})
	if err != nil {
		return err
	}
	for name, bucket := range map[string]*jetstream.KeyValue{"-heads": &d.heads, "-index": &d.index, "-values": &d.values} {
		c := jetstream.KeyValueConfig{Bucket: d.opts.Name + name, Storage: jetstream.FileStorage}
		err := d.open(ctx, "KV_"+c.Bucket, func(n int, create bool) (err error) {
			if c.Replicas = n; create {
				*bucket, err = d.js.CreateKeyValue(ctx, c)
			} else {
				*bucket, err = d.js.UpdateKeyValue(ctx, c)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) openStream(ctx context.Context, c jetstream.StreamConfig) (s jetstream.Stream, err error) {
	c.Storage = jetstream.FileStorage
	err = d.open(ctx, c.Name, func(n int, create bool) (err error) {
		if c.Replicas = n; create {
			s, err = d.js.CreateStream(ctx, c)
		} else {
			s, err = d.js.UpdateStream(ctx, c)
		}
		return err
	})
	return s, err
}

// open creates or updates a stream with a number of replicas: that which it has, or else
// that of the first stream. What another process sets up at the same time is not changed.
func (d *DB) open(ctx context.Context, stream string, set func(replicas int, create bool) error) error {
	for {
		n, err := d.replicas(ctx, stream)
		if err == nil {
			err = set(cmp.Or(n, d.copies, 1), n == 0)
		}
		switch {
		case err == nil:
			return nil
		case n == 0 && (errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, jetstream.ErrBucketExists)) && ctx.Err() == nil:
			continue
		}
		return fmt.Errorf("stream %s: %w", stream, err)
	}
}

// replicas returns how many servers have each record of a stream, 0 if it is not there.
func (d *DB) replicas(ctx context.Context, stream string) (int, error) {
	s, err := d.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, want := s.CachedInfo().Config.Replicas, d.opts.Replicas
	if want > 0 && want != n {
		return 0, fmt.Errorf("it has %d replicas, which whoever came first has set, not %d: leave replicas out, or change it first: nats stream edit %s --replicas %d", n, want, stream, want)
	}
	return n, nil
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
