package service

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// Schedule starts a new session whenever it is due. Times that passed while no worker
// was there are made up for once.
type Schedule struct {
	ID        string            `json:"id"`
	Cron      string            `json:"cron"` // minute, hour, day, month and day of the week, in UTC
	Title     string            `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Spec      json.RawMessage   `json:"spec,omitempty"`
	Workspace workspace.Spec    `json:"workspace,omitzero"`
	Content   []host.Part       `json:"content"`         // of the first input
	Next      time.Time         `json:"next"`            // when it is due
	Last      string            `json:"last,omitempty"`  // the session that it started last
	Error     string            `json:"error,omitempty"` // why it waits although it is due
}

const (
	schedules = "schedules" // the name of the tenant's value
	fireEvery = 10 * time.Second
)

// After returns when the schedule is due next after a time. The error says what is wrong
// with its expression.
func (s Schedule) After(t time.Time) (time.Time, error) {
	if len(strings.Fields(s.Cron)) != 5 || !gronx.IsValid(s.Cron) {
		return time.Time{}, fmt.Errorf("cron is %.100q: use five fields, minute, hour, day, month and day of the week, such as \"0 3 * * 1-5\" (in UTC)", s.Cron)
	}
	next, err := gronx.NextTickAfter(s.Cron, t.UTC(), false)
	if err != nil {
		return time.Time{}, fmt.Errorf("cron is %.100q: it is never due", s.Cron)
	}
	return next, nil
}

// Schedules returns the schedules of a tenant.
func Schedules(ctx context.Context, e Engine, tenant string) ([]Schedule, error) {
	list, _, err := readList[Schedule](ctx, e, tenant, schedules)
	return list, err
}

// ChangeSchedules replaces the schedules of a tenant by what change makes of them. It is
// called again if somebody else changed them meanwhile.
func ChangeSchedules(ctx context.Context, e Engine, tenant string, change func([]Schedule) ([]Schedule, error)) error {
	return changeList(ctx, e, tenant, schedules, change)
}

// fire starts the sessions that are due. All workers do it: the session of a schedule
// and a time has the same ID everywhere, and so has its first input.
func (w *Worker) fire(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.startDue(ctx, time.Now()); err != nil && ctx.Err() == nil {
			w.opts.Logger.WarnContext(ctx, "the sessions of schedules cannot be started", "error", err)
		}
		pause(ctx, fireEvery)
	}
}

func (w *Worker) startDue(ctx context.Context, now time.Time) error {
	tenants, err := w.opts.Engine.Tenants(ctx, schedules)
	if err != nil {
		return err
	}
	var failed []error
	for _, tenant := range tenants {
		list, err := Schedules(ctx, w.opts.Engine, tenant)
		failed = append(failed, err)
		for _, s := range list {
			if !s.Next.After(now) {
				failed = append(failed, w.start(ctx, tenant, s, now))
			}
		}
	}
	return errors.Join(failed...)
}

// start starts the session of a schedule that is due.
func (w *Worker) start(ctx context.Context, tenant string, due Schedule, now time.Time) error {
	id := sessionAt(tenant, due)
	if err := w.mayStart(ctx, tenant, id); err != nil {
		return w.wait(ctx, tenant, due, err)
	}
	labels := map[string]string{"schedule": due.ID}
	for k, v := range due.Labels {
		labels[k] = v
	}
	err := w.opts.Engine.Create(ctx, Session{
		Tenant: tenant, ID: id, Title: due.Title, Labels: labels, Spec: due.Spec, Workspace: due.Workspace, State: StateQueued, Created: now.UTC(), Updated: now.UTC(),
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	input := Command{ID: id, Command: host.Command{Type: typeInput, Content: due.Content}}
	if err := w.opts.Engine.Send(ctx, tenant, id, input); err != nil {
		return err
	}
	return ChangeSchedules(ctx, w.opts.Engine, tenant, func(list []Schedule) ([]Schedule, error) {
		i := slices.IndexFunc(list, func(s Schedule) bool { return s.ID == due.ID && s.Next.Equal(due.Next) })
		if i < 0 { // it was deleted, or another worker was here
			return list, nil
		}
		next, err := list[i].After(now)
		if err != nil {
			return nil, err
		}
		list[i].Next, list[i].Last, list[i].Error = next, id, ""
		return list, nil
	})
}

// mayStart checks the quotas for a session that is not there yet.
func (w *Worker) mayStart(ctx context.Context, tenant, id string) error {
	if w.opts.Quotas.Of(tenant) == (Quota{}) {
		return nil
	}
	_, err := w.opts.Engine.Get(ctx, tenant, id)
	if errors.Is(err, fs.ErrNotExist) {
		err = w.opts.Quotas.Admit(ctx, tenant, true, true)
	}
	return err
}

// wait notes in a schedule which quota it waits for. Other errors are returned.
func (w *Worker) wait(ctx context.Context, tenant string, due Schedule, why error) error {
	var quota *QuotaError
	switch {
	case !errors.As(why, &quota):
		return why
	case due.Error == quota.Message:
		return nil
	}
	return ChangeSchedules(ctx, w.opts.Engine, tenant, func(list []Schedule) ([]Schedule, error) {
		for i, s := range list {
			if s.ID == due.ID && s.Next.Equal(due.Next) {
				list[i].Error = quota.Message
			}
		}
		return list, nil
	})
}

// sessionAt is the ID of the session that a schedule starts at its time: a UUID of
// version 7, like those of other sessions, which sort by time.
func sessionAt(tenant string, s Schedule) string {
	id := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s/%s/%d", tenant, s.ID, s.Next.UnixMilli()))
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(s.Next.UnixMilli())) //nolint:gosec // after 1970
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70
	return id.String()
}
