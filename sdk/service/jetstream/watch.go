package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// watchBuffer is the number of deltas that may wait for a reader. More are dropped.
const watchBuffer = 1024

// headerAfter is the number of the event in the log that a delta follows.
const headerAfter = "Agent-After"

// Show implements [service.Engine].
func (d *DB) Show(_ context.Context, tenant, id string, delta event.Event, after event.Seq) error {
	s := session{tenant, id}
	if err := s.check(); err != nil {
		return err
	}
	data, err := json.Marshal(delta)
	if err != nil {
		return fmt.Errorf("session %s: %w", s, err)
	}
	m := nats.NewMsg(d.subjectOf(s, "live"))
	m.Data = data
	m.Header.Set(headerAfter, strconv.FormatUint(uint64(after), 10))
	return d.nc.PublishMsg(m)
}

// Watch implements [service.Engine]. Cursors are sequences of the stream.
func (d *DB) Watch(ctx context.Context, tenant, id string, cursor uint64) iter.Seq2[service.Record, error] {
	return func(yield func(service.Record, error) bool) {
		s := session{tenant, id}
		if err := s.check(); err != nil {
			yield(service.Record{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := d.watch(ctx, s, cursor, func(r service.Record) bool { return yield(r, nil) }); err != nil {
			yield(service.Record{}, fmt.Errorf("watch session %s: %w", s, err))
		}
	}
}

// watch calls show with records and deltas until it returns false or ctx is done.
func (d *DB) watch(ctx context.Context, s session, cursor uint64, show func(service.Record) bool) error {
	live := make(chan *nats.Msg, watchBuffer)
	sub, err := d.nc.ChanSubscribe(d.subjectOf(s, "live"), live)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	deltas := waiting{last: d.numberAt(ctx, s, cursor)}
	records, stop, err := d.follow(ctx, s, cursor)
	if err != nil {
		return err
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-records:
			r, err := d.record(ctx, m)
			if err != nil {
				return err
			}
			if r.Event.Body == nil {
				continue
			}
			if deltas.last = r.Event.Seq; !show(r) {
				return nil
			}
		case m := <-live:
			if err := deltas.add(m); err != nil {
				return err
			}
		}
		for e, ok := deltas.next(); ok; e, ok = deltas.next() {
			if !show(service.Record{Event: e}) {
				return nil
			}
		}
	}
}

// numberAt returns the number of the event at a cursor, 0 if it is not known.
func (d *DB) numberAt(ctx context.Context, s session, cursor uint64) event.Seq {
	if cursor == 0 {
		return 0
	}
	m, err := d.stream.GetMsg(ctx, cursor)
	if err != nil || m.Subject != d.subject(s) || m.Header.Get(headerObject) != "" {
		return 0
	}
	var e event.Event
	if json.Unmarshal(m.Data, &e) != nil {
		return 0
	}
	return e.Seq
}

// waiting are deltas that are ahead of the records that they follow.
type waiting struct {
	last event.Seq // the newest record
	list []delta
}

type delta struct {
	event event.Event
	after event.Seq
}

func (w *waiting) add(m *nats.Msg) error {
	after, err := strconv.ParseUint(m.Header.Get(headerAfter), 10, 64)
	d := delta{after: event.Seq(after)}
	if err == nil {
		err = json.Unmarshal(m.Data, &d.event)
	}
	if w.list = append(w.list, d); len(w.list) > watchBuffer {
		w.list = w.list[1:]
	}
	return err
}

// next returns the next delta whose turn it is. One that belongs to what was shown
// already is left out.
func (w *waiting) next() (event.Event, bool) {
	for len(w.list) > 0 && w.list[0].after <= w.last {
		d := w.list[0]
		if w.list = w.list[1:]; d.event.Seq > w.last {
			return d.event, true
		}
	}
	return event.Event{}, false
}

// follow delivers the records behind a cursor, until stop is called. The consumer
// behind it is replaced when it is lost.
func (d *DB) follow(ctx context.Context, s session, cursor uint64) (records <-chan jetstream.Msg, stop func(), err error) {
	c, err := d.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{d.subject(s)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: cursor + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	list := make(chan jetstream.Msg)
	reading, err := c.Consume(func(m jetstream.Msg) {
		select {
		case list <- m:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return list, reading.Stop, nil
}

// record returns a record of the stream; that of a take-over has no event.
func (d *DB) record(ctx context.Context, m jetstream.Msg) (service.Record, error) {
	meta, err := m.Metadata()
	if err != nil || m.Headers().Get(headerOwner) != "" {
		return service.Record{}, err
	}
	data, err := d.content(ctx, m)
	if err != nil {
		return service.Record{}, err
	}
	r := service.Record{Cursor: meta.Sequence.Stream}
	if err := json.Unmarshal(data, &r.Event); err != nil {
		return r, errors.Join(fmt.Errorf("record %d of the stream", r.Cursor), err)
	}
	return r, nil
}
