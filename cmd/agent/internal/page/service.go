package page

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/api"
)

var (
	//go:embed assets/service.html
	serviceHTML string
	//go:embed assets/service.js
	serviceScript string
)

// Service is the page of a service: it lists and starts sessions, follows one, and
// answers questions. What it shows it gets from the API, with a token that the user
// enters and the tab keeps; the page alone shows nothing of any tenant.
type Service struct {
	Engine service.Engine
	API    *api.API // which checks hosts, origins and tokens
	Price  Price

	printer *printer
}

// NewService returns the handler of the page, and of the API behind it.
func NewService(s Service) http.Handler {
	s.printer = newPrinter(time.UTC)
	mux := http.NewServeMux()
	for pattern, p := range map[string]struct {
		scope api.Scope
		serve func(http.ResponseWriter, *http.Request, api.Token) error
	}{
		"GET /{$}":                {"", s.shell},
		"GET /page/sessions/{id}": {api.ScopeRead, s.follow},
	} {
		mux.Handle(pattern, s.API.Handler(pattern, p.scope, p.serve))
	}
	mux.Handle("/", s.API)
	return mux
}

// shell serves the page.
func (s Service) shell(w http.ResponseWriter, _ *http.Request, _ api.Token) error {
	code := script + serviceScript
	h := w.Header()
	h.Set("Content-Security-Policy", policy(true, code)+"; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	s.printer.write(w, "service", struct{ Title, Policy string }{"Sessions", policy(true, code)})
	return nil
}

// follow sends a session as it is shown, and what is added to it.
func (s Service) follow(w http.ResponseWriter, req *http.Request, t api.Token) error {
	page, err := strconv.Atoi(cmp.Or(req.URL.Query().Get("page"), "1"))
	if err != nil || page < 1 {
		return fmt.Errorf("page is %.20q: use a number from 1: %w", req.URL.Query().Get("page"), fs.ErrInvalid)
	}
	about, err := s.Engine.Get(req.Context(), t.Tenant, req.PathValue("id"))
	if err != nil {
		return err
	}
	f := &follower{Service: s, session: about, page: page}
	f.stream = stream{pages: pages{printer: s.printer}, w: w, page: page}
	f.record = newRecord(store.Summary{ID: about.ID, Time: about.Created, Cwd: workspaceOf(about)}, s.Price, page)
	f.record.reopened = true
	f.record.album = &album{func(hash string) ([]byte, error) { return f.image(req.Context(), hash) }, maxPictures}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return f.run(req.Context())
}

// workspaceOf says where a session works.
func workspaceOf(s service.Session) string {
	switch w := s.Workspace; {
	case w.Git != "" && w.Revision != "":
		return w.Git + " at " + w.Revision
	case w.Git != "":
		return w.Git
	case w.Directory != "":
		return w.Directory
	}
	return "none"
}

// follower is a browser that follows a session of a service.
type follower struct {
	Service
	stream

	session service.Session
	page    int
	typing  string // the answer so far
}

// maxTyping is the part of an unfinished answer that is shown, in bytes.
const maxTyping = 4000

// showEvery is how often a page is changed, at most.
const showEvery = 100 * time.Millisecond

func (f *follower) image(ctx context.Context, hash string) ([]byte, error) {
	file, err := f.Engine.Store(f.session.Tenant, f.session.ID).Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxPicture+1))
}

// run sends what comes, until the browser goes or the session continues on another page.
func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	records, failed := make(chan service.Record), make(chan error, 1)
	go func() {
		defer close(records)
		for r, err := range f.Engine.Watch(ctx, f.session.Tenant, f.session.ID, 0) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case records <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range records { // until the reader has ended
		}
	}()
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	alive := time.Now()
	for news := true; ; {
		select {
		case r, ok := <-records:
			if !ok {
				return nil
			}
			f.see(r.Event)
			news = true
		case <-failed:
			return nil // the browser comes back
		case <-tick.C:
			if !news && time.Since(alive) < aliveEvery {
				continue
			}
			more, err := f.show(ctx)
			if err != nil || !more {
				return nil
			}
			news, alive = false, time.Now()
		}
	}
}

// aliveEvery is how often something is sent when nothing happens.
const aliveEvery = 15 * time.Second

// see folds an event.
func (f *follower) see(e event.Event) {
	switch b := e.Body.(type) {
	case event.MessageDelta:
		f.typing += b.Text
		f.typing = f.typing[max(0, len(f.typing)-maxTyping):]
		return
	case event.Message, event.LLMStart, event.Result:
		f.typing = ""
	}
	if !e.IsDelta() {
		f.record.add(e)
	}
}

// show sends what changed, and reports whether more can come on this page.
func (f *follower) show(ctx context.Context) (more bool, err error) {
	s, err := f.Engine.Get(ctx, f.session.Tenant, f.session.ID)
	if err != nil {
		return false, err
	}
	f.record.Running = s.State == service.StateRunning
	u := update{Typing: f.typing}
	if f.record.Pages > f.page {
		u.More = f.page + 1
	}
	v := newView(f.record, f.page, false)
	v.Live = f.record.Running
	if err := f.stream.renderView(v, &u); err != nil {
		return false, err
	}
	return u.More == 0, f.send(u)
}
