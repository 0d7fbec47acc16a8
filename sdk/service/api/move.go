package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/sdk/service"
)

const (
	maxArchive  = 2 << 30     // bytes of a session that moves here, with its files
	archiveWait = time.Minute // for more of it: then its sender may try again
)

// move takes a session that moves here. The approvals in its log count, so that the
// token must be one that answers questions, too.
func (a *API) move(w http.ResponseWriter, req *http.Request, t Token) error {
	if !slices.Contains(t.Scopes, ScopeAnswer) {
		return lacks(ScopeAnswer)
	}
	body := &patient{http.MaxBytesReader(w, req.Body, maxArchive), http.NewResponseController(w)}
	s, created, err := service.Import(req.Context(), service.ImportOptions{
		Engine: a.opts.Engine, Workspaces: a.opts.Workspaces, Tenant: t.Tenant, ID: req.PathValue("id"),
		Check: func(s service.Session) error {
			if err := a.checkWorkspace(s.Workspace); err != nil {
				return err
			}
			if a.opts.Check != nil {
				if err := a.opts.Check(s); err != nil {
					return invalid("%v", err)
				}
			}
			return a.opts.Quotas.Admit(req.Context(), t.Tenant, true, false)
		},
	}, body)
	_, _ = io.Copy(io.Discard, body) // else the sender may not see the answer
	switch {
	case errors.Is(err, service.ErrMoving):
		return &failure{http.StatusConflict, "busy", err.Error()}
	case err != nil:
		return err
	case created:
		a.answerWith(w, http.StatusCreated, s)
	default:
		a.answerWith(w, http.StatusOK, s)
	}
	return nil
}

// patient reads a long body, and gives up when nothing comes for a while.
type patient struct {
	io.Reader
	control *http.ResponseController
}

// Read implements [io.Reader].
func (p *patient) Read(b []byte) (int, error) {
	if err := p.control.SetReadDeadline(time.Now().Add(archiveWait)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.Reader.Read(b)
}
