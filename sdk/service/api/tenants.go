package api

import (
	"net/http"

	"github.com/seed-009c0928/agent/sdk/service"
)

// usage shows what a tenant has and used today.
func (a *API) usage(w http.ResponseWriter, req *http.Request, t Token) error {
	l, err := service.LoadOf(req.Context(), a.opts.Engine, t.Tenant)
	if err != nil {
		return err
	}
	a.answerWith(w, http.StatusOK, struct {
		service.Load
		Quota service.Quota `json:"quota"`
	}{l, a.opts.Quotas.Of(t.Tenant)})
	return nil
}
