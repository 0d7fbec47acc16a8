package api

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
)

// maxWebhooks is how many a tenant may have.
const maxWebhooks = 10

// hook adds a webhook. It is told of what the token may read.
func (a *API) hook(w http.ResponseWriter, req *http.Request, t Token) error {
	if !slices.Contains(t.Scopes, ScopeRead) {
		return lacks(ScopeRead)
	}
	var h service.Webhook
	if err := read(w, req, &h); err != nil {
		return err
	}
	if !reflect.DeepEqual(h, service.Webhook{ID: h.ID, URL: h.URL, Events: h.Events}) {
		return invalid("leave out all but id, url and events: the service sets the rest")
	}
	if err := h.Check(a.opts.PrivateWebhooks); err != nil {
		return invalid("%v", err)
	}
	h.ID, h.Secret, h.Created = cmp.Or(h.ID, uuid.NewString()), service.NewSecret(), time.Now().UTC()
	if err := store.CheckID(h.Inbox()); err != nil {
		return err
	}
	err := service.ChangeWebhooks(req.Context(), a.opts.Engine, t.Tenant, func(list []service.Webhook) ([]service.Webhook, error) {
		switch {
		case hookIn(list, h.ID) >= 0:
			return nil, &failure{http.StatusConflict, "exists", "there is a webhook with this id"}
		case len(list) >= maxWebhooks:
			return nil, &failure{http.StatusTooManyRequests, "quota", fmt.Sprintf("the tenant has %d webhooks: delete one", maxWebhooks)}
		}
		return append(list, h), nil
	})
	if err != nil {
		return err
	}
	a.answerWith(w, http.StatusCreated, h)
	return nil
}

func hookIn(list []service.Webhook, id string) int {
	return slices.IndexFunc(list, func(h service.Webhook) bool { return h.ID == id })
}

func (a *API) hooks(w http.ResponseWriter, req *http.Request, t Token) error {
	list, err := service.ListWebhooks(req.Context(), a.opts.Engine, t.Tenant)
	if err != nil {
		return err
	}
	a.answerWith(w, http.StatusOK, map[string]any{"webhooks": append([]service.Webhook{}, list...)})
	return nil
}

func (a *API) unhook(w http.ResponseWriter, req *http.Request, t Token) error {
	err := service.ChangeWebhooks(req.Context(), a.opts.Engine, t.Tenant, func(list []service.Webhook) ([]service.Webhook, error) {
		i := hookIn(list, req.PathValue("id"))
		if i < 0 {
			return nil, &failure{http.StatusNotFound, "not_found", "there is no such webhook"}
		}
		return slices.Delete(list, i, i+1), nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
