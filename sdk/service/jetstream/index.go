package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
)

// Create implements [service.Engine].
func (d *DB) Create(ctx context.Context, s service.Session) error {
	of := session{s.Tenant, s.ID}
	if err := of.check(); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("session %s: %w", of, err)
	}
	if _, err := d.index.Create(ctx, of.key(), data); errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("session %s: %w", of, fs.ErrExist)
	} else if err != nil {
		return fmt.Errorf("create session %s: %w", of, err)
	}
	return nil
}

// Get implements [service.Engine].
func (d *DB) Get(ctx context.Context, tenant, id string) (service.Session, error) {
	of := session{tenant, id}
	if err := of.check(); err != nil {
		return service.Session{}, err
	}
	e, err := d.index.Get(ctx, of.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return service.Session{}, fmt.Errorf("session %s: %w", of, fs.ErrNotExist)
	}
	if err != nil {
		return service.Session{}, fmt.Errorf("session %s: %w", of, err)
	}
	return entry(e)
}

func entry(e jetstream.KeyValueEntry) (s service.Session, err error) {
	if err := json.Unmarshal(e.Value(), &s); err != nil {
		return s, fmt.Errorf("entry %s: %w", e.Key(), err)
	}
	s.Revision = e.Revision()
	return s, nil
}

// Update implements [service.Engine].
func (d *DB) Update(ctx context.Context, s *service.Session) error {
	of := session{s.Tenant, s.ID}
	if err := of.check(); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("session %s: %w", of, err)
	}
	revision, err := d.index.Update(ctx, of.key(), data, s.Revision)
	if err != nil && refused(err) {
		return fmt.Errorf("session %s: %w", of, core.ErrFenced)
	}
	if err != nil {
		return fmt.Errorf("update session %s: %w", of, err)
	}
	s.Revision = revision
	return nil
}

// List implements [service.Engine]. It reads the whole index of the tenant, or of all.
func (d *DB) List(ctx context.Context, f service.Filter) ([]service.Session, error) {
	pattern := "*.*"
	if f.Tenant != "" {
		if err := store.CheckID(f.Tenant); err != nil {
			return nil, fmt.Errorf("tenant: %w", err)
		}
		pattern = f.Tenant + ".*"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := d.index.Watch(ctx, pattern, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("sessions of %s: %w", pattern, err)
	}
	defer func() { _ = w.Stop() }()
	var list []service.Session
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case e, ok := <-w.Updates():
			if !ok {
				return nil, fmt.Errorf("sessions of %s: the connection ended", pattern)
			}
			if e == nil { // the end
				return first(list, f.Limit), nil
			}
			s, err := entry(e)
			if err != nil {
				return nil, err
			}
			if f.Matches(s) {
				list = append(list, s)
			}
		}
	}
}

// first returns the sessions with the highest IDs.
func first(list []service.Session, limit int) []service.Session {
	slices.SortFunc(list, func(a, b service.Session) int { return strings.Compare(b.ID, a.ID) })
	if limit > 0 && limit < len(list) {
		list = list[:limit]
	}
	return list
}

// Value implements [service.Engine].
func (d *DB) Value(ctx context.Context, tenant, name string) (data []byte, revision uint64, err error) {
	of := session{tenant, name}
	if err := of.check(); err != nil {
		return nil, 0, err
	}
	e, err := d.values.Get(ctx, of.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("value %s: %w", of, err)
	}
	return e.Value(), e.Revision(), nil
}

// SetValue implements [service.Engine].
func (d *DB) SetValue(ctx context.Context, tenant, name string, data []byte, revision uint64) error {
	of := session{tenant, name}
	if err := of.check(); err != nil {
		return err
	}
	_, err := d.values.Update(ctx, of.key(), data, revision)
	if err != nil && refused(err) {
		return fmt.Errorf("value %s: %w", of, core.ErrFenced)
	}
	if err != nil {
		return fmt.Errorf("set value %s: %w", of, err)
	}
	return nil
}
