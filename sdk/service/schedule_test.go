package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// TestSchedule: of a schedule that is due, several workers start one session.
func TestSchedule(t *testing.T) {
	db, _ := engine(t)
	due := service.Schedule{ID: "nightly", Cron: "0 3 29 2 *", Title: "Nightly", Content: []host.Part{{Type: "text", Text: "Go."}}, Next: time.Now().Add(-time.Hour)}
	err := service.ChangeSchedules(t.Context(), db, tenant, func([]service.Schedule) ([]service.Schedule, error) { return []service.Schedule{due}, nil })
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan string, 10)
	for range 3 {
		runWorker(t, db, func(_ context.Context, s service.Session, _ agent.SessionOptions) (host.Opened, error) {
			opened <- s.Title + " " + s.Labels["schedule"]
			return host.Opened{}, errors.New("not in this test")
		}, 1)
	}
	if got := <-opened; got != "Nightly nightly" {
		t.Errorf("opened %q", got)
	}
	var list []service.Schedule
	for len(list) == 0 || list[0].Last == "" {
		if list, err = service.Schedules(t.Context(), db, tenant); err != nil {
			t.Fatal(err)
		}
	}
	all, err := db.List(t.Context(), service.Filter{Tenant: tenant})
	if err != nil || len(all) != 1 || all[0].ID != list[0].Last {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	if next := list[0].Next; !next.After(time.Now()) || next.UTC().Hour() != 3 {
		t.Errorf("next at %v", next)
	}
}

// TestCron refuses what is no time.
func TestCron(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for cron, want := range map[string]string{
		"*/15 * * * *": "2026-03-04T05:15:00Z", "0 3 * * 1-5": "2026-03-05T03:00:00Z", "6 5 4 3 *": "2027-03-04T05:06:00Z",
		"": "", "* * * *": "", "* * * * * *": "", "61 * * * *": "", "@daily": "", "0 0 31 2 *": "", "a b c d e": "",
	} {
		next, err := service.Schedule{Cron: cron}.After(at)
		if want == "" && err == nil || want != "" && (err != nil || next.Format(time.RFC3339) != want) {
			t.Errorf("%q: %v, %v", cron, next, err)
		}
	}
}

// TestScheduleQuota: a schedule that is due waits until the quota allows its session.
func TestScheduleQuota(t *testing.T) {
	db, _ := engine(t)
	create(t, db, "other", core.Allow)
	due := service.Schedule{ID: "nightly", Cron: "0 3 29 2 *", Content: []host.Part{{Type: "text", Text: "rounds=0"}}, Next: time.Now().Add(-time.Hour)}
	err := service.ChangeSchedules(t.Context(), db, tenant, func([]service.Schedule) ([]service.Schedule, error) { return []service.Schedule{due}, nil })
	if err != nil {
		t.Fatal(err)
	}
	run := func() (stop func()) {
		w, err := service.NewWorker(service.WorkerOptions{
			Engine: db, Open: with(t.TempDir(), coretest.Model()), Quotas: service.NewQuotas(db, map[string]service.Quota{"": {Sessions: 1}}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		stop = func() { cancel(); running.Wait() }
		t.Cleanup(stop)
		return stop
	}
	when := func(ok func(service.Schedule) bool) service.Schedule {
		t.Helper()
		for {
			list, err := service.Schedules(t.Context(), db, tenant)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d schedules, %v", len(list), err)
			}
			if ok(list[0]) {
				return list[0]
			}
		}
	}
	stop := run()
	if s := when(func(s service.Schedule) bool { return s.Error != "" }); !strings.Contains(s.Error, "1 sessions") || !s.Next.Equal(due.Next) || s.Last != "" {
		t.Errorf("schedule %+v", s)
	}
	stop()
	if err := db.Delete(t.Context(), tenant, "other"); err != nil {
		t.Fatal(err)
	}
	run()
	s := when(func(s service.Schedule) bool { return s.Last != "" })
	if s.Error != "" || !s.Next.After(time.Now()) {
		t.Errorf("schedule %+v", s)
	}
	all, err := db.List(t.Context(), service.Filter{Tenant: tenant})
	if err != nil || len(all) != 1 || all[0].ID != s.Last {
		t.Errorf("sessions %+v, %v", all, err)
	}
}
