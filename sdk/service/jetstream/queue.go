package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
)

// The commands say which sessions have work. An item of work only makes one worker
// have each session: one that is lost is made again from the commands, and one too
// many finds nothing to do.

// takePatience is how long a worker waits for work before it asks again.
const takePatience = time.Second

// The defaults of the server, 1000 and 512, are for all workers together.
const (
	maxLeases  = 1 << 20
	maxWaiting = 1 << 14
)

// tooManyMessages is the server's error for an item of a session that has one.
const tooManyMessages = "maximum messages per subject exceeded"

func (d *DB) openQueue(ctx context.Context) (err error) {
	name := d.opts.Name
	if d.inbox, err = d.openStream(ctx, jetstream.StreamConfig{Name: name + "-inbox", Subjects: []string{name + ".*.inbox.*"}}); err != nil {
		return err
	}
	work, err := d.openStream(ctx, jetstream.StreamConfig{
		Name: name + "-work", Subjects: []string{name + ".*.work.*", name + ".*.hook.*"}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name, what string
		consumer   *jetstream.Consumer
	}{{"workers", "work", &d.work}, {"webhooks", "hook", &d.hooks}} {
		*c.consumer, err = work.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: c.name, FilterSubject: name + ".*." + c.what + ".*",
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: d.opts.Lease, MaxDeliver: -1, MaxAckPending: maxLeases, MaxWaiting: maxWaiting,
		})
		if err != nil {
			return fmt.Errorf("consumer %s of stream %s-work: %w", c.name, name, err)
		}
	}
	return nil
}

// item is the subject of the item of work for a session or a webhook.
func (d *DB) item(s session) string {
	if service.IsWebhook(s.id) {
		return d.subjectOf(s, "hook")
	}
	return d.subjectOf(s, "work")
}

// Send implements [service.Engine].
func (d *DB) Send(ctx context.Context, tenant, id string, c service.Command) error {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return err
	}
	if err := store.CheckID(c.ID); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("session %s: command %s: %w", s, c.ID, err)
	}
	if limit := int(d.nc.MaxPayload()) - roomForHeaders; len(data) > limit {
		return fmt.Errorf("session %s: command %s has %d bytes, at most %d are possible", s, c.ID, len(data), limit)
	}
	if _, err := d.js.Publish(ctx, d.subjectOf(s, "inbox"), data, jetstream.WithMsgID(s.String()+"/"+c.ID)); err != nil {
		return fmt.Errorf("session %s: send command %s: %w", s, c.ID, err)
	}
	// Who is told by the command itself may look for it before it is stored.
	if err := d.nc.Publish(d.subjectOf(s, "sent"), nil); err != nil {
		return fmt.Errorf("session %s: tell of command %s: %w", s, c.ID, err)
	}
	return d.enqueue(ctx, d.item(s))
}

// enqueue adds an item of work, unless the session has one.
func (d *DB) enqueue(ctx context.Context, subject string) error {
	_, err := d.js.Publish(ctx, subject, nil)
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && strings.Contains(api.Description, tooManyMessages) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("add %s to the work: %w", subject, err)
	}
	return nil
}

// Commands implements [service.Engine].
func (d *DB) Commands(ctx context.Context, tenant, id string) (list []service.Command, err error) {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return nil, err
	}
	for next := uint64(1); ; {
		m, err := d.inbox.GetMsg(ctx, next, jetstream.WithGetMsgSubject(d.subjectOf(s, "inbox")))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return list, nil
		}
		var c service.Command
		if err == nil {
			err = json.Unmarshal(m.Data, &c)
		}
		if err != nil {
			return nil, fmt.Errorf("commands of session %s: %w", s, err)
		}
		c.Number, next = m.Sequence, m.Sequence+1
		list = append(list, c)
	}
}

// Remove implements [service.Engine].
func (d *DB) Remove(ctx context.Context, tenant, id string, number uint64) error {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return err
	}
	if err := d.inbox.Purge(ctx, jetstream.WithPurgeSubject(d.subjectOf(s, "inbox")), jetstream.WithPurgeSequence(number+1)); err != nil {
		return fmt.Errorf("remove commands of session %s: %w", s, err)
	}
	return nil
}

// Wake implements [service.Engine].
func (d *DB) Wake(ctx context.Context) error {
	info, err := d.inbox.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return fmt.Errorf("sessions that have commands: %w", err)
	}
	for subject := range info.State.Subjects {
		if err := d.enqueue(ctx, d.item(sessionOf(subject))); err != nil {
			return err
		}
	}
	return nil
}

// presentWithin is how long a process has to say that it is there. Without any, the
// server says so at once.
const presentWithin = time.Second

