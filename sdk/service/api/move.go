package api

import (
	"errors"
	"fmt"
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
	body := &upload{body: req.Body, left: a.opts.MaxArchive, control: http.NewResponseController(w)}
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
	if errors.Is(body.err, errLong) {
		err = &failure{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the session has more than %d MiB with its outputs and files, which is the most that this service takes: move it without files", a.opts.MaxArchive>>20)}
	}
	if errors.Is(err, service.ErrMoving) {
		err = &failure{http.StatusConflict, "busy", err.Error()}
	}
	if err != nil && body.begun { // the answer comes before the rest of the body, which need not be sent
		_ = body.control.EnableFullDuplex()
		a.fail(w, req, err)
		_ = body.control.Flush()
	}
	body.drain()
	switch {
	case err != nil && body.begun:
	case err != nil:
		return err
	case created:
		a.answerWith(w, http.StatusCreated, s)
	default:
		a.answerWith(w, http.StatusOK, s)
	}
	return nil
}

var errLong = errors.New("the body is too long")

// upload reads a long body up to a limit, and gives up when nothing comes for a while.
type upload struct {
	body    io.Reader
	left    int64 // bytes up to the limit
	begun   bool
	err     error // what ended it
	control *http.ResponseController
}

// Read implements [io.Reader].
func (u *upload) Read(b []byte) (n int, err error) {
	if u.err != nil {
		return 0, u.err
	}
	if err := u.patience(); err != nil {
		return 0, err
	}
	u.begun = true
	n, u.err = u.body.Read(b)
	if int64(n) > u.left {
		n, u.err = int(u.left), errLong
	}
	u.left -= int64(n)
	return n, u.err
}

// patience waits for more from now on, for a while.
func (u *upload) patience() error {
	err := u.control.SetReadDeadline(time.Now().Add(archiveWait))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// drain reads what is left, for a while: else the sender may not see the answer.
func (u *upload) drain() {
	if u.begun && u.patience() == nil {
		_, _ = io.Copy(io.Discard, u.body)
	}
}
