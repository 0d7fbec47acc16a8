package jetstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// The headers of a record.
const (
	headerWriter = "Agent-Writer" // who wrote it
	headerHash   = "Agent-Hash"   // of the record before and the content, hex
	headerObject = "Agent-Object" // the object with the content, if that is too long for a message
	headerOwner  = "Agent-Owner"  // set on the record of a take-over, which has no content
)

const (
	roomForHeaders = 4 << 10 // bytes
	publishTimeout = 2 * time.Second
	retryPause     = 20 * time.Millisecond
	retryFor       = 30 * time.Second // while the cluster elects a leader, for instance
	replayPatience = 3 * time.Second  // for a record that is known to be there, before it is looked up
)

// ErrDamaged is the error of a replay at a record that was changed or is missing.
var ErrDamaged = errors.New("the session's log is damaged")

// sessionLog is the journal of one session. Its records have an event each, or a list of
// those that were appended together. It is safe for concurrent use.
type sessionLog struct {
	db      *DB
	session session
	writer  string

	mu     sync.Mutex
	last   uint64 // sequence in the stream of the newest record
	hash   []byte // of that record
	fenced bool
	synced uint64 // the newest record that is in the bucket of heads
	first  uint64 // the record of this take-over, if there were none before it
}

var _ service.Journal = (*sessionLog)(nil)

