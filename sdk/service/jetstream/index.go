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

// List implements [service.Engine].
func (d *DB) List(ctx context.Context, tenant, before string, limit int) ([]service.Session, error) {
	if err := store.CheckID(tenant); err != nil {
		return nil, fmt.Errorf("tenant: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := d.index.Watch(ctx, tenant+".*", jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("sessions of %s: %w", tenant, err)
	}
	defer func() { _ = w.Stop() }()
	var list []service.Session
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case e, ok := <-w.Updates():
			if !ok {
				return nil, fmt.Errorf("sessions of %s: the connection ended", tenant)
			}
			if e == nil { // the end
				slices.SortFunc(list, func(a, b service.Session) int { return strings.Compare(b.ID, a.ID) })
				return list[:min(limit, len(list))], nil
			}
			if id := strings.TrimPrefix(e.Key(), tenant+"."); before != "" && id >= before {
				continue
			}
			s, err := entry(e)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
}
