package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

const (
	maxBody     = 4 << 20 // bytes
	defaultPage = 50      // sessions
	maxPage     = 200
	aliveTick   = 15 * time.Second
)

func (a *API) health(w http.ResponseWriter, _ *http.Request, _ Token) error {
	a.answerWith(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

func (a *API) document(w http.ResponseWriter, _ *http.Request, _ Token) error {
	a.answerWith(w, http.StatusOK, json.RawMessage(document))
	return nil
}

// read reads the body of a request.
func read(w http.ResponseWriter, req *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = cmp.Or(err, errors.New("there is more than one value"))
	}
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return err
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return invalid("%s cannot be of type %s: see /v1/openapi.json", cmp.Or(wrong.Field, "the body"), wrong.Value)
	}
	return invalid("the body is not the JSON that is expected: %v", err)
}

// newSession is the body of a request to create a session.
type newSession struct {
	ID      string            `json:"id"` // empty = a new one
	Title   string            `json:"title"`
	Labels  map[string]string `json:"labels"`
	Spec    json.RawMessage   `json:"spec"`
	Content []host.Part       `json:"content"` // of the first input
	// Workspace is what the session works in.
	Workspace workspace.Spec `json:"workspace"`
}

func (a *API) create(w http.ResponseWriter, req *http.Request, t Token) error {
	var n newSession
	if err := read(w, req, &n); err != nil {
		return err
	}
	if n.ID == "" {
		id, err := uuid.NewV7() // the newest is the first of the list
		if err != nil {
			return err
		}
		n.ID = id.String()
	}
	if err := store.CheckID(n.ID); err != nil {
		return err
	}
	if service.IsWebhook(n.ID) {
		return invalid("id is %.40q: that of a session does not begin like that of a webhook", n.ID)
	}
	if err := a.checkWorkspace(n.Workspace); err != nil {
		return err
	}
	now := time.Now().UTC()
	s := service.Session{
		Tenant: t.Tenant, ID: n.ID, Title: n.Title, Labels: n.Labels, Spec: n.Spec, Workspace: n.Workspace,
		State: service.StateQueued, Created: now, Updated: now,
	}
	first := service.Command{ID: n.ID, Command: host.Command{Type: "input", Content: n.Content}}
	if len(n.Content) == 0 {
		s.State = service.State(core.StateIdle)
	} else if err := first.Check(); err != nil {
		return err
	}
	if a.opts.Check != nil {
		if err := a.opts.Check(s); err != nil {
			return invalid("%v", err)
		}
	}
	if err := a.opts.Quotas.Admit(req.Context(), t.Tenant, true, len(n.Content) > 0); err != nil {
		return err
	}
	if err := a.opts.Engine.Create(req.Context(), s); err != nil {
		return err
	}
	if len(n.Content) > 0 {
		if err := a.opts.Engine.Send(req.Context(), t.Tenant, s.ID, first); err != nil {
			return err
		}
	}
	w.Header().Set("Location", "/v1/sessions/"+s.ID)
	a.answerWith(w, http.StatusCreated, s)
	return nil
}

