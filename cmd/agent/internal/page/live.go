package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// update is what changed on a live page.
type update struct {
	Items []string `json:"items,omitempty"` // new and changed ones
	Parts []string `json:"parts,omitempty"` // the sections with totals
	More  int      `json:"more,omitempty"`  // the page on which the session continues
	Ended bool     `json:"ended,omitempty"`
	// Typing is the answer so far, of a session of a service.
	Typing string `json:"typing,omitempty"`
}

// live sends what is added to a record, until the session ends. Each message has the
// number of the last event in it, with which a browser continues after a lost
// connection.
func (p pages) live(w http.ResponseWriter, req *http.Request) {
	page, err := strconv.Atoi(req.URL.Query().Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	seen, err := strconv.ParseUint(cmp.Or(req.Header.Get("Last-Event-ID"), req.URL.Query().Get("after"), "0"), 10, 64)
	if err != nil {
		http.Error(w, "after: use the number of an event", http.StatusBadRequest)
		return
	}
	id := req.PathValue("id")
	about, err := p.source.Stat(id)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{pages: p, w: w, record: newRecord(about, p.price, page), seen: event.Seq(seen), page: page}
	s.record.album = newAlbum(req.Context(), p.source, id)
	tick := time.NewTicker(p.poll)
	defer tick.Stop()
	for first, more := true, true; more; first = false {
		// Asked before the record is read: what was written before the end is sent.
		running := p.source.Running(id)
		more, err = s.step(req, id, running, first)
		if err != nil || !more || !running {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// stream is one browser that watches a session.
type stream struct {
	pages
	w      http.ResponseWriter
	record *record
	seen   event.Seq // what the browser has
	page   int
	size   int64 // of the log, when it was read
}

// step reads what is new in the record and sends it. It reports whether more can come.
func (s *stream) step(req *http.Request, id string, running, first bool) (bool, error) {
	r := s.record
	r.Running = running
	about, err := s.source.Stat(id)
	if err != nil || about.Size == s.size && about.Size > 0 && running {
		return true, err
	}
	s.size = about.Size
	news := false
	for e, err := range s.source.Read(req.Context(), id, r.Last) {
		if err != nil {
			return false, err // the page says so when it is loaded again
		}
		if r.add(e); e.Seq > s.seen {
			news = true
		} else {
			clear(r.changed)
		}
	}
	if !news && running && !first {
		return true, nil
	}
	u := update{Ended: !running}
	if r.Pages > s.page {
		u.More = s.page + 1
	}
	if err := s.render(&u); err != nil {
		return false, err
	}
	s.seen = r.Last
	return running && u.More == 0, s.send(u)
}

// render writes the items that changed, in their order, and the totals.
func (s *stream) render(u *update) error { return s.renderView(newView(s.record, s.page, true), u) }

func (s *stream) renderView(v *view, u *update) error {
	for _, it := range s.record.changedItems() {
		html, err := s.printer.render("item", itemView{it, v})
		if err != nil {
			return err
		}
		u.Items = append(u.Items, html)
	}
	for _, name := range []string{"summary", "timeline", "state"} {
		html, err := s.printer.render(name, v)
		if err != nil {
			return err
		}
		u.Parts = append(u.Parts, html)
	}
	return nil
}

// changedItems returns the items that changed since the last call, in their order.
func (r *record) changedItems() []*item {
	list := make([]*item, 0, len(r.changed))
	for it := range r.changed {
		list = append(list, it)
	}
	clear(r.changed)
	slices.SortStableFunc(list, func(a, b *item) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// send writes a message and flushes it.
func (s *stream) send(u update) error {
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "id: %d\ndata: %s\n\n", s.record.Last, data); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}
