package api

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// checkWorkspace refuses a workspace that no session can have.
func (a *API) checkWorkspace(s workspace.Spec) error {
	switch {
	case s == (workspace.Spec{}):
		return nil
	case a.opts.Workspaces == nil:
		return invalid("workspace: this service has no place for workspaces: leave it out")
	}
	return a.opts.Workspaces.Check(s)
}

// worksIn returns the session of a request, if its workspace is here.
func (a *API) worksIn(req *http.Request, t Token) (service.Session, error) {
	s, err := a.opts.Engine.Get(req.Context(), t.Tenant, req.PathValue("id"))
	switch {
	case err != nil:
		return s, err
	case s.Place == "" || a.opts.Workspaces == nil:
		return s, workspaceFailure(workspace.ErrNone)
	case s.Place != a.opts.Workspaces.ID():
		return s, workspaceFailure(workspace.ErrElsewhere)
	}
	return s, nil
}

// workspaceFailure says what is wrong with a result of a session.
func workspaceFailure(err error) error {
	switch {
	case errors.Is(err, workspace.ErrNone):
		return &failure{http.StatusNotFound, "no_workspace", "the session has no workspace, or none yet"}
	case errors.Is(err, workspace.ErrElsewhere):
		return &failure{http.StatusConflict, "elsewhere", "the session's workspace is on another machine: ask that one"}
	case errors.Is(err, workspace.ErrTooLarge):
		return &failure{http.StatusRequestEntityTooLarge, "too_large", err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return &failure{http.StatusNotFound, "not_found", "there is no such file in the workspace"}
	}
	return err
}

func (a *API) diff(w http.ResponseWriter, req *http.Request, t Token) error {
	s, err := a.worksIn(req, t)
	if err != nil {
		return err
	}
	d, err := a.opts.Workspaces.Diff(req.Context(), s.Tenant, s.ID)
	if err != nil {
		return workspaceFailure(err)
	}
	a.answerWith(w, http.StatusOK, d)
	return nil
}

// file sends a file, for no browser to show: anybody may have written it.
func (a *API) file(w http.ResponseWriter, req *http.Request, t Token) error {
	s, err := a.worksIn(req, t)
	if err != nil {
		return err
	}
	f, size, err := a.opts.Workspaces.File(s.Tenant, s.ID, req.PathValue("path"))
	if err != nil {
		return workspaceFailure(err)
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	_, _ = io.CopyN(w, f, size) // it may shrink meanwhile
	return nil
}
