package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// maxSchedules is how many a tenant may have.
const maxSchedules = 100

func (a *API) schedule(w http.ResponseWriter, req *http.Request, t Token) error {
	var s service.Schedule
	if err := read(w, req, &s); err != nil {
		return err
	}
	if !s.Next.IsZero() || s.Last != "" || s.Error != "" {
		return invalid("leave out next, last and error: the service sets them")
	}
	s.ID = cmp.Or(s.ID, uuid.NewString())
	if err := store.CheckID(s.ID); err != nil {
		return err
	}
	if err := (service.Command{Command: host.Command{Type: "input", Content: s.Content}}).Check(); err != nil {
		return err
	}
	if err := a.checkWorkspace(s.Workspace); err != nil {
		return err
	}
	var err error
	if s.Next, err = s.After(time.Now()); err != nil {
		return invalid("%v", err)
	}
	err = service.ChangeSchedules(req.Context(), a.opts.Engine, t.Tenant, func(list []service.Schedule) ([]service.Schedule, error) {
		switch {
		case indexOf(list, s.ID) >= 0:
			return nil, &failure{http.StatusConflict, "exists", "there is a schedule with this id"}
		case len(list) >= maxSchedules:
			return nil, &failure{http.StatusTooManyRequests, "quota", fmt.Sprintf("the tenant has %d schedules: delete one", maxSchedules)}
		}
		return append(list, s), nil
	})
	if err != nil {
		return err
	}
	a.answerWith(w, http.StatusCreated, s)
	return nil
}

func indexOf(list []service.Schedule, id string) int {
	return slices.IndexFunc(list, func(s service.Schedule) bool { return s.ID == id })
}

func (a *API) schedules(w http.ResponseWriter, req *http.Request, t Token) error {
	list, err := service.Schedules(req.Context(), a.opts.Engine, t.Tenant)
	if err != nil {
		return err
	}
	a.answerWith(w, http.StatusOK, map[string]any{"schedules": append([]service.Schedule{}, list...)})
	return nil
}

func (a *API) unschedule(w http.ResponseWriter, req *http.Request, t Token) error {
	err := service.ChangeSchedules(req.Context(), a.opts.Engine, t.Tenant, func(list []service.Schedule) ([]service.Schedule, error) {
		i := indexOf(list, req.PathValue("id"))
		if i < 0 {
			return nil, &failure{http.StatusNotFound, "not_found", "there is no such schedule"}
		}
		return slices.Delete(list, i, i+1), nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