// Journal opens the journal of a tenant's session, new or not, and takes it over:
// from now on only this one can be written. Tenant and id consist of letters, digits,
// - and _; the id of a subagent is that of its session, a slash, and its own. The error is [ErrDamaged] if records at the log's end are missing.
func (d *DB) Journal(ctx context.Context, tenant, id string) (service.Journal, error) {
	j := &sessionLog{db: d, session: session{tenant, id}, writer: nuid.Next()}
	if err := j.session.check(); err != nil {
		return nil, err
	}
	end := time.Now().Add(retryFor)
	for {
		// The note comes first: the former owner may be writing.
		noted, err := j.noted(ctx)
		var newest head
		if err == nil {
			newest, err = j.newest(ctx)
		}
		if err == nil && newest.seq < noted {
			err = fmt.Errorf("the newest record of the stream is %d, it was %d: %w", newest.seq, noted, ErrDamaged)
		}
		if err == nil {
			j.last, j.hash, j.fenced = newest.seq, newest.hash, false
			err = j.publish(ctx, nil, nats.Header{headerOwner: {j.writer}})
		}
		if err == nil && newest.seq == 0 {
			j.first = j.last
		}
		switch {
		case err == nil:
			return j, nil
		// Another one took over in between, or the cluster has no leader yet.
		case !errors.Is(err, core.ErrFenced) && !temporary(err) || time.Now().After(end):
			return nil, fmt.Errorf("session %s: %w", j.session, err)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Append implements [core.Journal].
func (j *sessionLog) Append(ctx context.Context, e event.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("session %s: record %d: %w", j.session, e.Seq, err)
	}
	return j.append(ctx, e.Seq, data)
}

// AppendAll implements [service.Journal].
func (j *sessionLog) AppendAll(ctx context.Context, list []event.Event) error {
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1:
		return j.Append(ctx, list[0])
	case len(list) > service.MaxTogether:
		return fmt.Errorf("session %s: %d records together, at most %d are possible", j.session, len(list), service.MaxTogether)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("session %s: record %d and those behind it: %w", j.session, list[0].Seq, err)
	}
	return j.append(ctx, list[0].Seq, data)
}

// decode returns the events of a record.
func decode(data []byte) (list []event.Event, err error) {
	if bytes.HasPrefix(data, []byte("[")) {
		return list, json.Unmarshal(data, &list)
	}
	list = make([]event.Event, 1)
	return list, json.Unmarshal(data, &list[0])
}

// append appends the content of a record, whose first event has the number seq.
func (j *sessionLog) append(ctx context.Context, seq event.Seq, data []byte) error {
	header := nats.Header{}
	if limit := int(j.db.nc.MaxPayload()) - roomForHeaders; len(data) > limit {
		name := j.session.object("record-" + hex.EncodeToString(sum(nil, data)))
		if _, err := j.db.objects.PutBytes(ctx, name, data); err != nil {
			return fmt.Errorf("session %s: record %d: %w", j.session, seq, err)
		}
		header.Set(headerObject, name)
	}
	if err := j.publish(ctx, data, header); err != nil {
		return fmt.Errorf("session %s: append record %d: %w", j.session, seq, err)
	}
	return nil
}

// publish appends a record behind the last one. It repeats itself while the answer is
// unclear, until that is clear: a record that was stored the first time is known by
// its writer and its hash.
func (j *sessionLog) publish(ctx context.Context, data []byte, header nats.Header) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fenced {
		return core.ErrFenced
	}
	for end := time.Now().Add(retryFor); ; {
		hash := sum(j.hash, data)
		seq, err := j.try(ctx, data, hash, header)
		if err != nil && (refused(err) || temporary(err)) {
			seq, err = j.settle(ctx, hash)
		}
		switch {
		case err == nil && seq > 0:
			j.last, j.hash = seq, hash
			return nil
		case errors.Is(err, core.ErrFenced):
			j.fenced = true
			return err
		case err != nil && !temporary(err):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(end):
			return fmt.Errorf("no clear answer within %v: %w", retryFor, err)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// try sends a record once.
func (j *sessionLog) try(ctx context.Context, data, hash []byte, header nats.Header) (uint64, error) {
	m := &nats.Msg{Subject: j.db.subject(j.session), Header: nats.Header{
		headerWriter: {j.writer}, headerHash: {hex.EncodeToString(hash)},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(j.last, 10)},
	}}
	for name, values := range header {
		m.Header[name] = values
	}
	if header.Get(headerObject) == "" {
		m.Data = data
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := j.db.js.PublishMsg(ctx, m)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// settle finds out what became of a record whose append got an unclear answer: its
// sequence if it is stored, 0 to try again, or [core.ErrFenced].
func (j *sessionLog) settle(ctx context.Context, hash []byte) (uint64, error) {
	newest, err := j.newest(ctx)
	switch {
	case err != nil:
		return 0, err
	case newest.seq == 0 && j.last > 0:
		return 0, fmt.Errorf("the session was deleted: %w", core.ErrFenced)
	case newest.seq <= j.last:
		return 0, nil // not stored; an earlier append is still on its way through the cluster
	case newest.writer == j.writer && bytes.Equal(newest.hash, hash):
		return newest.seq, nil
	case newest.writer == j.writer: // an earlier append that we gave up on
		j.last, j.hash = newest.seq, newest.hash
		return 0, nil
	}
	return 0, core.ErrFenced
}

// head is the newest record of a session, the zero value before the first one.
type head struct {
	seq    uint64
	writer string
	hash   []byte
}

func (j *sessionLog) newest(ctx context.Context) (head, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	m, err := j.db.stream.GetLastMsgForSubject(ctx, j.db.subject(j.session))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return head{}, nil
	}
	if err != nil {
		return head{}, err
	}
	hash, err := hex.DecodeString(m.Header.Get(headerHash))
	if err != nil || len(hash) != sha256.Size {
		return head{}, fmt.Errorf("session %s: record %d of the stream has no valid hash: %w", j.session, m.Sequence, ErrDamaged)
	}
	return head{m.Sequence, m.Header.Get(headerWriter), hash}, nil
}

// Sync implements [core.Journal]. What was acknowledged is as durable as the server
// makes it; Sync notes the newest record, so that its loss is found.
func (j *sessionLog) Sync(ctx context.Context) error {
	j.mu.Lock()
	last, done := j.last, j.fenced || j.last == j.synced
	j.mu.Unlock()
	if done {
		return nil
	}
	if _, err := j.db.heads.PutString(ctx, j.session.key(), strconv.FormatUint(last, 10)); err != nil {
		return fmt.Errorf("session %s: sync: %w", j.session, err)
	}
	j.mu.Lock()
	j.synced = last
	j.mu.Unlock()
	return nil
}

// noted returns the record that was the newest at a sync, 0 if there was none.
func (j *sessionLog) noted(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	noted, err := j.db.heads.Get(ctx, j.session.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	seq, err := strconv.ParseUint(string(noted.Value()), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the note of the newest record is %.20q: %w", noted.Value(), ErrDamaged)
	}
	return seq, nil
}

// Replay implements [core.Journal]. It checks all records, also those up to after.
func (j *sessionLog) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		j.mu.Lock()
		until, empty := j.last, j.last == j.first
		j.mu.Unlock()
		if empty {
			return
		}
		err := j.records(ctx, until, func(data []byte) (bool, error) {
			list, err := decode(data)
			for _, e := range list {
				if err != nil || e.Seq > after && !yield(e, nil) {
					return false, err
				}
			}
			return true, err
		})
		if err != nil {
			yield(event.Event{}, fmt.Errorf("session %s: %w", j.session, err))
		}
	}
}

// records calls use with the content of each record up to a sequence of the stream,
// until it returns false.
func (j *sessionLog) records(ctx context.Context, until uint64, use func(data []byte) (bool, error)) error {
	r := reader{db: j.db, session: j.session}
	defer r.close()
	var hash []byte
	for {
		m, seq, err := r.next(ctx)
		if err != nil {
			return err
		}
		if seq > until {
			return fmt.Errorf("record %d of the stream is missing: %w", until, ErrDamaged)
		}
		data, err := j.db.content(ctx, m)
		if err != nil {
			return err
		}
		if hash = sum(hash, data); hex.EncodeToString(hash) != m.Headers().Get(headerHash) {
			return fmt.Errorf("record %d of the stream, or one before it, was changed or is missing: %w", seq, ErrDamaged)
		}
		if m.Headers().Get(headerOwner) == "" {
			if more, err := use(data); err != nil || !more {
				return err
			}
		}
		if seq == until {
			return nil
		}
	}
}

// reader reads the messages of a session in order.
type reader struct {
	db      *DB
	session session
	list    jetstream.MessagesContext // nil = begin behind last
	end     func()                    // removes the consumer of the list
	last    uint64                    // the newest message that was read
}

func (r *reader) close() {
	if r.list != nil {
		r.list.Stop()
		r.end()
		r.list = nil
	}
}

// next waits for the next message, which is there. A consumer may be lost with its
// server: then another one begins where it ended.
func (r *reader) next(ctx context.Context) (jetstream.Msg, uint64, error) {
	for end := time.Now().Add(retryFor); ; {
		m, err := r.try(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, 0, context.Cause(ctx)
		case err == nil:
			return m, r.last, nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, 0, fmt.Errorf("no record follows record %d of the stream: %w", r.last, ErrDamaged)
		case !temporary(err):
			return nil, 0, err
		case time.Now().After(end):
			return nil, 0, fmt.Errorf("the record behind record %d of the stream cannot be read: %w", r.last, err)
		}
		r.close()
		if err := pause(ctx); err != nil {
			return nil, 0, err
		}
	}
}

// try waits [replayPatience] for the next message. The error is
// [jetstream.ErrMsgNotFound] if the stream has no more.
func (r *reader) try(ctx context.Context) (jetstream.Msg, error) {
	stream, subject := r.db.stream, r.db.subject(r.session)
	waiting, cancel := context.WithTimeout(ctx, replayPatience)
	defer cancel()
	if r.list == nil {
		c, end, err := r.db.consumer(waiting, r.session, r.last+1)
		if err != nil {
			return nil, err
		}
		if r.list, err = c.Messages(); err != nil {
			end()
			return nil, err
		}
		r.end = end
	}
	m, err := r.list.Next(jetstream.NextContext(waiting))
	if errors.Is(err, context.DeadlineExceeded) {
		look, cancel := context.WithTimeout(ctx, replayPatience)
		defer cancel()
		if _, missing := stream.GetMsg(look, r.last+1, jetstream.WithGetMsgSubject(subject)); missing != nil {
			return nil, missing
		}
	}
	if err != nil {
		return nil, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	r.last = meta.Sequence.Stream
	return m, nil
}

// content returns the content of a record.
func (d *DB) content(ctx context.Context, m jetstream.Msg) ([]byte, error) {
	name := m.Headers().Get(headerObject)
	if name == "" {
		return m.Data(), nil
	}
	data, err := d.objects.GetBytes(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("object %s is missing: %w", name, ErrDamaged)
	}
	return data, err
}

// sum is the hash of a record's content behind the record with the hash before.
func sum(before, data []byte) []byte {
	h := sha256.New()
	h.Write(before)
	h.Write(data)
	return h.Sum(nil)
}

// refused reports whether the server says that another record is the last one.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// temporary reports whether the same request may succeed later. What became of it is
// unclear.
func temporary(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code >= 500 || refused(err)
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrDisconnected)
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(retryPause):
		return nil
	}
}