func (d *DB) placeSubject(place string) (string, error) {
	if err := store.CheckID(place); err != nil {
		return "", fmt.Errorf("place: %w", err)
	}
	return d.opts.Name + ".place." + place, nil
}

// Present implements [service.Engine].
func (d *DB) Present(place string) (leave func(), err error) {
	subject, err := d.placeSubject(place)
	if err != nil {
		return nil, err
	}
	sub, err := d.nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(nil) })
	if err != nil {
		return nil, fmt.Errorf("place %s: %w", place, err)
	}
	return func() { _ = sub.Unsubscribe() }, d.nc.Flush()
}

// IsPresent implements [service.Engine].
func (d *DB) IsPresent(ctx context.Context, place string) (bool, error) {
	subject, err := d.placeSubject(place)
	if err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, presentWithin)
	defer cancel()
	_, err = d.nc.RequestWithContext(within, subject, nil)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return false, nil
	}
	return false, fmt.Errorf("place %s: %w", place, err)
}

// Take implements [service.Engine].
func (d *DB) Take(ctx context.Context) (service.Lease, error) { return d.take(ctx, d.work) }

// TakeWebhook implements [service.Engine].
func (d *DB) TakeWebhook(ctx context.Context) (service.Lease, error) { return d.take(ctx, d.hooks) }

func (d *DB) take(ctx context.Context, from jetstream.Consumer) (service.Lease, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		batch, err := from.Fetch(1, jetstream.FetchMaxWait(takePatience))
		if err != nil {
			return nil, fmt.Errorf("take work: %w", err)
		}
		// Not given up early: the server may have sent an item already.
		for m := range batch.Messages() {
			if ctx.Err() != nil {
				_ = m.Nak()
				return nil, context.Cause(ctx)
			}
			return d.lease(ctx, m)
		}
		if err := batch.Error(); err != nil && !temporary(err) {
			return nil, fmt.Errorf("take work: %w", err)
		}
	}
}

// lease is a session that this process has.
type lease struct {
	db      *DB
	session session
	item    jetstream.Msg
	tries   int
	sent    chan struct{}
	close   func()
}

// sessionOf returns the session of a subject of an item or a command: name, tenant, what,
// session.
func sessionOf(subject string) session {
	token := strings.Split(subject, ".")
	return session{token[1], token[3]}
}

// lease returns the lease of an item's session, from now on.
func (d *DB) lease(ctx context.Context, m jetstream.Msg) (service.Lease, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	l := &lease{db: d, session: sessionOf(m.Subject()), item: m, tries: int(meta.NumDelivered) - 1, sent: make(chan struct{}, 1)}
	sub, err := d.nc.Subscribe(d.subjectOf(l.session, "sent"), func(*nats.Msg) {
		select {
		case l.sent <- struct{}{}:
		default:
		}
	})
	if err == nil {
		l.close = sync.OnceFunc(func() { _ = sub.Unsubscribe() })
		if err = l.Renew(ctx); err == nil {
			return l, nil
		}
		l.close()
	}
	return nil, fmt.Errorf("take session %s: %w", l.session, err)
}

// Session implements [service.Lease].
func (l *lease) Session() (tenant, id string) { return l.session.tenant, l.session.id }

// Tries implements [service.Lease].
func (l *lease) Tries() int { return l.tries }

// Term implements [service.Lease].
func (l *lease) Term() time.Duration { return l.db.opts.Lease }

// Sent implements [service.Lease].
func (l *lease) Sent() <-chan struct{} { return l.sent }

// Close implements [service.Lease].
func (l *lease) Close() { l.close() }

// Renew implements [service.Lease]. It returns when the server knows.
func (l *lease) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.db.opts.Lease/4)
	defer cancel()
	_, err := l.db.nc.RequestWithContext(ctx, l.item.Reply(), []byte("+WPI"))
	return err
}

// Done implements [service.Lease]. A command that was sent meanwhile found the item that
// is removed here.
func (l *lease) Done(ctx context.Context) error {
	if err := l.item.DoubleAck(ctx); err != nil {
		return fmt.Errorf("end the work on session %s: %w", l.session, err)
	}
	list, err := l.db.Commands(ctx, l.session.tenant, l.session.id)
	if err != nil || len(list) == 0 {
		return err
	}
	return l.db.enqueue(ctx, l.db.item(l.session))
}

// Release implements [service.Lease].
func (l *lease) Release(_ context.Context, after time.Duration) error {
	if err := l.item.NakWithDelay(after); err != nil {
		return fmt.Errorf("release session %s: %w", l.session, err)
	}
	return l.db.nc.FlushTimeout(publishTimeout) // the process may end now
}
