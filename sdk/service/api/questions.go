package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// openQuestion is a question that a session is parked with.
type openQuestion struct {
	Session  string         `json:"session"`
	Title    string         `json:"title,omitempty"` // of the session
	Question event.Question `json:"question"`
	Asked    time.Time      `json:"asked"`
	Deadline time.Time      `json:"deadline,omitzero"`
}

func openQuestions(list ...service.Session) []openQuestion {
	all := []openQuestion{}
	for _, s := range list {
		for _, q := range s.Questions {
			q.Choices = service.Choices(q)
			all = append(all, openQuestion{s.ID, s.Title, q, s.Updated, s.Deadline})
		}
	}
	return all
}

// questionPage is the body of an answer with questions.
type questionPage struct {
	Questions []openQuestion `json:"questions"`
	Before    string         `json:"before,omitempty"` // for the next page
}

// allQuestions lists the questions of the tenant. Limit counts sessions: the questions
// of one are not torn apart.
func (a *API) allQuestions(w http.ResponseWriter, req *http.Request, t Token) error {
	limit, err := limitOf(req)
	if err != nil {
		return err
	}
	page, err := a.opts.Engine.List(req.Context(), service.Filter{
		Tenant: t.Tenant, Before: req.URL.Query().Get("before"), State: service.State(core.StateParked), Limit: limit,
	})
	if err != nil {
		return err
	}
	body := questionPage{Questions: openQuestions(page...)}
	if len(page) == limit {
		body.Before = page[limit-1].ID
	}
	a.answerWith(w, http.StatusOK, body)
	return nil
}

func (a *API) questions(w http.ResponseWriter, req *http.Request, t Token) error {
	s, err := a.opts.Engine.Get(req.Context(), t.Tenant, req.PathValue("id"))
	if err == nil {
		a.answerWith(w, http.StatusOK, questionPage{Questions: openQuestions(s)})
	}
	return err
}

func (a *API) answer(w http.ResponseWriter, req *http.Request, t Token) error {
	var c service.Command
	if err := read(w, req, &c); err != nil {
		return err
	}
	if c.Type = cmp.Or(c.Type, "answer"); c.Type != "answer" {
		return invalid("type is %.20q: leave it out, or use answer", c.Type)
	}
	s, err := a.opts.Engine.Get(req.Context(), t.Tenant, req.PathValue("id"))
	if err != nil {
		return err
	}
	open := slices.IndexFunc(s.Questions, func(q event.Question) bool { return q.QID == c.Question })
	switch {
	case s.State == service.StateRunning || s.State == service.StateQueued: // the question may just have been asked
	case open < 0:
		return &failure{http.StatusConflict, "no_question", fmt.Sprintf("no question %.100q is open", c.Question)}
	default:
		if choices := service.Choices(s.Questions[open]); !slices.Contains(choices, string(c.Choice)) {
			return invalid("choice is %.40q: use one of %s", c.Choice, strings.Join(choices, ", "))
		}
	}
	return a.send(w, req, t, c)
}
