package page

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Server serves sessions on this machine.
type Server struct {
	source   Source
	list     func() ([]store.Summary, error)
	contexts string // directory of the stored outputs; nothing outside it is served
	price    Price
	insights func(ctx context.Context) (*insight.Report, error)
	token    string // what every address begins with
	script   string // of the pages
	routes   func(mux *http.ServeMux, base string)
	poll     time.Duration
}

const (
	insightDays = 30               // that the index reports about
	insightAge  = 30 * time.Second // after which it adds them up again
)

// NewServer returns a server for the sessions below home, the agent's home directory,
// with a new random token.
func NewServer(home string, known insight.Facts) *Server {
	dir := agent.SessionsDir(home)
	last := struct {
		sync.Mutex
		at     time.Time
		report *insight.Report
	}{}
	s := &Server{
		source: Logs(home), list: func() ([]store.Summary, error) { return store.List(dir) }, contexts: agent.ContextsDir(home), price: known.Price,
		insights: func(ctx context.Context) (*insight.Report, error) {
			last.Lock()
			defer last.Unlock()
			if last.report != nil && time.Since(last.at) < insightAge {
				return last.report, nil
			}
			report, err := insight.Read(ctx, dir, insightDays, time.Now(), known)
			if err == nil {
				last.report, last.at = report, time.Now()
			}
			return report, err
		},
		token: rand.Text(), poll: 300 * time.Millisecond, script: script,
	}
	s.routes = s.sessions
	return s
}

// Serve answers requests on a listener of this machine until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.handler(l.Addr().String()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve pages on %s: %w", l.Addr(), err)
	}
	return nil
}

// URL is the address of a session's page, or of the index for "", on a listener.
func (s *Server) URL(l net.Listener, id string) string {
	url := "http://" + l.Addr().String() + "/" + s.token + "/"
	if id != "" {
		url += "s/" + id + "/"
	}
	return url
}

// handler checks each request before it reaches a page: only the user knows the token,
// and no other site can use it, since its scripts cannot read what they get.
func (s *Server) handler(address string) http.Handler {
	mux := http.NewServeMux()
	s.routes(mux, "/"+s.token)
	_, port, _ := net.SplitHostPort(address)
	hosts := []string{address, "localhost:" + port}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(true, s.script)+"; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if req.Host != hosts[0] && req.Host != hosts[1] {
			http.Error(w, "This server is for "+hosts[0]+" only.", http.StatusMisdirectedRequest)
			return
		}
		if o := req.Header.Get("Origin"); o != "" && o != "http://"+req.Host {
			http.Error(w, "Requests of other sites are refused.", http.StatusForbidden)
			return
		}
		token, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
			http.Error(w, "Open the address that the agent printed, with its token.", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, req)
	})
}

// sessions adds the pages of sessions.
func (s *Server) sessions(mux *http.ServeMux, base string) {
	p := pages{Server: s, printer: newPrinter(time.Local)}
	mux.HandleFunc("GET "+base+"/{$}", p.index)
	mux.HandleFunc("GET "+base+"/s/{id}/{$}", p.session)
	mux.HandleFunc("GET "+base+"/s/{id}/live", p.live)
	mux.HandleFunc("GET "+base+"/s/{id}/find", p.find)
	mux.HandleFunc("GET "+base+"/s/{id}/event/{seq}", p.event)
	mux.HandleFunc("GET "+base+"/s/{id}/output/{seq}", p.output)
}

// pages are the handlers behind the checks.
type pages struct {
	*Server
	printer *printer
}

// write renders a page completely before the first byte is sent.
func (p *printer) write(w http.ResponseWriter, name string, data any) {
	html, err := p.render(name, data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, html)
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}

func (p pages) session(w http.ResponseWriter, req *http.Request) {
	n, err := strconv.Atoi(req.URL.Query().Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	r, err := readRecord(req.Context(), p.source, req.PathValue("id"), p.price, n)
	if err != nil {
		fail(w, err)
		return
	}
	if n > r.Pages {
		http.Error(w, fmt.Sprintf("The session has %d pages.", r.Pages), http.StatusNotFound)
		return
	}
	p.printer.write(w, "session", newView(r, n, true))
}

// find leads to the page that has a call.
func (p pages) find(w http.ResponseWriter, req *http.Request) {
	r, err := readRecord(req.Context(), p.source, req.PathValue("id"), p.price, 1)
	if err != nil {
		fail(w, err)
		return
	}
	anchor := req.URL.Query().Get("anchor")
	n, ok := r.Places[anchor]
	if !ok {
		http.Error(w, "The session has no such call.", http.StatusNotFound)
		return
	}
	http.Redirect(w, req, fmt.Sprintf("./?page=%d#%s", n, anchor), http.StatusSeeOther)
}

// record returns the event that a request names.
func (p pages) record(req *http.Request) (event.Event, error) {
	seq, err := strconv.ParseUint(req.PathValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		return event.Event{}, fmt.Errorf("event %q: %w", req.PathValue("seq"), fs.ErrNotExist)
	}
	for e, err := range p.source.Read(req.Context(), req.PathValue("id"), event.Seq(seq-1)) {
		if err != nil {
			return event.Event{}, err
		}
		if e.Seq == event.Seq(seq) {
			return e, nil
		}
		break
	}
	return event.Event{}, fmt.Errorf("event %d: %w", seq, fs.ErrNotExist)
}

// event serves an event as it is in the record.
func (p pages) event(w http.ResponseWriter, req *http.Request) {
	e, err := p.record(req)
	if err != nil {
		fail(w, err)
		return
	}
	data, err := e.MarshalJSON()
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(data)
}

// output serves the full output of a call.
func (p pages) output(w http.ResponseWriter, req *http.Request) {
	e, err := p.record(req)
	if err != nil {
		fail(w, err)
		return
	}
	b, ok := e.Body.(event.ToolResult)
	if !ok || b.Output == nil {
		http.Error(w, "The event has no output.", http.StatusNotFound)
		return
	}
	from := io.NopCloser(strings.NewReader(b.Output.Text))
	if b.Output.Path != "" {
		if from, err = p.open(b.Output.Path); err != nil {
			fail(w, err)
			return
		}
	}
	defer from.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.Copy(w, from)
}

// open opens a stored output. A record could name any file: only those of the context
// store are opened.
func (p pages) open(path string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(p.contexts)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name, err := filepath.Rel(p.contexts, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("output %s: %w: it is not in %s", path, fs.ErrNotExist, p.contexts)
	}
	return root.Open(name)
}
