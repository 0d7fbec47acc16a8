package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// watchBuffer is the number of deltas that may wait for a reader. More are dropped.
const watchBuffer = 1024

// unusedFor is how long the server keeps a consumer whose reader is gone.
const unusedFor = 30 * time.Second

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

// A cursor is the sequence of a record in the stream, and the place of the event in it.
func cursorOf(sequence uint64, place int) uint64 {
	return sequence*service.MaxTogether + uint64(place)
}

func ofCursor(cursor uint64) (sequence uint64, place int) {
	return cursor / service.MaxTogether, int(cursor % service.MaxTogether)
}

// Watch implements [service.Engine].
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
			list, err := d.record(ctx, m)
			if err != nil {
				return err
			}
			for _, r := range list {
				if r.Cursor <= cursor { // those before it in its record
					continue
				}
				if deltas.last = r.Event.Seq; !show(r) {
					return nil
				}
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
	sequence, place := ofCursor(cursor)
	m, err := d.stream.GetMsg(ctx, sequence)
	if err != nil || m.Subject != d.subject(s) || m.Header.Get(headerObject) != "" {
		return 0
	}
	list, err := decode(m.Data)
	if err != nil || place >= len(list) {
		return 0
	}
	return list[place].Seq
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

// follow delivers the records from that of a cursor on, until stop is called. The consumer
// behind it is replaced when it is lost.
func (d *DB) follow(ctx context.Context, s session, cursor uint64) (records <-chan jetstream.Msg, stop func(), err error) {
	sequence, _ := ofCursor(cursor)
	c, end, err := d.consumer(ctx, s, max(1, sequence))
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
		end()
		return nil, nil, err
	}
	return list, func() { reading.Stop(); end() }, nil
}

// consumer creates a consumer of a session's records, from a sequence of the stream on.
// End removes it: the server would keep it for a while, and has room for so many.
func (d *DB) consumer(ctx context.Context, s session, from uint64) (c jetstream.Consumer, end func(), err error) {
	c, err = d.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{d.subject(s)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		InactiveThreshold: unusedFor,
	})
	if err != nil {
		return nil, nil, err
	}
	return c, func() {
		info := c.CachedInfo()
		if info == nil || !d.nc.IsConnected() {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
		defer cancel()
		_ = d.stream.DeleteConsumer(ctx, info.Name) // the server does it later
	}, nil
}

// record returns the events of a record of the stream; that of a take-over has none.
func (d *DB) record(ctx context.Context, m jetstream.Msg) (list []service.Record, err error) {
	meta, err := m.Metadata()
	if err != nil || m.Headers().Get(headerOwner) != "" {
		return nil, err
	}
	data, err := d.content(ctx, m)
	if err != nil {
		return nil, err
	}
	events, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("record %d of the stream: %w", meta.Sequence.Stream, err)
	}
	for i, e := range events {
		list = append(list, service.Record{Cursor: cursorOf(meta.Sequence.Stream, i), Event: e})
	}
	return list, nil
}