// limitOf returns how many sessions a page has.
func limitOf(req *http.Request) (int, error) {
	text := req.URL.Query().Get("limit")
	if text == "" {
		return defaultPage, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPage {
		return 0, invalid("limit is %.20q: use 1 to %d", text, maxPage)
	}
	return limit, nil
}

func (a *API) list(w http.ResponseWriter, req *http.Request, t Token) error {
	limit, err := limitOf(req)
	if err != nil {
		return err
	}
	page, err := a.opts.Engine.List(req.Context(), service.Filter{Tenant: t.Tenant, Before: req.URL.Query().Get("before"), Limit: limit})
	if err != nil {
		return err
	}
	body := struct {
		Sessions []service.Session `json:"sessions"`
		Before   string            `json:"before,omitempty"` // for the next page
	}{Sessions: append([]service.Session{}, page...)}
	if len(page) == limit {
		body.Before = page[limit-1].ID
	}
	a.answerWith(w, http.StatusOK, body)
	return nil
}

func (a *API) get(w http.ResponseWriter, req *http.Request, t Token) error {
	s, err := a.opts.Engine.Get(req.Context(), t.Tenant, req.PathValue("id"))
	if err == nil {
		a.answerWith(w, http.StatusOK, s)
	}
	return err
}

func (a *API) remove(w http.ResponseWriter, req *http.Request, t Token) error {
	id := req.PathValue("id")
	s, err := a.opts.Engine.Get(req.Context(), t.Tenant, id)
	if err != nil {
		return err
	}
	if err := service.Deleting(req.Context(), a.opts.Engine, s); err != nil {
		return err
	}
	if err := a.opts.Engine.Delete(req.Context(), t.Tenant, id); err != nil {
		return err
	}
	if a.opts.Workspaces != nil && s.Place == a.opts.Workspaces.ID() {
		if err := a.opts.Workspaces.Delete(t.Tenant, id); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) command(w http.ResponseWriter, req *http.Request, t Token) error {
	var c service.Command
	if err := read(w, req, &c); err != nil {
		return err
	}
	if c.Type == "answer" {
		return invalid("send answers to /v1/sessions/%s/answers", req.PathValue("id"))
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.Type != "cancel" {
		if err := a.opts.Quotas.Admit(req.Context(), t.Tenant, false, true); err != nil {
			return err
		}
	}
	return a.send(w, req, t, c)
}

// send gives a command to the session of a request.
func (a *API) send(w http.ResponseWriter, req *http.Request, t Token, c service.Command) error {
	c.ID = cmp.Or(c.ID, uuid.NewString())
	if err := c.Check(); err != nil {
		return err
	}
	id := req.PathValue("id")
	if _, err := a.opts.Engine.Get(req.Context(), t.Tenant, id); err != nil {
		return err
	}
	if err := a.opts.Engine.Send(req.Context(), t.Tenant, id, c); err != nil {
		return err
	}
	a.answerWith(w, http.StatusAccepted, map[string]string{"id": c.ID})
	return nil
}

// events streams the events of a session, until the client goes.
func (a *API) events(w http.ResponseWriter, req *http.Request, t Token) error {
	id, from := req.PathValue("id"), cmp.Or(req.Header.Get("Last-Event-ID"), req.URL.Query().Get("cursor"), "0")
	cursor, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		return invalid("the cursor is %.30q: use the id of an event of this stream", from)
	}
	if _, err := a.opts.Engine.Get(req.Context(), t.Tenant, id); err != nil {
		return err
	}
	if subagent := req.URL.Query().Get("agent"); subagent != "" {
		if err := store.CheckID(subagent); err != nil {
			return invalid("agent: %v", err)
		}
		id += "/" + subagent
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	s := &stream{w: w, flush: http.NewResponseController(w).Flush}
	s.write(": ok\n\n")
	done := make(chan struct{})
	var alive sync.WaitGroup
	alive.Go(func() { s.alive(done) })
	defer alive.Wait()
	defer close(done)
	for r, err := range a.opts.Engine.Watch(req.Context(), t.Tenant, id, cursor) {
		if err == nil {
			err = s.event(r)
		}
		if err != nil {
			if req.Context().Err() == nil {
				a.opts.Logger.ErrorContext(req.Context(), "a stream of events ended", "session", id, "error", err)
			}
			return nil
		}
	}
	return nil
}

// stream is an answer with server-sent events. It is safe for concurrent use.
type stream struct {
	mu    sync.Mutex
	w     io.Writer
	flush func() error
}

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.flush()
}

// event writes an event. That of a delta has no id, so that a client that comes back
// continues behind what is kept.
func (s *stream) event(r service.Record) error {
	data, err := json.Marshal(r.Event)
	if err != nil {
		return err
	}
	id := ""
	if r.Cursor > 0 {
		id = fmt.Sprintf("id: %d\n", r.Cursor)
	}
	return s.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, r.Event.Body.Type(), data))
}

// alive writes comments while nothing happens, so that proxies keep the connection.
func (s *stream) alive(done <-chan struct{}) {
	tick := time.NewTicker(aliveTick)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			_ = s.write(": alive\n\n")
		}
	}
}
